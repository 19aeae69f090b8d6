"""`manage.py resolve`, the same as `lychd resolve`."""

from lychd.commands.framework import coat

Command = coat("resolve")
