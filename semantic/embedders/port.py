"""What an embedder is: opened with a lease, it measures and embeds whole texts, and is closed again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from semantic.leases import Lease


class Kind(StrEnum):
    """What a text is to the model: something to be found, or something to find it by."""

    DOCUMENT = "document"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class Item:
    """One whole text on its way to a model, under a name of its own."""

    item_id: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """How long a text is as the model would read it, prefix and all."""

    rendered_bytes: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Embedded:
    """What an embedder gives for one item: float32 little-endian bytes, and what it says it did."""

    item_id: str
    vector: bytes = field(repr=False)
    tokens: int
    rendered_bytes: int
    binding_digest: str


class Driver(Protocol):
    """A model that is ready to work. It never cuts a text; what it cannot read whole it has no vector for."""

    def measure(self, item: Item, kind: Kind) -> Measure:
        """Count the bytes and tokens of an item by the model's own tokenizer."""

    def embed(self, items: Sequence[Item], kind: Kind) -> Sequence[Embedded]:
        """Embed items together; one answer an item, in order."""

    def close(self) -> None:
        """Let go of what was opened."""


class Embedder(Protocol):
    """A model that can be opened by whoever holds a lease."""

    def open(self, lease: Lease) -> Driver:
        """Make the model ready; raises `CapabilityNotReady` where it cannot be loaded or is not the one described."""
