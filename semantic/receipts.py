"""The schema-2 receipt: what was selected by meaning, from which vectors, and how much of the namespace had one.

Sealed and opened like every receipt (archive/receipts.py). It holds no query, no text and no coordinate (R-L-249).
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from archive import canonical, receipts
from archive.authority import Action
from archive.bindings import Binding
from archive.seals import SEMANTIC_SCHEMA
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
    """Write the schema-2 receipt of a ranking by meaning, and of the query's embedding."""
    return receipts.sealed(
        SEMANTIC_SCHEMA,
        receipt_id=receipt_id,
        binding=binding,
        subject=subject,
        action=Action.SEMANTIC_RECALL,
        policy=limits.SEMANTIC_POLICY,
        request_id=wanted.request_id,
        request_digest=wanted.digest(binding, subject, configured),
        query=wanted.query,
        created_at=created_at,
        account={
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
            **receipts.selection(ranking.rows, wanted.char_budget, binding.namespace, _pinned),
            "lexical": None,
            "query_execution": execution,
        },
    )


def _pinned(note: Ranked) -> dict[str, Any]:
    """Name the vector that a note was ranked by."""
    return {
        "derivation_id": str(note.derivation_id),
        "derivation_row_version": note.derivation_row_version,
        "vector_digest": note.vector_digest,
        "cosine": {"bits": canonical.real(note.score), "decimal": repr(note.score)},
    }
