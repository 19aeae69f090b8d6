"""`manage.py init`, the same as `lychd init`."""

from lychd.commands.framework import coat

Command = coat("init")
