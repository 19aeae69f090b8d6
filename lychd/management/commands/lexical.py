"""`manage.py lexical`, the same as `lychd lexical`."""

from lychd.commands.framework import coat

Command = coat("lexical")
