"""Semantic recall: look, embed the query with nothing open, select under a fresh hold (R-L-210..255, 5.10).

Preflight and publication are two short transactions under a shared hold; the inference stands between them. Whatever
changed meanwhile shows in the second. A generation that was retired meanwhile refuses; there is no fallback to words.
"""

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from archive.authority import Action, Caller, Point, Question
from archive.gates import gate
from archive.models import Namespace
from archive.publication import Publication, publish, published
from archive.refusals import Conflict, Refusal
from archive.transactions import moment, shared
from semantic import exact, manifest
from semantic.embedders import Item, Kind
from semantic.embedding import Vector, session
from semantic.manifest import Configured
from semantic.models import Generation
from semantic.operations.generations import standing
from semantic.receipts import SEMANTIC_SCHEMA, semantic
from semantic.refusals import GenerationRetired
from semantic.requests import SemanticRecall


@dataclass(frozen=True, slots=True)
class Recalled:
    """The receipt, how this call came by it, and what this call's own embedding cost; None for a replay."""

    outcome: Publication
    receipt: dict[str, Any]
    caller_execution: dict[str, Any] | None


def recall(caller: Caller, wanted: SemanticRecall) -> Recalled:
    """Rank the embedded notes of a namespace for a query; the same identity again gives the same receipt, unembedded.

    Raises `RequestConflict`, what is wrong with the generation, and whatever kept the query from being embedded: never
    a miss in its place.
    """
    manifest.require_semantic()
    configured = manifest.configured(caller.binding)
    digest = wanted.digest(caller.binding, caller.subject, configured)
    question = caller.asks(Action.SEMANTIC_RECALL, about=digest)
    question.require(Point.A0)
    seen = _preflight(caller, question, wanted, configured, digest)
    if isinstance(seen, Recalled):
        question.require(Point.A2)
        return seen
    vector, execution = _embedded(question, wanted, configured)
    gate("semantic_recall.closed")
    recalled = _final(caller, question, wanted, configured, digest, seen, vector, execution)
    question.require(Point.A2)
    return recalled


@dataclass(frozen=True, slots=True)
class _Seen:
    """The generation that preflight verified."""

    id: UUID
    version: int


def _preflight(
    caller: Caller, question: Question, wanted: SemanticRecall, configured: Configured, digest: str
) -> Recalled | _Seen:
    with shared(caller.binding) as namespace:
        question.require(Point.A1)
        earlier = published(namespace, wanted.request_id, schema=SEMANTIC_SCHEMA, digest=digest)
        if earlier is not None:
            return Recalled(Publication.REPLAYED, earlier, None)
        generation = standing(namespace, configured)
        return _Seen(generation.id, generation.version)


def _embedded(question: Question, wanted: SemanticRecall, configured: Configured) -> tuple[Vector, dict[str, Any]]:
    item = Item(wanted.request_id, wanted.query)
    started = time.monotonic()
    with session(configured) as embedding:
        answer = embedding.embed([item], Kind.QUERY, lambda: question.require(Point.AX))[item.item_id]
    if isinstance(answer, Refusal):
        raise answer
    return answer, answer.execution(round((time.monotonic() - started) * 1000))


def _final(
    caller: Caller,
    question: Question,
    wanted: SemanticRecall,
    configured: Configured,
    digest: str,
    seen: _Seen,
    vector: Vector,
    execution: dict[str, Any],
) -> Recalled:
    try:
        with shared(caller.binding) as namespace:
            question.require(Point.A1)
            winner = published(namespace, wanted.request_id, schema=SEMANTIC_SCHEMA, digest=digest)
            gate("semantic_recall.looked")
            if winner is not None:
                return Recalled(Publication.JOINED, winner, execution)
            generation = standing(namespace, configured)
            if (generation.id, generation.version) != (seen.id, seen.version):
                raise GenerationRetired
            return _publish(namespace, caller, wanted, configured, generation, vector, execution)
    except Conflict as refusal:
        # What this caller has spent is told even where somebody else was first (5.17 no. 16).
        refusal.extra.setdefault("caller_execution", execution)
        raise


def _publish(
    namespace: Namespace,
    caller: Caller,
    wanted: SemanticRecall,
    configured: Configured,
    generation: Generation,
    vector: Vector,
    execution: dict[str, Any],
) -> Recalled:
    ranking = exact.rank(namespace, generation, vector.data, top_k=wanted.top_k, min_cosine=wanted.min_cosine)
    receipt = semantic(
        receipt_id=uuid4(),
        binding=caller.binding,
        subject=caller.subject,
        wanted=wanted,
        configured=configured,
        generation=generation,
        ranking=ranking,
        execution=execution,
        created_at=(created_at := moment()),
    )
    return Recalled(*publish(namespace, receipt, created_at), execution)
