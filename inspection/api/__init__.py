"""The REST edge of inspection: GET, read once, render."""
