"""`manage.py metrics`, the same as `lychd metrics`."""

from lychd.commands.framework import coat

Command = coat("metrics")
