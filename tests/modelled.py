"""The mark of tests that need the real small model."""

from importlib.util import find_spec

import pytest

from semantic.presets import MINILM_PACKAGE

with_model = [
    pytest.mark.models,
    pytest.mark.skipif(
        find_spec(MINILM_PACKAGE) is None or find_spec("sentence_transformers") is None,
        reason="the models extra is not installed: make models",
    ),
]
