"""`manage.py derivation`, the same as `lychd derivation`."""

from lychd.commands.framework import coat

Command = coat("derivation")
