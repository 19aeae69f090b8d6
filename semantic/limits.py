"""Every bound and constant of what is derived (specification 5.1). Tests import these, never repeat them."""

from typing import Final

EMBED_PROFILE: Final = "model.embed@1"
PROFILE_DIMENSIONS: Final = {EMBED_PROFILE: 1_024}
"""A profile names its dimension; vectors of two profiles or two generations are never compared (R-L-293)."""

SEMANTIC_POLICY: Final = "postgres-exact-cosine@1"
CHUNKING: Final = "whole-note"
METRIC: Final = "cosine"
STORAGE: Final = "float32-le"
NORMALIZATION: Final = "unit"
L2_TOLERANCE: Final = 0.001

ATTEMPT_SECONDS: Final = 60
EMBEDDER_NAME_MAX: Final = 1_024
"""A model's name, revision, digests and prefixes, each; a manifest keeps them for good."""
EMBED_MAX_BYTES: Final = 65_536
EMBED_MAX_TOKENS: Final = 32_768
EMBED_LEASES_DEFAULT: Final = 1
LEASE_SECONDS: Final = 90
"""Longer than any attempt, so that a lease runs out only after whoever held it is gone."""

EMBED_BATCH: Final = 32
"""Notes that are claimed, embedded and completed together; all of them within the life of one attempt."""
PREPARE_SLICE: Final = 50
RETIRE_SLICE: Final = 5_000
REBUILD_SLICE: Final = 500

MIN_COSINE_LOWEST: Final = -1.0
MIN_COSINE_HIGHEST: Final = 1.0
