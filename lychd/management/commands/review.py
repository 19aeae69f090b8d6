"""`manage.py review`, the same as `lychd review`."""

from lychd.commands.framework import coat

Command = coat("review")
