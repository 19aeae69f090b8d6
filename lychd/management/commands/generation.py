"""`manage.py generation`, the same as `lychd generation`."""

from lychd.commands.framework import coat

Command = coat("generation")
