"""The same counts as the scenarios use."""

from tests.scenarios.conftest import counts

__all__ = ["counts"]
