"""The stand-in embedder: hashes words into a vector, the same on every machine, and knows nothing of meaning.

For tests and for a demonstration without a model; it is called a stand-in wherever it is shown.
"""

import hashlib
import math
import re
import struct
import unicodedata
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from semantic import limits, vectors
from semantic.embedders.port import Driver, Embedded, Item, Kind, Measure
from semantic.leases import Lease
from semantic.manifest import embed_binding_digest

_WORDS: Final = re.compile(r"\w+")
_PLACES: Final = 32
_DIMENSIONS: Final = limits.PROFILE_DIMENSIONS[limits.EMBED_PROFILE]


class StandIn:
    """Opens at once; there is nothing to load."""

    def __init__(self, embed_binding: Mapping[str, Any]) -> None:
        self._binding = dict(embed_binding)

    def open(self, lease: Lease) -> Driver:
        return _StandInDriver(self._binding)


class _StandInDriver:
    def __init__(self, embed_binding: dict[str, Any]) -> None:
        self._binding = embed_binding
        self._digest = embed_binding_digest(embed_binding)

    def measure(self, item: Item, kind: Kind) -> Measure:
        rendered = self._rendered(item, kind)
        return Measure(len(rendered.encode("utf-8")), len(_words(rendered)))

    def embed(self, items: Sequence[Item], kind: Kind) -> Sequence[Embedded]:
        return [self._embedded(item, kind) for item in items]

    def close(self) -> None:
        """Nothing was opened."""

    def _rendered(self, item: Item, kind: Kind) -> str:
        return f"{self._binding['document_prefix' if kind is Kind.DOCUMENT else 'query_prefix']}{item.text}"

    def _embedded(self, item: Item, kind: Kind) -> Embedded:
        measured = self.measure(item, kind)
        vector = hashed(_words(self._rendered(item, kind)))
        return Embedded(item.item_id, vector, measured.tokens, measured.rendered_bytes, self._digest)


def _words(text: str) -> list[str]:
    return _WORDS.findall(unicodedata.normalize("NFKC", text).lower())


def hashed(words: Sequence[str]) -> bytes:
    """Add up a few signed places for each word and bring the sum to unit length; no word at all is one place."""
    sums = [0] * _DIMENSIONS
    for word in words or ("",):
        for place, sign in _places(word):
            sums[place] += sign
    length = math.sqrt(sum(number * number for number in sums))
    if not length:
        # Two words that cancel each other out everywhere.
        return hashed([*words, ""])
    return vectors.packed(array("f", [number / length for number in sums]))


def _places(word: str) -> Iterator[tuple[int, int]]:
    for (number,) in struct.iter_unpack("<H", hashlib.shake_256(word.encode("utf-8")).digest(2 * _PLACES)):
        yield number % _DIMENSIONS, 1 if number & 0x8000 else -1
