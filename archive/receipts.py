"""Receipts: the sealed, text-free account of one recall, and how it is checked (specification 5.6, R-L-101..107)."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from archive import canonical, fitting, limits
from archive.authority import PURPOSE_OF, Action
from archive.bindings import Binding
from archive.fitting import T
from archive.lexical import Ranked, Ranking
from archive.models import Namespace, Recall
from archive.records import projection_digest
from archive.refusals import IntegrityFailure
from archive.requests import LexicalRecall
from archive.seals import LEXICAL_SCHEMA, SEMANTIC_SCHEMA, digest_of, verify

__all__ = ["LEXICAL_SCHEMA", "digest_of", "is_intact", "lexical", "opened", "sealed", "selection", "verify"]

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def lexical(
    *,
    receipt_id: UUID,
    binding: Binding,
    namespace: Namespace,
    subject: str,
    wanted: LexicalRecall,
    ranking: Ranking,
    created_at: datetime,
) -> dict[str, Any]:
    """Write the schema-1 receipt of a ranking by words."""
    return sealed(
        LEXICAL_SCHEMA,
        receipt_id=receipt_id,
        binding=binding,
        subject=subject,
        action=Action.RECALL,
        policy=limits.LEXICAL_POLICY,
        request_id=wanted.request_id,
        request_digest=wanted.digest(binding, subject),
        query=wanted.query,
        created_at=created_at,
        account={
            "budgets": {
                "top_k": wanted.top_k,
                "char_budget": wanted.char_budget,
                "min_rank": canonical.real(wanted.min_rank),
            },
            **selection(ranking.rows, wanted.char_budget, binding.namespace),
            "lexical": {
                "text_configuration": namespace.text_configuration,
                "lexer_fingerprint": namespace.lexer_fingerprint,
                "corpus_notes": ranking.corpus_notes,
                "mean_length": canonical.real(ranking.mean_length),
                "cut_off": canonical.real(ranking.cut_off),
                "lexemes_asked": ranking.lexemes_asked,
                "lexemes_found": ranking.lexemes_found,
                "lexemes_left_out": ranking.lexemes_left_out,
            },
        },
    )


def sealed(
    schema: int,
    *,
    receipt_id: UUID,
    binding: Binding,
    subject: str,
    action: Action,
    policy: str,
    request_id: str,
    request_digest: str,
    query: str,
    created_at: datetime,
    account: dict[str, Any],
) -> dict[str, Any]:
    """Write a receipt of either schema and seal it with its digest; neither query nor note text is in it (R-L-102)."""
    receipt: dict[str, Any] = {
        "schema": schema,
        "receipt_id": str(receipt_id),
        "request_id": request_id,
        "request_digest": request_digest,
        "profile": binding.profile,
        "namespace": binding.namespace,
        "owner": binding.owner,
        "policy_revision": binding.policy_revision,
        "subject": subject,
        "purpose": PURPOSE_OF[action].value,
        "policy": policy,
        "query_digest": canonical.query_digest(query),
        **account,
        "created_at": canonical.instant(created_at),
    }
    receipt["receipt_digest"] = digest_of(receipt)
    return receipt


def selection(
    ranked: Sequence[T], char_budget: int, namespace: str, also: Callable[[T], dict[str, Any]] = lambda note: {}
) -> dict[str, Any]:
    """Account for every ranked note, as selected or as left out; `also` adds what else pins a selected one."""
    taken, left_out = fitting.fit(ranked, char_budget)
    return {
        "outcome": "selected" if taken else "miss",
        "selected": [{**_selected(rank, note, namespace), **also(note)} for rank, note in taken],
        "omitted": [
            {
                "rank": rank,
                "note_id": str(note.note_id),
                "char_count": note.char_count,
                "score": canonical.real(note.score),
                "reason": "char_budget",
            }
            for rank, note in left_out
        ],
    }


def _selected(rank: int, note: Ranked, namespace: str) -> dict[str, Any]:
    return {
        "rank": rank,
        "note_id": str(note.note_id),
        "source_key": note.source_key,
        "source_revision": note.source_revision,
        "text_digest": note.text_digest,
        "lifecycle_version": note.lifecycle_version,
        "projection_digest": projection_digest(
            note_id=note.note_id,
            namespace=namespace,
            source_key=note.source_key,
            source_revision=note.source_revision,
            text_digest=note.text_digest,
            char_count=note.char_count,
            classification=note.classification,
            asserted_origin=note.asserted_origin,
        ),
        "char_count": note.char_count,
        "score": canonical.real(note.score),
    }


_NAMED: Final = ("profile", "namespace", "owner", "policy_revision")
_CHOSEN: Final = ("source_key", "source_revision", "text_digest", "projection_digest")
_GENERATION: Final = ("reference", "manifest_digest")


def opened(row: Recall, namespace: str) -> dict[str, Any]:
    """Return the receipt of a row after checking the row against it; raises `IntegrityFailure` (R-L-141).

    The seal alone would not do: whoever can insert a row can compute it, over anything that is JSON.
    """
    receipt: dict[str, Any] = row.receipt
    agrees = (
        verify(receipt)
        and receipt["receipt_digest"] == row.receipt_digest
        and receipt.get("request_digest") == row.request_digest
        and receipt.get("request_id") == row.request_id
        and receipt.get("subject") == row.subject
        and receipt.get("purpose") == row.purpose
        and receipt.get("schema") == row.schema
        and receipt.get("receipt_id") == str(row.id)
        and receipt.get("created_at") == canonical.instant(row.created_at)
        and receipt.get("profile") == limits.PROFILE
        and receipt.get("namespace") == namespace
        and _is_whole(receipt)
    )
    if not agrees:
        raise IntegrityFailure
    return receipt


def is_intact(row: Recall, namespace: str) -> bool:
    """Say whether the receipt of a row could be opened."""
    try:
        opened(row, namespace)
    except IntegrityFailure:
        return False
    return True


def _is_whole(receipt: dict[str, Any]) -> bool:
    """Say whether what resolution and inspection read of a receipt is there, in its kind."""
    selected, omitted = receipt.get("selected"), receipt.get("omitted")
    return (
        all(isinstance(receipt.get(name), str) for name in _NAMED)
        and isinstance(selected, list)
        and isinstance(omitted, list)
        and all(_is_chosen(one) for one in selected)
        and all(isinstance(one, dict) for one in omitted)
        and (receipt["schema"] != SEMANTIC_SCHEMA or _is_derived(receipt))
    )


def _is_chosen(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and all(isinstance(one.get(name), str) for name in _CHOSEN)
        and all(type(one.get(name)) is int for name in ("rank", "lifecycle_version"))
        and _is_identity(one.get("note_id"))
    )


def _is_derived(receipt: dict[str, Any]) -> bool:
    """Say whether a receipt of schema 2 names its generation, its coverage and the vector of each selected note."""
    generation, coverage = receipt.get("generation"), receipt.get("coverage")
    return (
        isinstance(generation, dict)
        and all(isinstance(generation.get(name), str) for name in _GENERATION)
        and type(generation.get("version")) is int
        and isinstance(coverage, dict)
        and all(type(coverage.get(name)) is int for name in ("promoted", "complete"))
        and type(receipt.get("matched_count")) is int
        and all(
            _is_identity(one.get("derivation_id"))
            and type(one.get("derivation_row_version")) is int
            and isinstance(one.get("vector_digest"), str)
            for one in receipt["selected"]
        )
    )


def _is_identity(given: Any) -> bool:
    return isinstance(given, str) and _UUID.match(given) is not None
