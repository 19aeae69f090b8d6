"""`manage.py serve`, the same as `lychd serve`."""

from lychd.commands.framework import coat

Command = coat("serve")
