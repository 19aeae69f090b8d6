"""The one question that can be asked by meaning, checked before anything is read (R-L-214, 224..226)."""

import math
from dataclasses import dataclass, field

from archive import canonical
from archive.bindings import Binding
from archive.limits import (
    CHAR_BUDGET_DEFAULT,
    CHAR_BUDGET_MAX,
    CHAR_BUDGET_MIN,
    QUERY_MAX_CHARS,
    TOP_K_DEFAULT,
    TOP_K_MAX,
    TOP_K_MIN,
)
from archive.requests import Checker
from semantic import limits
from semantic.manifest import Configured


@dataclass(frozen=True, slots=True)
class SemanticRecall:
    """A question by meaning. `min_cosine` has no default: how near is near enough is the caller's to say."""

    request_id: str
    query: str = field(repr=False)
    min_cosine: float
    top_k: int = TOP_K_DEFAULT
    char_budget: int = CHAR_BUDGET_DEFAULT

    def __post_init__(self) -> None:
        check = Checker()
        check.address_key("/request_id", self.request_id)
        if not 1 <= len(self.query) <= QUERY_MAX_CHARS:
            check.fault("/query", f"1 to {QUERY_MAX_CHARS} characters")
        check.whole_text("/query", self.query)
        check.within("/top_k", self.top_k, TOP_K_MIN, TOP_K_MAX)
        check.within("/char_budget", self.char_budget, CHAR_BUDGET_MIN, CHAR_BUDGET_MAX)
        if not (
            math.isfinite(self.min_cosine) and limits.MIN_COSINE_LOWEST <= self.min_cosine <= limits.MIN_COSINE_HIGHEST
        ):
            check.fault("/min_cosine", "a finite number from -1 to 1")
        check.settle()

    def digest(self, binding: Binding, subject: str, configured: Configured) -> str:
        """The request digest: binding, subject, purpose, policy, generation, query digest and whole budgets (5.3)."""
        return canonical.digest_of(
            canonical.SEMANTIC_REQUEST,
            {
                **binding.fields(),
                "subject": subject,
                "purpose": "answer",
                "request_id": self.request_id,
                "policy": limits.SEMANTIC_POLICY,
                "generation_reference": configured.reference,
                "manifest_digest": configured.digest,
                "embed_profile": configured.profile,
                "embed_binding": configured.embed_binding_digest,
                "query_digest": canonical.query_digest(self.query),
                "min_cosine": canonical.real(self.min_cosine),
                "top_k": self.top_k,
                "char_budget": self.char_budget,
            },
        )
