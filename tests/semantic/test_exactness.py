"""The ranking against brute force: the same rows, the same order, the same bits, whatever lies close together."""

import math
import random
import struct
from typing import Any

import pytest
from django.db import connection

from archive.models import Namespace
from archive.transactions import shared
from semantic import exact, vectors
from semantic.models import Generation
from semantic.operations.generations import register
from semantic.presets import STAND_IN
from tests import cast
from tests.semantic.conftest import derivation
from tests.semantic.scripted import literal
from tests.semantic.stock import stock

DIMENSIONS = 1024


def unit(numbers) -> bytes:
    length = math.sqrt(math.fsum(number * number for number in numbers))
    return struct.pack(f"<{DIMENSIONS}f", *(number / length for number in numbers))


def noise(chance: random.Random) -> list[float]:
    return [chance.gauss(0, 1) for _ in range(DIMENSIONS)]


def nudged(vector: bytes, place: int, steps: int) -> bytes:
    """The same vector with one component moved by some units in the last place."""
    bits = list(struct.unpack(f"<{DIMENSIONS}I", vector))
    bits[place] += steps
    return struct.pack(f"<{DIMENSIONS}I", *bits)


class Field:
    """Eligible rows among ineligible ones: noise, clusters, and runs of near-ties around some centres."""

    def __init__(self, seed: int, rows: int, centres: int, ties: int) -> None:
        chance = random.Random(seed)
        self.centres = [unit(noise(chance)) for _ in range(centres)]
        self.rows: list[tuple[bytes, bool]] = []
        for number in range(rows):
            made = noise(chance)
            if number % 3 == 0:
                middle = vectors.components(self.centres[number % centres])
                made = [32 * c + 0.7 * n for c, n in zip(middle, made, strict=True)]
            self.rows.append((unit(made), chance.random() < 0.8))
        for centre in self.centres:
            for step in range(ties):
                # From one unit in the last place upwards, and rows that half precision puts in another order.
                near = [c + 0.02 * n / 32 for c, n in zip(vectors.components(centre), noise(chance), strict=True)]
                tie = unit(near) if step % 2 else nudged(centre, chance.randrange(DIMENSIONS), 1 + step // 2)
                self.rows.append((tie, chance.random() < 0.8))
        chance.shuffle(self.rows)
        self.queries = [
            query
            for centre in self.centres
            for query in (
                centre,
                unit([c + 0.3 * n / 32 for c, n in zip(vectors.components(centre), noise(chance), strict=True)]),
            )
        ]
        self.queries += [unit(noise(chance)) for _ in range(centres)]


# Every eligible full vector, each read once: `OFFSET 0` keeps the score from being computed again for the threshold.
BRUTE = """
SELECT note_id, score, count(*) OVER ()
FROM (
    SELECT d.note_id, 1 - (d.vector <=> %(query)s::vector) AS score
    FROM semantic_derivation d JOIN archive_note n ON n.id = d.note_id
    WHERE d.generation_id = %(generation)s AND d.state = 'complete' AND n.state = 'promoted'
    OFFSET 0
) AS scored
WHERE score >= %(min_cosine)s
ORDER BY score DESC, note_id
LIMIT %(most)s
"""


def brute(generation, query: bytes, min_cosine: float, most: int | None = None) -> tuple[list[tuple[Any, float]], int]:
    """The first rows of a plain scan over full vectors, and how many there are in all."""
    with connection.cursor() as cursor:
        values = {"query": literal(query), "generation": generation.id, "min_cosine": min_cosine, "most": most}
        cursor.execute(BRUTE, values)
        found = cursor.fetchall()
    return [row[:2] for row in found], found[0][2] if found else 0


@pytest.fixture
def namespace(meaning, alice, otto):
    cast.admitted(alice)
    register(otto)
    return meaning


def differences(garden, queries, *, slack=1.0, top_k=5, thresholds=(-1.0, 0.2)) -> tuple[int, int, int]:
    """How many queries were asked, how many came out otherwise than brute force, how many were close calls."""
    asked = wrong = close = 0
    generation = Generation.objects.get()
    for query in queries:
        _, bound = exact.halved(query, DIMENSIONS)
        # A hold each, since none lasts longer than a transaction may.
        for min_cosine in thresholds:
            with shared(garden.binding) as held:
                first, count = brute(generation, query, min_cosine, top_k + 1)
                ranking = exact.rank(held, generation, query, top_k=top_k, min_cosine=min_cosine, slack=slack)
            got = [(row.note_id, row.score) for row in ranking.rows]
            asked += 1
            wrong += got != first[:top_k] or ranking.matched != count
            if len(first) > top_k:
                close += first[top_k - 1][1] - first[top_k][1] <= 2 * bound
    return asked, wrong, close


def test_the_ranking_is_brute_force_to_the_bit(namespace, owner):
    field = Field(seed=1, rows=600, centres=12, ties=40)
    stock(owner, Namespace.objects.get().id, Generation.objects.get().id, field.rows)

    asked, wrong, close = differences(namespace, field.queries, thresholds=(-1.0, 0.2, 0.999, 1.0))

    assert (asked, wrong) == (4 * 36, 0)
    assert close >= 24


def test_without_its_bound_the_first_pass_would_be_wrong(namespace, owner):
    field = Field(seed=2, rows=100, centres=20, ties=60)
    stock(owner, Namespace.objects.get().id, Generation.objects.get().id, field.rows)

    assert differences(namespace, field.queries)[1] == 0
    assert differences(namespace, field.queries, slack=0.0)[1] > 0


def halved(vector: bytes) -> list[float]:
    """A vector as half precision keeps it."""
    return list(struct.unpack(f"<{DIMENSIONS}e", struct.pack(f"<{DIMENSIONS}e", *vectors.components(vector))))


def test_two_that_half_precision_turns_around_are_put_right(namespace, owner):
    chance = random.Random(8)
    query = unit([1.0, 1.0, 1.0, *[0.0] * 1021])
    made = [unit([*(1 + chance.gauss(0, 0.01) for _ in range(3)), *[0.0] * 1021]) for _ in range(200)]

    def product(one, other):
        return math.fsum(a * b for a, b in zip(one[:3], other[:3], strict=True))

    scored = [
        (product(vectors.components(one), vectors.components(query)), product(halved(one), halved(query)), one)
        for one in made
    ]
    # The first is nearer, and half precision says the opposite, by as much as can be found.
    gap, nearer, further = max(
        ((min(a[0] - b[0], b[1] - a[1]), a[2], b[2]) for a in scored for b in scored), key=lambda found: found[0]
    )
    assert gap > 1e-5
    ids = stock(owner, Namespace.objects.get().id, Generation.objects.get().id, [(nearer, True), (further, True)])

    def first(slack: float) -> list[Any]:
        with shared(namespace.binding) as held:
            ranking = exact.rank(held, Generation.objects.get(), query, top_k=1, min_cosine=-1.0, slack=slack)
        return [row.note_id for row in ranking.rows]

    assert first(1.0) == [ids[0][0]]
    assert first(0.0) == [ids[1][0]], "the bound is good for nothing here"


def test_the_bound_holds_for_every_row(namespace, owner):
    field = Field(seed=3, rows=300, centres=10, ties=20)
    stock(owner, Namespace.objects.get().id, Generation.objects.get().id, field.rows)

    with connection.cursor() as cursor:
        for query in field.queries:
            half, bound = exact.halved(query, DIMENSIONS)
            cursor.execute(
                "SELECT max(abs(-(s.half <#> %s::halfvec) - (1 - (d.vector <=> %s::vector)))), count(*)"
                " FROM semantic_scan s JOIN semantic_derivation d ON d.id = s.derivation_id",
                [half, literal(query)],
            )
            (worst, count) = cursor.fetchone()
            assert count > 300
            assert worst <= bound


def test_float64_agrees_with_the_database(namespace, owner):
    field = Field(seed=4, rows=60, centres=4, ties=0)
    ids = stock(owner, Namespace.objects.get().id, Generation.objects.get().id, field.rows)
    given = {note: vectors.components(vector) for (note, _), (vector, _) in zip(ids, field.rows, strict=True)}

    for query in field.queries:
        asked = vectors.components(query)
        for note, score in brute(Generation.objects.get(), query, -1.0)[0]:
            stored = given[note]
            dot = math.fsum(one * other for one, other in zip(stored, asked, strict=True))
            length = math.sqrt(math.fsum(n * n for n in stored) * math.fsum(n * n for n in asked))
            assert abs(dot / length - score) < 1e-6


def test_a_whole_corpus_of_ties_is_ordered_by_identity(namespace, owner):
    same = unit([1.0] * DIMENSIONS)
    ids = stock(owner, Namespace.objects.get().id, Generation.objects.get().id, [(same, True)] * 400)

    with shared(namespace.binding) as held:
        ranking = exact.rank(held, Generation.objects.get(), same, top_k=20, min_cosine=-1.0)

    assert [row.note_id for row in ranking.rows] == sorted(note for note, _ in ids)[:20]
    assert (ranking.matched, ranking.complete, ranking.promoted) == (400, 400, 400)


def test_padding_is_left_out_of_the_scan_and_changes_no_score(meaning, alice, otto, owner, settings):
    padding = {"from": 384, "to": DIMENSIONS, "by": "zeros-after-normalize"}
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(padding=padding)}
    cast.admitted(alice)
    register(otto)
    chance = random.Random(5)
    rows = [(unit([*noise(chance)[:384], *[0.0] * 640]), chance.random() < 0.8) for _ in range(400)]
    stock(owner, Namespace.objects.get().id, Generation.objects.get().id, rows)
    queries = [vector for vector, _ in rows[:20]]
    # A query that is not padded loses nothing either: what it has beyond meets zeros.
    queries += [unit(noise(chance)) for _ in range(10)]

    assert owner.execute("SELECT DISTINCT vector_dims(half) FROM semantic_scan").fetchall() == [(384,)]
    with shared(meaning.binding) as held:
        generation = Generation.objects.get()
        for query in queries:
            for min_cosine in (-1.0, 0.0, 0.1):
                ranking = exact.rank(held, generation, query, top_k=5, min_cosine=min_cosine)
                first, count = brute(generation, query, min_cosine, 5)
                assert [(row.note_id, row.score) for row in ranking.rows] == first
                assert ranking.matched == count


