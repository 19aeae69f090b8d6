"""What is told of generations and derivations: metadata, digests and states; no text, no coordinate, no live token."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from archive import canonical
from semantic.lifecycle import EXPIRED, State
from semantic.models import Derivation, Generation


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else canonical.instant(moment)


@dataclass(frozen=True, slots=True)
class GenerationRecord:
    """A registered generation and how many of its derivations are complete."""

    id: UUID
    reference: str
    manifest: dict[str, Any]
    manifest_digest: str
    state: str
    version: int
    registered_by: str
    registered_at: datetime
    retired_by: str | None
    retired_at: datetime | None

    @classmethod
    def of(cls, row: Generation) -> Self:
        return cls(
            id=row.id,
            reference=row.reference,
            manifest=row.manifest,
            manifest_digest=row.manifest_digest,
            state=row.state,
            version=row.version,
            registered_by=row.registered_by,
            registered_at=row.registered_at,
            retired_by=row.retired_by,
            retired_at=row.retired_at,
        )

    @property
    def embedder(self) -> str:
        """The provider and model that the manifest names."""
        binding = self.manifest["embed_binding"]
        return f"{binding['provider']} {binding['model']}"

    def as_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "reference": self.reference,
            "manifest": self.manifest,
            "manifest_digest": self.manifest_digest,
            "state": self.state,
            "version": self.version,
            "registered_by": self.registered_by,
            "registered_at": _time(self.registered_at),
            "retired_by": self.retired_by,
            "retired_at": _time(self.retired_at),
        }


@dataclass(frozen=True, slots=True)
class DerivationRecord:
    """One derivation as it stands by the database's clock; its source reference opens no text (R-L-196, 197)."""

    id: UUID
    generation: str
    note_id: UUID
    source_key: str
    source_revision: str
    text_digest: str
    note_lifecycle_version: int
    state: str
    attempt: int
    row_version: int
    deadline: datetime | None
    dimensions: int
    vector_digest: str | None
    receipt: dict[str, Any] | None
    failure_code: str | None
    invalidation: str | None
    prepared_at: datetime
    settled_at: datetime | None

    @classmethod
    def of(cls, row: Derivation, *, reference: str, now: datetime) -> Self:
        """Tell of a row; a running attempt past its deadline is shown as expired, and nothing is written (R-L-178)."""
        expired = row.state == State.RUNNING and row.deadline is not None and row.deadline <= now
        return cls(
            id=row.id,
            generation=reference,
            note_id=row.note_id,
            source_key=row.source_key,
            source_revision=row.source_revision,
            text_digest=row.text_digest,
            note_lifecycle_version=row.note_lifecycle_version,
            state=EXPIRED if expired else row.state,
            attempt=row.attempt,
            row_version=row.row_version,
            deadline=row.deadline,
            dimensions=row.dimensions,
            vector_digest=row.vector_digest,
            receipt=row.receipt,
            failure_code=row.failure_code,
            invalidation=row.invalidation,
            prepared_at=row.prepared_at,
            settled_at=row.settled_at,
        )

    @property
    def ended_without_vector(self) -> bool:
        """Whether an attempt failed or ran out of time, so that another one has to be asked for by name (R-L-179)."""
        return self.state in {State.FAILED.value, EXPIRED}

    def as_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "generation": self.generation,
            "note_id": str(self.note_id),
            "source_key": self.source_key,
            "source_revision": self.source_revision,
            "text_digest": self.text_digest,
            "note_lifecycle_version": self.note_lifecycle_version,
            "state": self.state,
            "attempt": self.attempt,
            "row_version": self.row_version,
            "deadline": _time(self.deadline),
            "dimensions": self.dimensions,
            "vector_digest": self.vector_digest,
            "receipt": self.receipt,
            "failure_code": self.failure_code,
            "invalidation": self.invalidation,
            "prepared_at": _time(self.prepared_at),
            "settled_at": _time(self.settled_at),
        }
