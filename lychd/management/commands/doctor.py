"""`manage.py doctor`, the same as `lychd doctor`."""

from lychd.commands.framework import coat

Command = coat("doctor")
