"""What a receipt selected, held against the rows as they stand: all of it still true, or none of it (R-L-110..117)."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from archive import canonical, receipts
from archive.authority import Caller
from archive.lifecycle import State
from archive.models import Namespace, Note, Recall
from archive.records import projection_of
from archive.refusals import (
    IntegrityFailure,
    ReceiptAbsent,
    ReceiptBindingMismatch,
    ReceiptSchemaMismatch,
    SelectionStale,
)


@dataclass(frozen=True, slots=True)
class Source:
    """One selected note with its text, attributed; the text is data and carries no instruction (R-L-115, 116)."""

    rank: int
    note_id: UUID
    source_key: str
    source_revision: str
    text_digest: str
    lifecycle_version: int
    classification: str
    text: str

    def as_json(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "note_id": str(self.note_id),
            "source_key": self.source_key,
            "source_revision": self.source_revision,
            "text_digest": self.text_digest,
            "lifecycle_version": self.lifecycle_version,
            "classification": self.classification,
            "data": {"text": self.text},
        }

    def __repr__(self) -> str:
        return f"Source(rank={self.rank}, note_id={self.note_id})"


@dataclass(frozen=True, slots=True)
class Resolved:
    """The texts of one receipt, valid for this use only."""

    receipt_id: UUID
    sources: tuple[Source, ...]


def opened(row: Recall | None, schema: int, namespace: Namespace, caller: Caller) -> dict[str, Any]:
    """Return the receipt that a caller wants resolved, once it is whole, of this schema and this caller's own."""
    if row is None:
        raise ReceiptAbsent
    if row.schema != schema:
        raise ReceiptSchemaMismatch
    receipt = receipts.opened(row, namespace.key)
    held = {key: receipt[key] for key in ("profile", "namespace", "owner", "policy_revision", "subject", "purpose")}
    if held != {**caller.binding.fields(), "subject": caller.subject, "purpose": "answer"}:
        raise ReceiptBindingMismatch
    return receipt


def resolved(namespace: Namespace, receipt: dict[str, Any]) -> Resolved:
    """Give the text of every selected note of a held namespace; the first that differs refuses the whole."""
    selected = receipt["selected"]
    rows = (
        Note.objects.select_related("source")
        .filter(namespace=namespace, id__in=[chosen["note_id"] for chosen in selected])
        .only(
            "id",
            "source_id",
            "source__source_key",
            "source_revision",
            "asserted_origin",
            "state",
            "lifecycle_version",
            "text",
            "text_digest",
            "char_count",
            "classification",
        )
    )
    notes = {str(note.id): note for note in rows}
    sources = tuple(_source(namespace, chosen, notes.get(chosen["note_id"])) for chosen in selected)
    return Resolved(UUID(receipt["receipt_id"]), sources)


def _source(namespace: Namespace, chosen: dict[str, Any], note: Note | None) -> Source:
    """Compare one row with what the receipt says of it."""
    if note is None or note.state != State.PROMOTED or note.text is None:
        raise SelectionStale
    stands = (
        note.lifecycle_version == chosen["lifecycle_version"]
        and note.source.source_key == chosen["source_key"]
        and note.source_revision == chosen["source_revision"]
        and canonical.same(note.text_digest, chosen["text_digest"])
        and canonical.same(projection_of(note, namespace.key), chosen["projection_digest"])
    )
    if not stands:
        raise SelectionStale
    if not canonical.same(canonical.text_digest(note.text), note.text_digest):
        raise IntegrityFailure
    return Source(
        rank=chosen["rank"],
        note_id=note.id,
        source_key=note.source.source_key,
        source_revision=note.source_revision,
        text_digest=note.text_digest,
        lifecycle_version=note.lifecycle_version,
        classification=note.classification,
        text=note.text,
    )
