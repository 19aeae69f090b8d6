"""The archive's notes as this application watches them: the rule stands here, the archive knows nothing of it."""

from typing import ClassVar

from archive.models import Note
from semantic import triggers


class WatchedNote(Note):
    """A note whose derivations end when it stops being promoted."""

    class Meta:
        proxy = True
        triggers: ClassVar = [triggers.InvalidateNote(name="semantic_invalidate")]
