"""The closed forms of a schema-2 receipt, a manifest and an attempt's receipt (archive/forms.py, specification 5.8)."""

from typing import Final

from archive import canonical
from archive.forms import (
    ADDRESS_KEY,
    COUNT,
    DIGEST,
    IDENTIFIER,
    IDENTITY,
    VERSION,
    Moment,
    OneOf,
    Optional,
    Real,
    ReceiptForm,
    Record,
    Text,
    Whole,
    Words,
)
from archive.seals import SEMANTIC_SCHEMA
from semantic import limits

_NAME: Final = Words(limits.EMBEDDER_NAME_MAX)
EMBED_BINDING: Final = Record(
    {
        **dict.fromkeys(("provider", "model", "model_revision", "model_digest", "tokenizer_digest"), _NAME),
        **dict.fromkeys(("document_prefix", "query_prefix"), _NAME),
        "max_bytes": Whole(1, limits.EMBED_MAX_BYTES),
        "max_tokens": Whole(1, limits.EMBED_MAX_TOKENS),
        "padding": Optional(Record({"from": Whole(1), "to": Whole(1), "by": _NAME})),
    }
)
MANIFEST: Final = Record(
    {
        "reference": IDENTIFIER,
        "namespace": ADDRESS_KEY,
        "owner": IDENTIFIER,
        "policy_revision": IDENTIFIER,
        "binding_digest": DIGEST,
        "embed_profile": OneOf(*limits.PROFILE_DIMENSIONS),
        "embed_binding": EMBED_BINDING,
        "chunking": OneOf(limits.CHUNKING),
        "dimensions": Whole(1),
        "metric": OneOf(limits.METRIC),
        "storage": OneOf(limits.STORAGE),
        "normalization": OneOf(limits.NORMALIZATION),
        "l2_tolerance": OneOf(canonical.real(limits.L2_TOLERANCE)),
        "attempt_seconds": Whole(limits.ATTEMPT_SECONDS, limits.ATTEMPT_SECONDS),
    }
)
ATTEMPT: Final = Record(
    {
        "profile": OneOf(*limits.PROFILE_DIMENSIONS),
        "binding_digest": DIGEST,
        "derivation_digest": DIGEST,
        "attempt": Whole(1),
        "input_bytes": Whole(1, limits.EMBED_MAX_BYTES),
        "tokens": Whole(0, limits.EMBED_MAX_TOKENS),
        "vector_digest": DIGEST,
        "l2": Real(1 - limits.L2_TOLERANCE, 1 + limits.L2_TOLERANCE),
        "started_at": Moment(),
        "finished_at": Moment(),
    }
)
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
