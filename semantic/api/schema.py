"""The shapes of what is derived, from the numbers that the code refuses by."""

from typing import Any, Final

from drf_spectacular.utils import OpenApiParameter

from archive import limits as archive_limits
from archive import refusals
from archive.api import schema
from semantic import limits
from semantic import refusals as ours
from semantic.lifecycle import EXPIRED, GenerationState, Invalidation, State

DERIVATION_ID: Final = OpenApiParameter(
    "derivation_id", schema.UUID, OpenApiParameter.PATH, description="The derivation."
)
REFERENCE: Final = OpenApiParameter(
    "reference", schema.IDENTIFIER, OpenApiParameter.PATH, description="The generation's reference."
)
IN_GENERATION: Final = (
    refusals.NamespaceAbsent,
    ours.GenerationAbsent,
    ours.GenerationRetired,
    ours.GenerationMismatch,
    ours.DerivationOff,
)
STATES: Final = [*(state.value for state in State), EXPIRED]

_EMBED_BINDING: Final = schema.component(
    "EmbedBinding",
    schema.shape(
        {
            "provider": {"type": "string"},
            "model": {"type": "string"},
            "model_revision": {"type": "string"},
            "model_digest": schema.DIGEST,
            "tokenizer_digest": schema.DIGEST,
            "document_prefix": {"type": "string"},
            "query_prefix": {"type": "string"},
            "max_bytes": schema.whole(1, limits.EMBED_MAX_BYTES),
            "max_tokens": schema.whole(1, limits.EMBED_MAX_TOKENS),
            "padding": schema.nullable(
                schema.shape({"from": schema.COUNT, "to": schema.COUNT, "by": {"type": "string"}})
            ),
        }
    ),
)
MANIFEST: Final = schema.component(
    "Manifest",
    schema.shape(
        {
            "reference": schema.IDENTIFIER,
            "namespace": schema.ADDRESS_KEY,
            "owner": schema.IDENTIFIER,
            "policy_revision": schema.IDENTIFIER,
            "binding_digest": schema.DIGEST,
            "embed_profile": {"type": "string", "enum": list(limits.PROFILE_DIMENSIONS)},
            "embed_binding": _EMBED_BINDING,
            "chunking": {"type": "string", "enum": [limits.CHUNKING]},
            "dimensions": {"type": "integer", "enum": sorted(set(limits.PROFILE_DIMENSIONS.values()))},
            "metric": {"type": "string", "enum": [limits.METRIC]},
            "storage": {"type": "string", "enum": [limits.STORAGE]},
            "normalization": {"type": "string", "enum": [limits.NORMALIZATION]},
            "l2_tolerance": schema.REAL,
            "attempt_seconds": {"type": "integer", "enum": [limits.ATTEMPT_SECONDS]},
        },
        description="What a generation is made of. It never changes; a change of any of it is another generation.",
    ),
)
CONFIGURED: Final = schema.component(
    "ConfiguredGeneration", schema.shape({"reference": schema.IDENTIFIER, "manifest_digest": schema.DIGEST})
)
COVERAGE: Final = schema.shape({"promoted": schema.COUNT, "complete": schema.COUNT})
GENERATION: Final = schema.component(
    "Generation",
    schema.shape(
        {
            "id": schema.UUID,
            "reference": schema.IDENTIFIER,
            "manifest": MANIFEST,
            "manifest_digest": schema.DIGEST,
            "state": {"type": "string", "enum": [state.value for state in GenerationState]},
            "version": schema.whole(1, 2),
            "registered_by": schema.IDENTIFIER,
            "registered_at": schema.TIME,
            "retired_by": schema.nullable(schema.IDENTIFIER),
            "retired_at": schema.nullable(schema.TIME),
            "coverage": COVERAGE,
            "derivations": schema.shape(dict.fromkeys(STATES, schema.COUNT)),
        }
    ),
)
GENERATIONS: Final = schema.component("Generations", schema.shape({"items": schema.array(GENERATION)}))

