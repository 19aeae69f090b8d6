"""Derivations: one note in one generation, with its latest attempt and, once complete, its vector."""

from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from pgvector.django import VectorField

from archive import triggers as archive_triggers
from archive.models import Note
from archive.models.columns import CLOCK, InNamespace
from semantic import limits, triggers, truths
from semantic.lifecycle import EDGES, Invalidation, State
from semantic.models.generation import Generation

METADATA: tuple[str, ...] = (
    "id",
    "namespace_id",
    "generation_id",
    "note_id",
    "chunk",
    "source_key",
    "source_revision",
    "text_digest",
    "note_lifecycle_version",
    "state",
    "attempt",
    "row_version",
    "claimed_at",
    "deadline",
    "dimensions",
    "vector_digest",
    "l2_norm",
    "receipt",
    "failure_code",
    "invalidation",
    "prepared_at",
    "settled_at",
)
"""The columns that a status selects by name; neither the vector nor the token is among them."""


class Derivation(InNamespace):
    """A promoted note's embedding: prepared, tried, complete, and gone with its note (R-L-170..197)."""

    id = models.UUIDField(primary_key=True, editable=False)
    # The foreign key is the composite one (generation, dimensions), made by the migration.
    generation = models.ForeignKey(
        Generation, on_delete=models.PROTECT, related_name="derivations", db_index=False, db_constraint=False
    )
    note = models.ForeignKey(Note, on_delete=models.PROTECT, related_name="+", db_index=False)
    chunk = models.TextField(default=limits.CHUNKING)
    source_key = models.TextField()
    source_revision = models.TextField()
    text_digest = models.TextField()
    note_lifecycle_version = models.IntegerField()
    state = models.TextField(default=State.PREPARED.value)
    attempt = models.IntegerField(default=0)
    row_version = models.IntegerField(default=1)
    attempt_token = models.UUIDField(null=True)
    claimed_at = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    dimensions = models.IntegerField()
    vector = VectorField(null=True)
    vector_digest = models.TextField(null=True)
    l2_norm = models.FloatField(null=True)
    receipt = models.JSONField(null=True)
    failure_code = models.TextField(null=True)
    invalidation = models.TextField(null=True)
    prepared_at = models.DateTimeField(db_default=CLOCK)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "semantic_derivation"
        constraints: ClassVar = [
            # One note, one chunk, one generation, one row (R-L-176); two preparations may race.
            models.UniqueConstraint(fields=["generation", "note", "chunk"], name="derivation_once"),
            models.CheckConstraint(name="derivation_state", condition=Q(state__in=[state.value for state in State])),
            models.CheckConstraint(name="derivation_chunk", condition=Q(chunk=limits.CHUNKING)),
            models.CheckConstraint(
                name="derivation_counts", condition=Q(attempt__gte=0, row_version__gte=1, note_lifecycle_version__gte=1)
            ),
            # A vector is there exactly while the derivation is complete (R-L-195).
            models.CheckConstraint(
                name="derivation_vector_while_complete",
                condition=Q(state=State.COMPLETE.value, vector__isnull=False, vector_digest__isnull=False)
                & Q(l2_norm__isnull=False)
                | ~Q(state=State.COMPLETE.value) & Q(vector=None, vector_digest=None, l2_norm=None),
            ),
            models.CheckConstraint(
                name="derivation_receipt_once_complete",
                condition=Q(state=State.COMPLETE.value, receipt__isnull=False)
                | Q(state=State.INVALIDATED.value)
                | ~Q(state=State.COMPLETE.value) & Q(receipt=None),
            ),
            # A live token is there exactly while an attempt runs, and it lives exactly one minute (R-L-162).
            models.CheckConstraint(
                name="derivation_token_while_running",
                condition=Q(state=State.RUNNING.value, attempt_token__isnull=False, claimed_at__isnull=False)
                & Q(deadline__isnull=False)
                | ~Q(state=State.RUNNING.value) & Q(attempt_token=None, claimed_at=None, deadline=None),
            ),
            models.CheckConstraint(
                name="derivation_deadline",
                condition=Q(deadline=None) | Q(deadline=F("claimed_at") + timedelta(seconds=limits.ATTEMPT_SECONDS)),
            ),
            models.CheckConstraint(
                name="derivation_failure_while_failed",
                condition=Q(state=State.FAILED.value, failure_code__isnull=False)
                | ~Q(state=State.FAILED.value) & Q(failure_code=None),
            ),
            models.CheckConstraint(
                name="derivation_invalidation",
                condition=Q(state=State.INVALIDATED.value, invalidation__isnull=False)
                & Q(invalidation__in=[reason.value for reason in Invalidation])
                | ~Q(state=State.INVALIDATED.value) & Q(invalidation=None),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["note"], name="derivation_note"),
            models.Index(fields=["namespace", "prepared_at", "id"], name="derivation_keyset"),
        ]
        triggers: ClassVar = [
            *archive_triggers.of_memory(),
            archive_triggers.SameNamespace(
                name="same_namespace", names={"note_id": "archive_note", "generation_id": "semantic_generation"}
            ),
            triggers.DerivationIdentity(name="derivation_identity"),
            triggers.DerivationEdge(name="derivation_edge", edges=EDGES),
            triggers.DerivationDone(name="derivation_zdone"),
            truths.DerivationTruth(),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"
