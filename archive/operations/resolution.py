"""Resolution: turn a receipt into text under today's authority, all of it or nothing (R-L-110..117)."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from archive import canonical, receipts
from archive.authority import Action, Caller, Point
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
from archive.requests import well_formed
from archive.transactions import shared


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


def resolve(caller: Caller, request_id: str) -> Resolved:
    """Give the text of every note a receipt selected, or refuse the whole; nothing is ranked or replaced.

    Raises `ReceiptAbsent`, `ReceiptSchemaMismatch`, `ReceiptBindingMismatch`, `SelectionStale`, `IntegrityFailure`.
    """
    well_formed("/request_id", request_id)
    lookup = canonical.lookup_digest(Action.RESOLVE, caller.namespace, {"request_id": request_id})
    question = caller.asks(Action.RESOLVE, about=lookup)
    question.require(Point.A0)
    with shared(caller.binding) as namespace:
        row = Recall.objects.filter(namespace=namespace, request_id=request_id).first()
        if row is not None:
            question = question.about(row.receipt_digest)
        question.require(Point.A1)
        if row is None:
            raise ReceiptAbsent
        if row.schema != receipts.LEXICAL_SCHEMA:
            raise ReceiptSchemaMismatch
        receipt = receipts.opened(row, namespace.key)
        _same_binding(receipt, caller)
        sources = _sources(namespace, receipt)
    question.require(Point.A2)
    return Resolved(row.id, sources)


def _same_binding(receipt: dict[str, Any], caller: Caller) -> None:
    held = {key: receipt[key] for key in ("profile", "namespace", "owner", "policy_revision", "subject", "purpose")}
    if held != {**caller.binding.fields(), "subject": caller.subject, "purpose": "answer"}:
        raise ReceiptBindingMismatch


def _sources(namespace: Namespace, receipt: dict[str, Any]) -> tuple[Source, ...]:
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
    return tuple(_source(namespace, chosen, notes.get(chosen["note_id"])) for chosen in selected)


def _source(namespace: Namespace, chosen: dict[str, Any], note: Note | None) -> Source:
    """Compare one row with what the receipt says of it; the first that differs refuses the whole."""
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
