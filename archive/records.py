"""What leaves the archive about a note when its text does not: metadata, events, flags (R-L-059, 130, 131)."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self
from uuid import UUID

from django.db.models import BigIntegerField
from django.db.models.expressions import RawSQL

from archive import canonical
from archive.models import LifecycleEvent, Note

NUMBER: Final = RawSQL("archive_note.note_number", [], output_field=BigIntegerField())
"""The number of a note, which rises in the order of intake, where one moment may stamp many notes."""

METADATA: Final = (
    "id",
    "namespace_id",
    "source_id",
    "source__source_key",
    "source_revision",
    "kind",
    "asserted_origin",
    "state",
    "lifecycle_version",
    "text_digest",
    "char_count",
    "byte_count",
    "material_digest",
    "classification",
    "retention_class",
    "retain_until",
    "observed_at",
    "admitted_subject",
    "policy_revision",
    "created_at",
    "state_changed_at",
    "promoted_at",
    "archived_at",
    "revoked_at",
    "superseded_by_id",
)
"""The columns a metadata read selects by name; text is not among them."""


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else canonical.instant(moment)


@dataclass(frozen=True, slots=True)
class NoteRecord:
    """A note without its text."""

    id: UUID
    source_key: str
    source_revision: str
    kind: str
    asserted_origin: str | None = field(repr=False)
    state: str
    lifecycle_version: int
    text_digest: str
    char_count: int
    byte_count: int
    material_digest: str
    classification: str
    retention_class: str
    retain_until: datetime | None
    observed_at: datetime | None
    admitted_subject: str
    policy_revision: str
    created_at: datetime
    state_changed_at: datetime
    promoted_at: datetime | None
    archived_at: datetime | None
    revoked_at: datetime | None
    superseded_by: UUID | None

    @classmethod
    def of(cls, note: Note) -> Self:
        return cls(
            id=note.id,
            source_key=note.source.source_key,
            source_revision=note.source_revision,
            kind=note.kind,
            asserted_origin=note.asserted_origin,
            state=note.state,
            lifecycle_version=note.lifecycle_version,
            text_digest=note.text_digest,
            char_count=note.char_count,
            byte_count=note.byte_count,
            material_digest=note.material_digest,
            classification=note.classification,
            retention_class=note.retention_class,
            retain_until=note.retain_until,
            observed_at=note.observed_at,
            admitted_subject=note.admitted_subject,
            policy_revision=note.policy_revision,
            created_at=note.created_at,
            state_changed_at=note.state_changed_at,
            promoted_at=note.promoted_at,
            archived_at=note.archived_at,
            revoked_at=note.revoked_at,
            superseded_by=note.superseded_by_id,
        )

    @property
    def etag(self) -> str:
        """The strong entity tag of this record: id and lifecycle version."""
        return f'"{self.id}.{self.lifecycle_version}"'

    def as_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "source_key": self.source_key,
            "source_revision": self.source_revision,
            "kind": self.kind,
            "asserted_origin": self.asserted_origin,
            "state": self.state,
            "lifecycle_version": self.lifecycle_version,
            "text_digest": self.text_digest,
            "char_count": self.char_count,
            "byte_count": self.byte_count,
            "material_digest": self.material_digest,
            "classification": self.classification,
            "retention": {"class": self.retention_class, "retain_until": _time(self.retain_until)},
            "observed_at": _time(self.observed_at),
            "admitted_subject": self.admitted_subject,
            "policy_revision": self.policy_revision,
            "created_at": _time(self.created_at),
            "state_changed_at": _time(self.state_changed_at),
            "promoted_at": _time(self.promoted_at),
            "archived_at": _time(self.archived_at),
            "revoked_at": _time(self.revoked_at),
            "superseded_by": None if self.superseded_by is None else str(self.superseded_by),
        }


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One transition of one note, as it is told to whoever may inspect."""

    sequence: int
    note_id: UUID
    from_state: str | None
    to_state: str
    from_version: int
    to_version: int
    cause: str
    caused_by_note: UUID | None
    reason: str | None
    subject: str
    policy_revision: str
    created_at: datetime

    @classmethod
    def of(cls, event: LifecycleEvent) -> Self:
        return cls(
            sequence=event.id,
            note_id=event.note_id,
            from_state=event.from_state,
            to_state=event.to_state,
            from_version=event.from_version,
            to_version=event.to_version,
            cause=event.cause,
            caused_by_note=event.caused_by_note_id,
            reason=event.reason,
            subject=event.subject,
            policy_revision=event.policy_revision,
            created_at=event.created_at,
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "sequence": self.sequence,
            "note_id": str(self.note_id),
            "from_state": self.from_state,
            "to_state": self.to_state,
            "from_version": self.from_version,
            "to_version": self.to_version,
            "cause": self.cause,
            "caused_by_note": None if self.caused_by_note is None else str(self.caused_by_note),
            "reason": self.reason,
            "subject": self.subject,
            "policy_revision": self.policy_revision,
            "created_at": _time(self.created_at),
        }


def projection_digest(
    *,
    note_id: UUID,
    namespace: str,
    source_key: str,
    source_revision: str,
    text_digest: str,
    char_count: int,
    classification: str,
    asserted_origin: str | None,
) -> str:
    """Return the digest of what a recall shows of a note, so that resolution can tell whether it still stands (5.3)."""
    return canonical.digest_of(
        canonical.PROJECTION,
        {
            "note_id": str(note_id),
            "namespace": namespace,
            "source_key": source_key,
            "source_revision": source_revision,
            "text_digest": text_digest,
            "char_count": char_count,
            "classification": classification,
            "asserted_origin": asserted_origin,
        },
    )


def projection_of(note: Note, namespace: str) -> str:
    """Return the projection digest of a note row."""
    return projection_digest(
        note_id=note.id,
        namespace=namespace,
        source_key=note.source.source_key,
        source_revision=note.source_revision,
        text_digest=note.text_digest,
        char_count=note.char_count,
        classification=note.classification,
        asserted_origin=note.asserted_origin,
    )
