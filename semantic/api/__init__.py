"""The REST edge of what is derived: parse, call one operation, render."""
