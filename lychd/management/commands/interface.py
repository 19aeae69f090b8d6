"""`manage.py interface`, the same as `lychd interface`."""

from lychd.commands.framework import coat

Command = coat("interface")
