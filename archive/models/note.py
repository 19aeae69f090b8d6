"""Sources, their immutable revisions, and what happened to each."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from archive import lifecycle, limits, triggers, truths
from archive.lifecycle import Cause, Reason, State
from archive.models.columns import CLOCK, InNamespace


class Source(InNamespace):
    """Where text came from, as asserted; equal text under two keys stays two notes (R-L-056)."""

    id = models.BigAutoField(primary_key=True)
    source_key = models.TextField()
    created_at = models.DateTimeField(db_default=CLOCK)

    class Meta:
        db_table = "archive_source"
        constraints: ClassVar = [models.UniqueConstraint(fields=["namespace", "source_key"], name="source_once")]
        indexes: ClassVar = [
            # One source is looked for in all namespaces of somebody.
            models.Index(
                fields=["source_key", "namespace"], opclasses=["text_pattern_ops", "int8_ops"], name="source_named"
            ),
        ]
        triggers: ClassVar = [*triggers.of_memory(), triggers.NoUpdate(name="append"), truths.SourceTruth()]

    def __str__(self) -> str:
        return self.source_key


class Note(InNamespace):
    """One immutable revision of a source. Revocation nulls text and origin and leaves this row as the tombstone.

    The column `note_number` (bigint identity, filled by the database) is what postings refer to and lists are ordered
    by. It is no model field, since no statement may bring one along; `archive.records.NUMBER` reads it.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="notes", db_index=False)
    source_revision = models.TextField()
    kind = models.TextField(default="note")
    asserted_origin = models.TextField(null=True)
    state = models.TextField(default=State.CANDIDATE.value)
    lifecycle_version = models.IntegerField(default=1)
    text = models.TextField(null=True)
    text_digest = models.TextField()
    char_count = models.IntegerField()
    byte_count = models.IntegerField()
    material_digest = models.TextField()
    classification = models.TextField(default=limits.CLASSIFICATION)
    retention_class = models.TextField(default="standard")
    retain_until = models.DateTimeField(null=True)
    observed_at = models.DateTimeField(null=True)
    admitted_subject = models.TextField()
    policy_revision = models.TextField()
    created_at = models.DateTimeField(db_default=CLOCK)
    state_changed_at = models.DateTimeField(db_default=CLOCK)
    promoted_at = models.DateTimeField(null=True)
    archived_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    superseded_by = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, related_name="supersedes", db_index=False
    )

    class Meta:
        db_table = "archive_note"
        constraints: ClassVar = [
            # One revision, one note, for ever, tombstones included (R-L-052, 054).
            models.UniqueConstraint(fields=["namespace", "source", "source_revision"], name="note_revision_once"),
            # Two promotions may race; the second loses here even if the lock were forgotten (R-L-072).
            models.UniqueConstraint(
                fields=["source"], condition=Q(state=State.PROMOTED.value), name="note_one_promoted_per_source"
            ),
            # Text is there exactly until revocation (R-L-074), and no tombstone keeps what was said to be its origin.
            models.CheckConstraint(
                name="note_text_until_revoked",
                condition=Q(text__isnull=True, asserted_origin__isnull=True, state=State.REVOKED.value)
                | (Q(text__isnull=False) & ~Q(state=State.REVOKED.value)),
            ),
            models.CheckConstraint(name="note_state", condition=Q(state__in=[state.value for state in State])),
            models.CheckConstraint(name="note_version", condition=Q(lifecycle_version__gte=1)),
            models.CheckConstraint(
                name="note_size",
                condition=Q(char_count__gte=1, char_count__lte=limits.NOTE_TEXT_MAX_CHARS)
                & Q(byte_count__gte=1, byte_count__lte=limits.NOTE_TEXT_MAX_BYTES),
            ),
            models.CheckConstraint(name="note_public", condition=Q(classification=limits.CLASSIFICATION)),
        ]
        # Those over `note_number`, which is no field, are made by migrations: `note_number_once`,
        # `note_state_in_order`, `note_admitted_in_order`, `note_waiting`.
        indexes: ClassVar = [
            # Candidates that say what a promoted note says are met with it here.
            models.Index(
                fields=["namespace", "text_digest"],
                condition=Q(state=State.PROMOTED.value),
                name="note_promoted_text",
            ),
            # Digests are found by their beginning too, under any collation.
            models.Index(
                fields=["text_digest", "namespace"],
                opclasses=["text_pattern_ops", "int8_ops"],
                name="note_text_digest",
            ),
            models.Index(
                fields=["material_digest", "namespace"],
                opclasses=["text_pattern_ops", "int8_ops"],
                name="note_material_digest",
            ),
        ]
        triggers: ClassVar = [
            *triggers.of_memory(spaced=True),
            triggers.SameNamespace(
                name="same_namespace", names={"source_id": "archive_source", "superseded_by_id": "archive_note"}
            ),
            triggers.NoteIdentity(name="note_identity"),
            triggers.NoteText(name="note_text"),
            triggers.LegalEdge(name="note_edge", edges=lifecycle.NOTE_EDGES),
            triggers.NoteHasItsEvent(name="note_event"),
            truths.NoteTruth(),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.state} v{self.lifecycle_version})"


