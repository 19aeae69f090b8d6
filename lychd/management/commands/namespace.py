"""`manage.py namespace`, the same as `lychd namespace`."""

from lychd.commands.framework import coat

Command = coat("namespace")
