"""`manage.py grant`, the same as `lychd grant`."""

from lychd.commands.framework import coat

Command = coat("grant")
