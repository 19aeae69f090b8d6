"""`manage.py recall`, the same as `lychd recall`."""

from lychd.commands.framework import coat

Command = coat("recall")
