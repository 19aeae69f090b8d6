"""`manage.py revoke`, the same as `lychd revoke`."""

from lychd.commands.framework import coat

Command = coat("revoke")
