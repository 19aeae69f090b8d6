"""Receipts: the sealed, text-free account of one recall, and how it is checked (specification 5.6, R-L-101..107)."""

from collections.abc import Callable, Container, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from archive import canonical, fitting, forms, limits
from archive.authority import PURPOSE_OF, Action
from archive.bindings import Binding
from archive.fitting import T
from archive.lexical import Ranked, Ranking
from archive.models import BindingMigration, Namespace, Recall
from archive.records import projection_digest
from archive.refusals import IntegrityFailure
from archive.requests import LexicalRecall
from archive.seals import LEXICAL_SCHEMA, digest_of, verify

__all__ = [
    "LEXICAL_SCHEMA",
    "Bindings",
    "digest_of",
    "inspected",
    "is_intact",
    "lexical",
    "opened",
    "sealed",
    "selection",
    "verify",
]


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


def opened(row: Recall, namespace: str) -> dict[str, Any]:
    """Return the receipt of a row after checking the row against it; raises `IntegrityFailure` (R-L-141).

    The seal alone would not do: whoever can insert a row can compute it, over anything that is JSON.
    """
    receipt: dict[str, Any] = row.receipt
    agrees = (
        verify(receipt)
        and forms.is_whole(receipt)
        and receipt["namespace"] == namespace
        and receipt["receipt_id"] == str(row.id)
        and receipt["created_at"] == canonical.instant(row.created_at)
        and all(receipt[name] == getattr(row, name) for name in _REPEATED)
    )
    if not agrees:
        raise IntegrityFailure
    return receipt


_REPEATED: Final = ("schema", "request_id", "request_digest", "subject", "purpose", "receipt_digest")


def is_intact(row: Recall, namespace: str, bound: Container[tuple[str, str]]) -> bool:
    """Say whether the receipt of a row could be opened, and tells a binding that its namespace has or had."""
    try:
        receipt = opened(row, namespace)
    except IntegrityFailure:
        return False
    return (receipt["owner"], receipt["policy_revision"]) in bound


class Bindings:
    """Every owner and policy revision under which a namespace has been retained; only an earlier one is looked up."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def __contains__(self, bound: object) -> bool:
        return bound == (self._namespace.owner, self._namespace.policy_revision) or bound in self._earlier

    @cached_property
    def _earlier(self) -> frozenset[tuple[str, str]]:
        moved = BindingMigration.objects.filter(namespace=self._namespace)
        return frozenset(moved.values_list("old_owner", "old_policy_revision"))


def inspected(row: Recall, namespace: Namespace) -> dict[str, Any]:
    """Return the receipt of a row for whoever inspects it, under whichever binding it was written."""
    if not is_intact(row, namespace.key, Bindings(namespace)):
        raise IntegrityFailure
    receipt: dict[str, Any] = row.receipt
    return receipt
