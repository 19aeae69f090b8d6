"""`manage.py derive`, the same as `lychd derive`."""

from lychd.commands.framework import coat

Command = coat("derive")
