"""`manage.py semantic`, the same as `lychd semantic`."""

from lychd.commands.framework import coat

Command = coat("semantic")
