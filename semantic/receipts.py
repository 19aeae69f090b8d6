"""The schema-2 receipt: what was selected by meaning, from which vectors, and how much of the namespace had one.

Sealed and opened like every receipt (archive/receipts.py). It holds no query, no text and no coordinate (R-L-249).
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from archive import canonical, fitting
from archive.authority import PURPOSE_OF, Action
from archive.bindings import Binding
from archive.records import projection_digest
from archive.seals import SEMANTIC_SCHEMA, digest_of
from semantic import limits
from semantic.exact import Ranked, Ranking
from semantic.manifest import Configured
from semantic.models import Generation
from semantic.requests import SemanticRecall

__all__ = ["SEMANTIC_SCHEMA", "semantic"]


def semantic(
    *,
    receipt_id: UUID,
    binding: Binding,
    subject: str,
    wanted: SemanticRecall,
    configured: Configured,
    generation: Generation,
    ranking: Ranking,
    execution: dict[str, Any],
    created_at: datetime,
) -> dict[str, Any]:
    """Write the receipt of a ranking and of the query's embedding, sealed with its digest."""
    taken, left_out = fitting.fit(ranking.rows, wanted.char_budget)
    receipt: dict[str, Any] = {
        "schema": SEMANTIC_SCHEMA,
        "receipt_id": str(receipt_id),
        "request_id": wanted.request_id,
        "request_digest": wanted.digest(binding, subject, configured),
        "profile": binding.profile,
        "namespace": binding.namespace,
        "owner": binding.owner,
        "policy_revision": binding.policy_revision,
        "subject": subject,
        "purpose": PURPOSE_OF[Action.SEMANTIC_RECALL].value,
        "policy": limits.SEMANTIC_POLICY,
        "query_digest": canonical.query_digest(wanted.query),
        "budgets": {"top_k": wanted.top_k, "char_budget": wanted.char_budget},
        "min_cosine": canonical.real(wanted.min_cosine),
        "generation": {
            "reference": generation.reference,
            "manifest_digest": generation.manifest_digest,
            "version": generation.version,
        },
        "embed": {"profile": configured.profile, "binding_digest": configured.embed_binding_digest},
        "coverage": {"promoted": ranking.promoted, "complete": ranking.complete},
        "matched_count": ranking.matched,
        "outcome": "selected" if taken else "miss",
        "selected": [_selected(rank, note, binding) for rank, note in taken],
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
        "lexical": None,
        "query_execution": execution,
        "created_at": canonical.instant(created_at),
    }
    receipt["receipt_digest"] = digest_of(receipt)
    return receipt


def _selected(rank: int, note: Ranked, binding: Binding) -> dict[str, Any]:
    return {
        "rank": rank,
        "note_id": str(note.note_id),
        "source_key": note.source_key,
        "source_revision": note.source_revision,
        "text_digest": note.text_digest,
        "lifecycle_version": note.lifecycle_version,
        "projection_digest": projection_digest(
            note_id=note.note_id,
            namespace=binding.namespace,
            source_key=note.source_key,
            source_revision=note.source_revision,
            text_digest=note.text_digest,
            char_count=note.char_count,
            classification=note.classification,
            asserted_origin=note.asserted_origin,
        ),
        "char_count": note.char_count,
        "score": canonical.real(note.score),
        "derivation_id": str(note.derivation_id),
        "derivation_row_version": note.derivation_row_version,
        "vector_digest": note.vector_digest,
        "cosine": {"bits": canonical.real(note.score), "decimal": repr(note.score)},
    }
