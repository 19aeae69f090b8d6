"""Named points at which a test may hold an operation; in service each costs one attribute lookup.

The race explorer in tests/races decides who moves next by parking actors here (docs/decisions/gates.md).
"""

import threading
from collections.abc import Callable

_local = threading.local()


def gate(name: str) -> None:
    """Do nothing, unless a test has put an actor on this thread."""
    park: Callable[[str], None] | None = getattr(_local, "park", None)
    if park is not None:
        park(name)


def occupy(park: Callable[[str], None] | None) -> None:
    """Make `park` be called at every gate of this thread; None clears it."""
    _local.park = park
