"""Requests to take a note in: one identity, one material, for ever."""

from typing import ClassVar

from django.db import models

from archive import triggers, truths
from archive.models.columns import CLOCK, InNamespace
from archive.models.note import Note


class IntakeRequest(InNamespace):
    """A request identity and the digest of what it said; several may name one note (R-L-050, 053)."""

    id = models.BigAutoField(primary_key=True)
    request_id = models.TextField()
    request_digest = models.TextField()
    material_digest = models.TextField()
    note = models.ForeignKey(Note, on_delete=models.PROTECT, related_name="intakes", db_index=False)
    created_note = models.BooleanField()
    subject = models.TextField()
    created_at = models.DateTimeField(db_default=CLOCK)

    class Meta:
        db_table = "archive_intake_request"
        constraints: ClassVar = [
            # Two identical intakes may race; one request row is left (R-L-062).
            models.UniqueConstraint(fields=["namespace", "request_id"], name="intake_request_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["note"], name="intake_note"),
            models.Index(fields=["namespace", "subject", "id"], name="intake_subject_keyset"),
        ]
        triggers: ClassVar = [
            *triggers.of_append_only_memory(spaced=True),
            triggers.SameNamespace(name="same_namespace", names={"note_id": "archive_note"}),
            truths.RequestTruth(),
        ]

    def __str__(self) -> str:
        return self.request_id