_EXECUTION: Final[dict[str, schema.Schema]] = {
    "rendered_bytes": schema.COUNT,
    "tokens": schema.COUNT,
    "vector_digest": schema.DIGEST,
    "l2": schema.REAL,
    "duration_ms": schema.COUNT,
}
DERIVATION_RECEIPT: Final = schema.component(
    "DerivationReceipt",
    schema.shape(
        {
            "profile": {"type": "string"},
            "binding_digest": schema.DIGEST,
            "derivation_digest": schema.DIGEST,
            "attempt": schema.COUNT,
            "input_bytes": schema.COUNT,
            "tokens": schema.COUNT,
            "vector_digest": schema.DIGEST,
            "l2": schema.REAL,
            "started_at": schema.TIME,
            "finished_at": schema.TIME,
        }
    ),
)
DERIVATION: Final = schema.component(
    "Derivation",
    schema.shape(
        {
            "id": schema.UUID,
            "generation": schema.IDENTIFIER,
            "note_id": schema.UUID,
            "source_key": schema.IDENTIFIER,
            "source_revision": schema.IDENTIFIER,
            "text_digest": schema.DIGEST,
            "note_lifecycle_version": schema.VERSION,
            "state": {"type": "string", "enum": STATES},
            "attempt": schema.COUNT,
            "row_version": schema.VERSION,
            "deadline": schema.nullable(schema.TIME),
            "dimensions": schema.COUNT,
            "vector_digest": schema.nullable(schema.DIGEST),
            "receipt": schema.nullable(DERIVATION_RECEIPT),
            "failure_code": schema.nullable({"type": "string"}),
            "invalidation": schema.nullable({"type": "string", "enum": [reason.value for reason in Invalidation]}),
            "prepared_at": schema.TIME,
            "settled_at": schema.nullable(schema.TIME),
        },
        description="One note in one generation. It says nothing of what a recall may select.",
    ),
)
DERIVATIONS: Final = schema.component(
    "Derivations",
    schema.shape(
        {
            "items": schema.array(DERIVATION, archive_limits.PAGE_SIZE_MAX),
            "next_cursor": schema.nullable({"type": "string"}),
        }
    ),
)
PREPARATION: Final = schema.component("Preparation", schema.shape({"note_id": schema.UUID}))
PREPARED: Final = schema.component(
    "Prepared",
    schema.shape(
        {
            "id": schema.UUID,
            "state": {"type": "string", "enum": STATES},
            "attempt": schema.COUNT,
            "row_version": schema.VERSION,
        }
    ),
)
ATTEMPT: Final = schema.component(
    "Attempt",
    schema.shape(
        {"expected_row_version": schema.VERSION, "retry": {"type": "boolean", "default": False}}, optional=("retry",)
    ),
)
REQUESTED: Final = schema.component("RequestedAttempt", schema.shape({"status_url": {"type": "string"}}))

_TOP_K: Final = schema.whole(archive_limits.TOP_K_MIN, archive_limits.TOP_K_MAX)
_BUDGET: Final = schema.whole(archive_limits.CHAR_BUDGET_MIN, archive_limits.CHAR_BUDGET_MAX)
RECALL: Final = schema.component(
    "SemanticRecall",
    schema.shape(
        {
            "request_id": schema.ADDRESS_KEY,
            "query": {"type": "string", "minLength": 1, "maxLength": archive_limits.QUERY_MAX_CHARS},
            "min_cosine": {
                "type": "number",
                "minimum": limits.MIN_COSINE_LOWEST,
                "maximum": limits.MIN_COSINE_HIGHEST,
                "description": "Required: how near is near enough is yours to say.",
            },
            "top_k": {**_TOP_K, "default": archive_limits.TOP_K_DEFAULT},
            "char_budget": {**_BUDGET, "default": archive_limits.CHAR_BUDGET_DEFAULT},
        },
        optional=("top_k", "char_budget"),
    ),
)


def _receipt() -> schema.Schema:
    one: dict[str, Any] = schema.component_shape("Receipt")["properties"]
    selected: dict[str, Any] = schema.component_shape("Selected")["properties"]
    return schema.component(
        "SemanticReceipt",
        schema.shape(
            {
                **one,
                "schema": {"type": "integer", "enum": [2]},
                "policy": {"type": "string", "enum": [limits.SEMANTIC_POLICY]},
                "budgets": schema.shape({"top_k": _TOP_K, "char_budget": _BUDGET}),
                "min_cosine": schema.REAL,
                "generation": schema.shape(
                    {
                        "reference": schema.IDENTIFIER,
                        "manifest_digest": schema.DIGEST,
                        "version": schema.whole(1, 2),
                    }
                ),
                "embed": schema.shape({"profile": {"type": "string"}, "binding_digest": schema.DIGEST}),
                "coverage": COVERAGE,
                "matched_count": schema.COUNT,
                "selected": schema.array(
                    schema.component(
                        "SemanticSelected",
                        schema.shape(
                            {
                                **selected,
                                "derivation_id": schema.UUID,
                                "derivation_row_version": schema.VERSION,
                                "vector_digest": schema.DIGEST,
                                "cosine": schema.shape({"bits": schema.REAL, "decimal": {"type": "string"}}),
                            }
                        ),
                    ),
                    archive_limits.TOP_K_MAX,
                ),
                "lexical": {"nullable": True, "enum": [None]},
                "query_execution": schema.shape(_EXECUTION),
            },
            description="The sealed account of one recall by meaning: what was searched, and of how much.",
        ),
    )


RECEIPT: Final = _receipt()
RECALLED: Final = schema.component(
    "SemanticRecalled",
    schema.shape(
        {
            "outcome": {"type": "string", "enum": ["published", "replayed", "joined"]},
            "receipt": RECEIPT,
            "caller_execution": schema.nullable(schema.component("Execution", schema.shape(_EXECUTION))),
        }
    ),
)
EMBEDDING: Final = (
    refusals.CapabilityNotReady,
    ours.CoordinationUnavailable,
    ours.LeaseUnavailable,
    ours.EmbeddingCancelled,
    ours.EmbeddingTimeout,
    ours.EmbeddingOutputInvalid,
    ours.LeaseCleanupFailed,
    ours.ModelInputOversize,
)
