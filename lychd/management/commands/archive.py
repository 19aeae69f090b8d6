"""`manage.py archive`, the same as `lychd archive`."""

from lychd.commands.framework import coat

Command = coat("archive")
