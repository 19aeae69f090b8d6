"""`manage.py bench`, the same as `lychd bench`."""

from lychd.commands.framework import coat

Command = coat("bench")
