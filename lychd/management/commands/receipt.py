"""`manage.py receipt`, the same as `lychd receipt`."""

from lychd.commands.framework import coat

Command = coat("receipt")
