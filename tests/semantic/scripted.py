"""An embedder that a test directs: what it gives, what it counts, when it stops to let the test act."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from semantic.embedders import Driver, Embedded, Item, Kind, Measure
from semantic.embedders.stand_in import StandIn
from semantic.leases import Lease

PROVIDER = "scripted"


class Script:
    """The one script of a test; the fixture `script` clears it."""

    vectors: ClassVar[dict[str, bytes]] = {}
    """What a text is given instead of its word hash."""
    seen: ClassVar[list[tuple[str, Kind]]] = []
    """Every text that was handed over to be embedded, in order."""
    opened: ClassVar[int] = 0
    closed: ClassVar[int] = 0
    calls: ClassVar[int] = 0
    before: ClassVar[Callable[[], Any] | None] = None
    """Called inside the embedder, before it answers."""
    on_close: ClassVar[Callable[[], Any] | None] = None
    changes: ClassVar[dict[str, Any]] = {}
    """Fields of the answer that are replaced."""

    @classmethod
    def clear(cls) -> None:
        cls.vectors, cls.seen, cls.changes = {}, [], {}
        cls.opened = cls.closed = cls.calls = 0
        cls.before = cls.on_close = None


class Scripted:
    def __init__(self, embed_binding: Mapping[str, Any]) -> None:
        self._binding = embed_binding

    def open(self, lease: Lease) -> Driver:
        Script.opened += 1
        return _ScriptedDriver(StandIn(self._binding).open(lease))


class _ScriptedDriver:
    def __init__(self, inner: Driver) -> None:
        self._inner = inner

    def measure(self, item: Item, kind: Kind) -> Measure:
        return self._inner.measure(item, kind)

    def embed(self, items: Sequence[Item], kind: Kind) -> Sequence[Embedded]:
        Script.calls += 1
        Script.seen.extend((item.text, kind) for item in items)
        if Script.before is not None:
            Script.before()
        return [
            replace(embedded, **{"vector": Script.vectors.get(item.text, embedded.vector), **Script.changes})
            for item, embedded in zip(items, self._inner.embed(items, kind), strict=True)
        ]

    def close(self) -> None:
        Script.closed += 1
        self._inner.close()
        if Script.on_close is not None:
            Script.on_close()


def towards(cosine: float, *, place: int = 1, dimensions: int = 1024) -> bytes:
    """A unit vector in the plane of the first place and another; `cosine` with the first place alone."""
    numbers = [0.0] * dimensions
    numbers[0] = cosine
    numbers[place] = (1 - cosine * cosine) ** 0.5
    return struct.pack(f"<{dimensions}f", *numbers)


FIRST = towards(1.0)
"""The vector of the first place alone: what queries are given, so that a note's cosine is its first component."""


def literal(vector: bytes) -> str:
    """A vector as text for PostgreSQL: the way in that the archive does not take."""
    return "[" + ",".join(map(repr, struct.unpack(f"<{len(vector) // 4}f", vector))) + "]"