class LifecycleEvent(InNamespace):
    """One transition that happened. Within a namespace `id` rises in commit order: every writer holds it alone."""

    id = models.BigAutoField(primary_key=True)
    note = models.ForeignKey(Note, on_delete=models.PROTECT, related_name="events", db_index=False)
    from_state = models.TextField(null=True)
    to_state = models.TextField()
    from_version = models.IntegerField()
    to_version = models.IntegerField()
    cause = models.TextField(default=Cause.EXPLICIT.value)
    caused_by_note = models.ForeignKey(
        Note, null=True, on_delete=models.PROTECT, related_name="caused_events", db_index=False
    )
    reason = models.TextField(null=True)
    subject = models.TextField()
    policy_revision = models.TextField()
    created_at = models.DateTimeField(db_default=CLOCK)

    class Meta:
        db_table = "archive_lifecycle_event"
        constraints: ClassVar = [
            # One event a version: no step is told twice (R-L-082).
            models.UniqueConstraint(fields=["note", "to_version"], name="event_once_per_version"),
            models.CheckConstraint(
                name="event_version_step", condition=Q(to_version=models.F("from_version") + 1, from_version__gte=0)
            ),
            models.CheckConstraint(name="event_cause", condition=Q(cause__in=[cause.value for cause in Cause])),
            models.CheckConstraint(
                name="event_reason",
                condition=Q(reason__isnull=True) | Q(reason__in=[reason.value for reason in Reason]),
            ),
            models.CheckConstraint(
                name="event_superseded_names_its_cause",
                condition=Q(cause=Cause.EXPLICIT.value, caused_by_note__isnull=True)
                | Q(cause=Cause.SUPERSEDED.value, caused_by_note__isnull=False),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["namespace", "id"], name="event_keyset"),
            models.Index(fields=["namespace", "to_state", "id"], name="event_state_keyset"),
            # Decisions are counted by day; what a promotion archived with it, and intakes, are none.
            models.Index(
                fields=["namespace", "to_state", "created_at"],
                condition=Q(
                    cause=Cause.EXPLICIT.value,
                    to_state__in=[State.PROMOTED.value, State.ARCHIVED.value, State.REVOKED.value],
                ),
                name="event_decided",
            ),
        ]
        triggers: ClassVar = [
            *triggers.of_append_only_memory(spaced=True),
            triggers.SameNamespace(
                name="same_namespace", names={"note_id": "archive_note", "caused_by_note_id": "archive_note"}
            ),
            triggers.EventIsTrue(name="event_true"),
            truths.EventTruth(),
        ]

    def __str__(self) -> str:
        return f"{self.from_state} to {self.to_state} (v{self.to_version})"


class Flag(InNamespace):
    """Somebody's mark on a note; it changes nothing else (R-L-302)."""

    id = models.BigAutoField(primary_key=True)
    note = models.ForeignKey(Note, on_delete=models.PROTECT, related_name="flags", db_index=False)
    lifecycle_version = models.IntegerField()
    subject = models.TextField()
    reason = models.TextField()
    created_at = models.DateTimeField(db_default=CLOCK)

    class Meta:
        db_table = "archive_flag"
        constraints: ClassVar = [
            models.CheckConstraint(name="flag_reason", condition=Q(reason__in=[reason.value for reason in Reason])),
            # Saying the same twice about one version is one flag, so a repeated call is safe.
            models.UniqueConstraint(fields=["note", "lifecycle_version", "subject", "reason"], name="flag_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["namespace", "id"], name="flag_keyset")]
        triggers: ClassVar = [
            *triggers.of_append_only_memory(),
            triggers.SameNamespace(name="same_namespace", names={"note_id": "archive_note"}),
            truths.FlagTruth(),
        ]

    def __str__(self) -> str:
        return f"{self.reason} on {self.note_id}"