def test_the_stand_in_is_not_padded():
    assert STAND_IN["padding"] is None


@pytest.mark.slow
def test_a_thousand_queries_over_twenty_thousand_eligible_rows(namespace, owner):
    field = Field(seed=6, rows=20_000, centres=200, ties=30)
    chance = random.Random(7)
    queries = [*field.queries, *(unit(noise(chance)) for _ in range(400))][:1_000]
    stock(owner, Namespace.objects.get().id, Generation.objects.get().id, field.rows)
    assert owner.execute("SELECT count(*) FROM semantic_scan").fetchone()[0] >= 20_000

    asked, wrong, close = differences(namespace, queries, thresholds=(0.0,))

    assert (asked, wrong) == (1_000, 0)
    assert close >= 300


def test_the_rows_of_one_generation_are_read_from_the_last(namespace, owner):
    """Note [Last page first]: in any other direction the same pages take half as long again."""
    field = Field(seed=6, rows=60, centres=4, ties=0)
    stock(owner, Namespace.objects.get().id, Generation.objects.get().id, field.rows)
    plans: list[str] = []

    def explained(execute, statement, parameters, many, context):
        if "WITH rough" in statement:
            with connection.connection.cursor() as plain:
                plans.extend(row[0] for row in plain.execute("EXPLAIN " + statement, parameters).fetchall())
        return execute(statement, parameters, many, context)

    with connection.execute_wrapper(explained):
        for min_cosine in (-1.0, 0.2):
            with shared(namespace.binding) as held:
                exact.rank(held, Generation.objects.get(), field.queries[0], top_k=5, min_cosine=min_cosine)

    scans = [line for line in plans if "on semantic_scan" in line]
    assert len(scans) == 2
    assert all("Index Scan Backward using semantic_scan_generation" in line for line in scans)
    (unfolded,) = owner.execute(
        "SELECT 'deduplicate_items=off' = ANY(reloptions) FROM pg_class WHERE relname = 'semantic_scan_generation'"
    ).fetchone()
    assert unfolded
