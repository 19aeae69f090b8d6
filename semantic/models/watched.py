"""The archive's rows as this application watches them: the rules stand here, the archive knows nothing of them."""

from typing import ClassVar

from archive import triggers as archive_triggers
from archive.models import Note, Recall
from semantic import forms, triggers


class WatchedNote(Note):
    """A note whose derivations end when it stops being promoted."""

    class Meta:
        proxy = True
        triggers: ClassVar = [triggers.InvalidateNote(name="semantic_invalidate")]


class WatchedRecall(Recall):
    """A recall by meaning, whose receipt has a form of its own."""

    class Meta:
        proxy = True
        triggers: ClassVar = [archive_triggers.ReceiptTruth(name="semantic_truth", form=forms.SEMANTIC)]
