"""The REST edge of the archive: parse, call one operation, render."""
