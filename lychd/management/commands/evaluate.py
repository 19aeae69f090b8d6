"""`manage.py evaluate`, the same as `lychd evaluate`."""

from lychd.commands.framework import coat

Command = coat("evaluate")
