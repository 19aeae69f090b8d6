"""`manage.py principal`, the same as `lychd principal`."""

from lychd.commands.framework import coat

Command = coat("principal")
