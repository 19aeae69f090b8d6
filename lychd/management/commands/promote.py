"""`manage.py promote`, the same as `lychd promote`."""

from lychd.commands.framework import coat

Command = coat("promote")
