"""`manage.py token`, the same as `lychd token`."""

from lychd.commands.framework import coat

Command = coat("token")
