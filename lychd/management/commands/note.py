"""`manage.py note`, the same as `lychd note`."""

from lychd.commands.framework import coat

Command = coat("note")
