"""Lexical recall: select what is promoted, leave a receipt without any text (R-L-090..107, specification 5.10)."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from archive import lexical, receipts
from archive.authority import Action, Caller, Point
from archive.gates import gate
from archive.models import Namespace
from archive.publication import Publication, publish, published
from archive.refusals import CapabilityNotReady
from archive.requests import LexicalRecall
from archive.transactions import moment, shared


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
        earlier = published(namespace, wanted.request_id, schema=receipts.LEXICAL_SCHEMA, digest=digest)
        gate("recall.looked")
        if earlier is not None:
            recalled = Recalled(Publication.REPLAYED, earlier)
        else:
            recalled = _publish(namespace, caller, wanted)
    question.require(Point.A2)
    return recalled


def _publish(namespace: Namespace, caller: Caller, wanted: LexicalRecall) -> Recalled:
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
    return Recalled(*publish(namespace, receipt, created_at))
