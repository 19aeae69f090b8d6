"""A vector as bytes: float32, little-endian, bits kept from the model to the database and back (R-L-172..174).

Nothing here changes a number. What is not finite, is nothing but zeros, or is not of unit length is refused, for notes
and for queries alike: pgvector stores a zero vector and ranks its NaN above every match.
"""

import math
import struct
import sys
from array import array
from collections.abc import Sequence
from typing import Final

from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.pq import Format

from archive import canonical
from semantic.limits import L2_TOLERANCE

_ITEM: Final = 4
_SENT_HEAD: Final = struct.Struct(">HH")


class NotAVector(ValueError):
    """Bytes or numbers that no profile allows; the message says what is wrong and holds no coordinate."""


def packed(numbers: Sequence[float]) -> bytes:
    """Pack numbers that are float32 already; a number that float32 would round or overflow is refused."""
    try:
        found = array("f", numbers)
    except (OverflowError, TypeError):
        raise NotAVector("a component is no float32") from None
    if any(kept != given and not (kept != kept and given != given) for kept, given in zip(found, numbers, strict=True)):
        raise NotAVector("a component is no float32")
    return _little(found).tobytes()


def components(vector: bytes) -> array:  # type: ignore[type-arg]
    """Read the components; each is the float32 with exactly these bits."""
    if len(vector) % _ITEM:
        raise NotAVector("not a whole number of float32 components")
    found = array("f")
    found.frombytes(vector)
    return _little(found)


def _little(numbers: array) -> array:  # type: ignore[type-arg]
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers


def l2(vector: bytes) -> float:
    """The length in float64, to within one unit in the last place."""
    return math.hypot(*components(vector))


def admitted(vector: bytes, dimensions: int, kept: int | None = None) -> float:
    """Return the length of a vector that may be stored or asked with; raises `NotAVector` for any other.

    Beyond the first `kept` components there may be nothing but zeros.
    """
    if not isinstance(vector, bytes) or len(vector) != dimensions * _ITEM:
        raise NotAVector(f"not {dimensions} float32 components")
    numbers = components(vector)
    if not all(map(math.isfinite, numbers)):
        raise NotAVector("a component is not finite")
    if kept is not None and any(numbers[kept:]):
        raise NotAVector("something else than zeros where it is padded")
    length = l2(vector)
    if abs(length - 1.0) > L2_TOLERANCE:
        raise NotAVector("not of unit length")
    return length


def digest(vector: bytes) -> str:
    """The digest of exactly these bits, signed zeros included; not finite is refused (5.3)."""
    numbers = components(vector)
    if not all(map(math.isfinite, numbers)):
        raise NotAVector("a component is not finite")
    return canonical.digest(canonical.VECTOR, struct.pack("<I", len(numbers)) + vector)


def received(sent: bytes) -> bytes:
    """Turn what `vector_send` gives (big-endian, with a head) into canonical bytes."""
    count, unused = _SENT_HEAD.unpack_from(sent)
    body = sent[_SENT_HEAD.size :]
    if unused or len(body) != count * _ITEM:
        raise NotAVector("not what vector_send writes")
    found = array("f")
    found.frombytes(body)
    if sys.byteorder == "little":
        found.byteswap()
    return _little(found).tobytes()


class Sent(bytes):
    """What `vector_recv` or `halfvec_recv` reads: to be bound as a parameter that is cast, or to be copied in."""


class _AsItIs(Dumper):
    """Hands the bytes over in binary form and leaves the type to the cast beside the placeholder."""

    format = Format.BINARY

    def dump(self, obj: Sent) -> bytes:
        return bytes(obj)


def taught(connection: AdaptContext) -> None:
    """Let a connection bind what is `Sent`; psycopg's adapters of the process stay as they are.

    Django copies those once, at the first connection that a process makes, which may be long before this is imported.
    """
    connection.adapters.register_dumper(Sent, _AsItIs)


def sent(vector: bytes) -> Sent:
    """Turn canonical bytes into what `vector_recv` reads, bit by bit."""
    numbers = components(vector)
    return Sent(struct.pack(f">HH{len(numbers)}f", len(numbers), 0, *numbers))


def sent_halves(numbers: Sequence[float]) -> Sent:
    """Turn numbers into what `halfvec_recv` reads; each is rounded to half precision, ties to even."""
    return Sent(struct.pack(f">HH{len(numbers)}e", len(numbers), 0, *numbers))


def halves(given: Sent) -> tuple[float, ...]:
    """The numbers that `sent_halves` has written."""
    return struct.unpack_from(f">{(len(given) - _SENT_HEAD.size) // 2}e", given, _SENT_HEAD.size)
