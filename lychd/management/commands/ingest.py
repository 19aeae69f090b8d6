"""`manage.py ingest`, the same as `lychd ingest`."""

from lychd.commands.framework import coat

Command = coat("ingest")
