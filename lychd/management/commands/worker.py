"""`manage.py worker`, the same as `lychd worker`."""

from lychd.commands.framework import coat

Command = coat("worker")
