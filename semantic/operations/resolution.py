"""Semantic resolution: the text of a schema-2 selection while every fence of it still holds, or none (R-L-260..264)."""

from typing import Any
from uuid import UUID

from django.db import connection

from archive import canonical, selections
from archive.authority import Action, Caller, Point
from archive.models import Namespace, Recall
from archive.refusals import IntegrityFailure, SelectionStale
from archive.requests import well_formed
from archive.selections import Resolved
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
    well_formed("/request_id", request_id)
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
        receipt = selections.opened(row, SEMANTIC_SCHEMA, namespace, caller)
        _require_vectors(namespace, standing(namespace, configured), receipt)
        resolved = selections.resolved(namespace, receipt)
    question.require(Point.A2)
    return resolved


def _require_vectors(namespace: Namespace, generation: Generation, receipt: dict[str, Any]) -> None:
    """Refuse unless the receipt was selected from this very generation and its vectors are still there, bit by bit."""
    now = {
        "reference": generation.reference,
        "manifest_digest": generation.manifest_digest,
        "version": generation.version,
    }
    if receipt["generation"] != now:
        raise SelectionStale
    selected = receipt["selected"]
    derived = {
        str(row.id): row
        for row in Derivation.objects.only(*METADATA).filter(
            namespace=namespace, generation=generation, id__in=[chosen["derivation_id"] for chosen in selected]
        )
    }
    stored = _stored_digests([row.id for row in derived.values() if row.state == State.COMPLETE])
    for chosen in selected:
        _require_vector(chosen, derived.get(chosen["derivation_id"]), stored)


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
