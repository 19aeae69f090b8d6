"""`manage.py events`, the same as `lychd events`."""

from lychd.commands.framework import coat

Command = coat("events")
