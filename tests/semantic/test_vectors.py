"""Vectors as bytes: no bit moves between the model, Python and PostgreSQL, and what is no vector is named."""

import hashlib
import math
import random
import struct

import pytest
from django.db import connection

from semantic import limits, vectors
from semantic.embedders.stand_in import hashed
from semantic.vectors import NotAVector

EXTREMES = (
    0.0,
    -0.0,
    1.401298464324817e-45,
    -1.401298464324817e-45,
    1.1754942e-38,
    1.17549435e-38,
    3.4028234e38,
    -3.4e38,
)


def random_bits(seed: int, count: int = 1_024) -> bytes:
    """Finite float32 of any bit pattern."""
    chance, found = random.Random(seed), b""
    while len(found) < 4 * count:
        bits = chance.randbytes(4)
        if math.isfinite(struct.unpack("<f", bits)[0]):
            found += bits
    return found


@pytest.mark.parametrize("seed", range(8))
def test_any_bits_come_back_from_postgresql(transactional_db, seed):
    given = random_bits(seed) if seed else struct.pack("<8f", *EXTREMES) * 128

    with connection.cursor() as cursor:
        cursor.execute("SELECT vector_send(%s::vector)", [vectors.sent(given)])
        (sent,) = cursor.fetchone()

    assert vectors.received(bytes(sent)) == given
    assert vectors.sent(given) == bytes(sent)
    assert vectors.digest(vectors.received(bytes(sent))) == vectors.digest(given)


def test_the_digest_is_over_the_dimension_and_the_bits():
    given = struct.pack("<2f", 0.6, -0.0)
    payload = b"lychd.vector.f32le@1\x00" + struct.pack("<I", 2) + given
    assert vectors.digest(given) == hashlib.sha256(payload).hexdigest()
    assert vectors.digest(struct.pack("<2f", 0.6, 0.0)) != vectors.digest(given)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_has_no_digest(number):
    with pytest.raises(NotAVector):
        vectors.digest(struct.pack("<2f", 1.0, number))


@pytest.mark.parametrize("length", [1 - limits.L2_TOLERANCE * 0.99, 1.0, 1 + limits.L2_TOLERANCE * 0.99])
def test_a_length_within_the_tolerance_is_admitted_as_it_is(length):
    given = struct.pack("<4f", length, 0, 0, 0)
    assert vectors.admitted(given, 4) == pytest.approx(length, abs=1e-7)


@pytest.mark.parametrize("length", [0.0, 1 - limits.L2_TOLERANCE * 1.01, 1 + limits.L2_TOLERANCE * 1.01, 2.0])
def test_any_other_length_is_refused(length):
    with pytest.raises(NotAVector):
        vectors.admitted(struct.pack("<4f", length, 0, 0, 0), 4)


def test_padding_holds_nothing_but_zeros():
    assert vectors.admitted(struct.pack("<4f", 1, 0, -0.0, 0), 4, kept=2) == 1.0
    with pytest.raises(NotAVector):
        vectors.admitted(struct.pack("<4f", 1, 0, 1e-45, 0), 4, kept=2)


def test_numbers_that_float32_would_round_are_refused():
    assert vectors.packed([0.5, -0.0]) == struct.pack("<2f", 0.5, -0.0)
    for number in (0.1, 1e39, 1e-46):
        with pytest.raises(NotAVector):
            vectors.packed([number])


def test_the_stand_in_is_the_same_everywhere():
    one = hashed(["roses", "want", "sun"])
    assert vectors.digest(one) == vectors.digest(hashed(["roses", "want", "sun"]))
    assert vectors.digest(one) == "fceea7fec325e94ead6912a9a280cc23935b88f846829b60d4394bcff1a1c9cc"
    assert vectors.admitted(hashed([]), 1_024)
