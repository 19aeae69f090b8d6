"""The closed form of the schema-2 receipt (archive/forms.py, specification 5.8, R-L-249)."""

from typing import Final

from archive import canonical
from archive.forms import COUNT, DIGEST, IDENTIFIER, IDENTITY, VERSION, OneOf, Real, ReceiptForm, Record, Text, Whole
from archive.seals import SEMANTIC_SCHEMA
from semantic import limits

SEMANTIC: Final = ReceiptForm(
    schema=SEMANTIC_SCHEMA,
    policies=(limits.SEMANTIC_POLICY,),
    request_domain=canonical.SEMANTIC_REQUEST,
    asked={
        "generation_reference": ("generation", "reference"),
        "manifest_digest": ("generation", "manifest_digest"),
        "embed_profile": ("embed", "profile"),
        "embed_binding": ("embed", "binding_digest"),
        "min_cosine": ("min_cosine",),
    },
    account={
        "min_cosine": Real(limits.MIN_COSINE_LOWEST, limits.MIN_COSINE_HIGHEST),
        "generation": Record({"reference": IDENTIFIER, "manifest_digest": DIGEST, "version": VERSION}),
        "embed": Record({"profile": OneOf(*limits.PROFILE_DIMENSIONS), "binding_digest": DIGEST}),
        "coverage": Record({"promoted": COUNT, "complete": COUNT}),
        "matched_count": COUNT,
        "lexical": OneOf(),
        "query_execution": Record(
            {
                "rendered_bytes": Whole(1, limits.EMBED_MAX_BYTES),
                "tokens": Whole(0, limits.EMBED_MAX_TOKENS),
                "vector_digest": DIGEST,
                "l2": Real(1 - limits.L2_TOLERANCE, 1 + limits.L2_TOLERANCE),
                "duration_ms": COUNT,
            }
        ),
    },
    least=("min_cosine",),
    budgets={},
    selected={
        "derivation_id": IDENTITY,
        "derivation_row_version": VERSION,
        "vector_digest": DIGEST,
        "cosine": Record({"bits": Real(), "decimal": Text("-?[0-9](\\.[0-9]+)?(e-[0-9]+)?")}),
    },
)
