"""Semantic resolution: the text of a schema-2 selection while every fence of it still holds, or none (R-L-260..264)."""

from typing import Any
from uuid import UUID

from django.db import connection

from archive import canonical, receipts
from archive.authority import Action, Caller, Point
from archive.lifecycle import State as NoteState
from archive.models import Namespace, Note, Recall
from archive.operations.resolution import Resolved, Source
from archive.records import projection_of
from archive.refusals import (
    IntegrityFailure,
    ReceiptAbsent,
    ReceiptBindingMismatch,
    ReceiptSchemaMismatch,
    SelectionStale,
)
from archive.transactions import shared
from semantic import manifest, vectors
from semantic.lifecycle import State
from semantic.models import Derivation, Generation
from semantic.models.derivation import METADATA
from semantic.operations.generations import standing
from semantic.receipts import SEMANTIC_SCHEMA


def resolve(caller: Caller, request_id: str) -> Resolved:
    """Give the text of every note that a semantic receipt selected, or refuse the whole; nothing is ranked again.

    Raises `ReceiptAbsent`, `ReceiptSchemaMismatch`, `ReceiptBindingMismatch`, `SelectionStale`, `GenerationRetired` and
    what else is wrong with the generation, `IntegrityFailure`.
    """
    manifest.require_semantic()
    configured = manifest.configured(caller.binding)
    lookup = canonical.lookup_digest(Action.SEMANTIC_RESOLVE, caller.namespace, {"request_id": request_id})
    question = caller.asks(Action.SEMANTIC_RESOLVE, about=lookup)
    question.require(Point.A0)
    with shared(caller.binding) as namespace:
        row = Recall.objects.filter(namespace=namespace, request_id=request_id).first()
        if row is not None:
            question = question.about(row.receipt_digest)
        question.require(Point.A1)
        if row is None:
            raise ReceiptAbsent
        if row.schema != SEMANTIC_SCHEMA:
            raise ReceiptSchemaMismatch
        receipt = receipts.opened(row, namespace.key)
        _same_binding(receipt, caller)
        generation = standing(namespace, configured)
        _same_generation(receipt, generation)
        sources = _sources(namespace, generation, receipt)
    question.require(Point.A2)
    return Resolved(row.id, sources)


def _same_binding(receipt: dict[str, Any], caller: Caller) -> None:
    held = {key: receipt[key] for key in ("profile", "namespace", "owner", "policy_revision", "subject", "purpose")}
    if held != {**caller.binding.fields(), "subject": caller.subject, "purpose": "answer"}:
        raise ReceiptBindingMismatch


def _same_generation(receipt: dict[str, Any], generation: Generation) -> None:
    """Refuse unless the receipt was selected from the generation that is configured and active now."""
    now = {
        "reference": generation.reference,
        "manifest_digest": generation.manifest_digest,
        "version": generation.version,
    }
    if receipt["generation"] != now:
        raise SelectionStale


def _sources(namespace: Namespace, generation: Generation, receipt: dict[str, Any]) -> tuple[Source, ...]:
    selected = receipt["selected"]
    notes = {str(note.id): note for note in _notes(namespace, [chosen["note_id"] for chosen in selected])}
    derived = {
        str(row.id): row
        for row in Derivation.objects.only(*METADATA).filter(
            namespace=namespace, generation=generation, id__in=[chosen["derivation_id"] for chosen in selected]
        )
    }
    stored = _stored_digests([row.id for row in derived.values() if row.state == State.COMPLETE])
    for chosen in selected:
        _require_vector(chosen, derived.get(chosen["derivation_id"]), stored)
    return tuple(_source(namespace, chosen, notes.get(chosen["note_id"])) for chosen in selected)


def _notes(namespace: Namespace, note_ids: list[str]):  # type: ignore[no-untyped-def]
    return (
        Note.objects.select_related("source")
        .filter(namespace=namespace, id__in=note_ids)
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


def _stored_digests(derivation_ids: list[UUID]) -> dict[UUID, str]:
    """Digest the vectors as they lie there, bit by bit."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, vector_send(vector) FROM semantic_derivation WHERE id = ANY(%s::uuid[])", [derivation_ids]
        )
        return {found: vectors.digest(vectors.received(bytes(sent))) for found, sent in cursor.fetchall()}


def _require_vector(chosen: dict[str, Any], row: Derivation | None, stored: dict[UUID, str]) -> None:
    """Compare the derivation that was ranked with the one that is there now."""
    stands = (
        row is not None
        and row.state == State.COMPLETE
        and str(row.note_id) == chosen["note_id"]
        and row.row_version == chosen["derivation_row_version"]
        and row.note_lifecycle_version == chosen["lifecycle_version"]
        and row.vector_digest == chosen["vector_digest"]
        and row.text_digest == chosen["text_digest"]
    )
    if row is None or not stands:
        raise SelectionStale
    if stored.get(row.id) != chosen["vector_digest"]:
        raise IntegrityFailure


def _source(namespace: Namespace, chosen: dict[str, Any], note: Note | None) -> Source:
    if note is None or note.state != NoteState.PROMOTED or note.text is None:
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
