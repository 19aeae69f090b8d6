"""`manage.py demo`, the same as `lychd demo`."""

from lychd.commands.framework import coat

Command = coat("demo")
