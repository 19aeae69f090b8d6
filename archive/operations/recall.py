"""Lexical recall: select what is promoted, leave a receipt without any text (R-L-090..107, specification 5.10)."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import uuid4

from django.db import connection

from archive import canonical, lexical, receipts
from archive.authority import Action, Caller, Point
from archive.gates import gate
from archive.models import Namespace, Recall
from archive.refusals import CapabilityNotReady, RequestConflict
from archive.requests import LexicalRecall
from archive.transactions import moment, shared


class Publication(StrEnum):
    """How a recall ended: this caller published, asked again, or met another caller's publication."""

    PUBLISHED = "published"
    REPLAYED = "replayed"
    JOINED = "joined"


@dataclass(frozen=True, slots=True)
class Recalled:
    """The receipt of a recall and how this call came by it. A miss is a receipt with an empty selection."""

    outcome: Publication
    receipt: dict[str, Any]


def recall(caller: Caller, wanted: LexicalRecall) -> Recalled:
    """Rank the promoted notes of one namespace for a query; the same identity again gives the same receipt.

    Raises `RequestConflict` for the identity of another request, `CapabilityNotReady` while the index is rebuilt.
    """
    digest = wanted.digest(caller.binding, caller.subject)
    question = caller.asks(Action.RECALL, about=digest)
    question.require(Point.A0)
    with shared(caller.binding) as namespace:
        question.require(Point.A1)
        recalled = _published(namespace, wanted, digest, Publication.REPLAYED)
        gate("recall.looked")
        if recalled is None:
            recalled = _publish(namespace, caller, wanted, digest)
    question.require(Point.A2)
    return recalled


def _published(namespace: Namespace, wanted: LexicalRecall, digest: str, outcome: Publication) -> Recalled | None:
    rows = Recall.objects.raw(
        "SELECT * FROM archive_recall WHERE namespace_id = %s AND request_id = %s", [namespace.id, wanted.request_id]
    )
    row = next(iter(rows), None)
    if row is None:
        return None
    if row.schema != receipts.LEXICAL_SCHEMA or not canonical.same(row.request_digest, digest):
        raise RequestConflict
    return Recalled(outcome, receipts.opened(row, namespace.key))


def _publish(namespace: Namespace, caller: Caller, wanted: LexicalRecall, digest: str) -> Recalled:
    if namespace.lexical_state != "ready":
        raise CapabilityNotReady
    ranking = lexical.rank(namespace, wanted.query, top_k=wanted.top_k, min_rank=wanted.min_rank)
    receipt = receipts.lexical(
        receipt_id=uuid4(),
        binding=caller.binding,
        namespace=namespace,
        subject=caller.subject,
        wanted=wanted,
        ranking=ranking,
        created_at=(created_at := moment()),
    )
    with connection.cursor() as cursor:
        # Recalls stand side by side, so two with one identity may both come this far; the constraint lets one publish.
        cursor.execute(
            "INSERT INTO archive_recall (id, namespace_id, request_id, schema, request_digest, receipt, receipt_digest,"
            " subject, purpose, created_at) VALUES (%s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s, %s)"
            " ON CONFLICT (namespace_id, request_id) DO NOTHING RETURNING id",
            [
                receipt["receipt_id"],
                namespace.id,
                wanted.request_id,
                receipt["schema"],
                digest,
                json.dumps(receipt),
                receipt["receipt_digest"],
                caller.subject,
                receipt["purpose"],
                created_at,
            ],
        )
        published = cursor.fetchone() is not None
    if published:
        return Recalled(Publication.PUBLISHED, receipt)
    winner = _published(namespace, wanted, digest, Publication.JOINED)
    if winner is None:
        raise RuntimeError("the row that conflicted is visible to the next statement")
    return winner
