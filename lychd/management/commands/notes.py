"""`manage.py notes`, the same as `lychd notes`."""

from lychd.commands.framework import coat

Command = coat("notes")
