"""Which eligible notes are nearest to a query, exactly: the one ranked query of vectors (0.6, R-L-227..230).

It takes a held namespace and an active generation and gives rows in a total order: score descending, then note UUID.
The score is `1 - (vector <=> query)` as PostgreSQL computes it on full vectors; no approximate index exists.

# Note [Half first, exact after]
`semantic_scan` holds one row for each complete derivation, and a trigger keeps it so in the transaction that changes
that: eligibility is decided before anything is ranked. Its copies are in half precision, in-line, and without the
places that padding fills with zeros, so that reading all of them is quick. A first pass takes their inner products with
the query; whatever the true score may still bring into the answer - everything within twice the error bound of the k-th
best, and everything within the bound of the threshold - is scored again on full vectors. docs/exactness.md derives the
bound and proves that nothing can be lost.

# Note [Last page first]
A table's pages fill from their end, so reading rows in the order of their numbers jumps back in memory at each of them,
where no processor fetches ahead. The index on the generation keeps one entry a row, in the order of the rows; walked
from its end, it visits the rows of one generation alone, pages last to first and memory upwards. That needs a range (an
equality has no direction) and an order by it; it decides what is read when, never what is read. The second key of that
order lets each of several processes read to its end before the first of them waits for another.

# Note [Loud, not short]
Each row that is scored is read again through the truth: note promoted at the pinned version with text, derivation
complete. A scan row without that would be a broken trigger, so it refuses the whole recall instead of leaving a hole
that the bound knows nothing of.
"""

import math
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper

from archive import lexical
from archive.models import Namespace
from archive.refusals import CapabilityNotReady, IntegrityFailure
from semantic import vectors
from semantic.limits import MIN_COSINE_LOWEST
from semantic.manifest import kept_dimensions
from semantic.models import Generation


@dataclass(frozen=True, slots=True)
class Ranked(lexical.Ranked):
    """One note of the ranking, with the derivation that its score was computed from; not its text, not its vector."""

    derivation_id: UUID
    derivation_row_version: int
    vector_digest: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """The nearest notes in order, how many reached the threshold, and what was searched of what there is."""

    rows: tuple[Ranked, ...]
    matched: int
    promoted: int
    complete: int


# What there is, and for the rest of this transaction: pairs of the first pass stay in memory, the scan takes the index
# whatever the table's size, and one of many pages may be shared among processes although few rows come out of it, which
# the usual costs do not foresee. Without huge pages each of them has to map what it reads, 4 kB after 4 kB, which eats
# what it saves on any but a very large copy.
_COVERAGE: Final = """
SELECT coalesce((SELECT notes FROM archive_corpus WHERE namespace_id = %s), 0)::bigint,
       coalesce((SELECT complete FROM semantic_coverage WHERE generation_id = %s), 0)::bigint,
       coalesce((SELECT rebuilding FROM semantic_coverage WHERE generation_id = %s), false),
       set_config('work_mem', '64MB', true), set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true), set_config('parallel_setup_cost', '0', true),
       set_config('parallel_tuple_cost', '0', true), set_config('min_parallel_index_scan_size', '0', true),
       set_config('min_parallel_table_scan_size',
                  CASE current_setting('huge_pages_status', true) WHEN 'on' THEN '32MB' ELSE '256MB' END, true)
"""

# The first pass over a generation; see Note [Last page first].
_ROUGH: Final = """
    SELECT derivation_id, -away AS score
    FROM (
        SELECT derivation_id, half <#> %(half)s::halfvec AS away
        FROM semantic_scan
        WHERE generation_id BETWEEN %(generation)s::uuid AND %(generation)s::uuid
        ORDER BY generation_id DESC, away
        {most}
    ) AS each
    {near}
"""
# Every row of which it is open whether it reaches the threshold, or that surely does.
_WITHIN: Final = _ROUGH.format(most="", near="WHERE away <= %(bound)s::float8 - %(min_cosine)s::float8")
# Without a threshold every row is one, and the first of them are enough until they are seen not to be.
_FIRST: Final = _ROUGH.format(most="LIMIT %(most)s::bigint", near="")

# See Note [Half first, exact after]. `OFFSET 0` keeps the planner from scoring full vectors of rows that are not near.
_RANK: Final = """
WITH rough AS MATERIALIZED ({rough}),
line AS MATERIALIZED (
    SELECT greatest(
        (SELECT score FROM rough ORDER BY score DESC OFFSET %(top_k)s::bigint - 1 LIMIT 1) - 2 * %(bound)s::float8,
        %(min_cosine)s::float8 - %(bound)s::float8
    ) AS score
),
-- Those that may be in the answer, and those of which it is open whether they reach the threshold.
near AS MATERIALIZED (
    SELECT rough.derivation_id, rough.score
    FROM rough CROSS JOIN line
    WHERE rough.score >= line.score
       OR rough.score <= %(min_cosine)s::float8 + %(bound)s::float8
),
scored AS MATERIALIZED (
    SELECT near.derivation_id, near.score AS rough, held.note_id, held.row_version, held.vector_digest, held.score
    FROM near LEFT JOIN LATERAL (
        SELECT derivation.note_id, derivation.row_version, derivation.vector_digest,
               1 - (derivation.vector <=> %(query)s::vector) AS score
        FROM semantic_derivation AS derivation
        WHERE derivation.id = near.derivation_id AND derivation.namespace_id = %(namespace)s::bigint
          AND derivation.generation_id = %(generation)s::uuid AND derivation.state = 'complete'
          AND derivation.vector IS NOT NULL
          AND EXISTS (
              SELECT FROM archive_note AS note
              WHERE note.id = derivation.note_id AND note.namespace_id = derivation.namespace_id
                AND note.state = 'promoted' AND note.text IS NOT NULL
                AND note.lifecycle_version = derivation.note_lifecycle_version
                AND note.text_digest = derivation.text_digest)
        OFFSET 0
    ) AS held ON true
),
figures AS MATERIALIZED (
    SELECT (SELECT count(*) FROM rough WHERE score > %(min_cosine)s::float8 + %(bound)s::float8)
           + (SELECT count(*) FROM scored
              WHERE rough <= %(min_cosine)s::float8 + %(bound)s::float8 AND score >= %(min_cosine)s::float8) AS matched,
           (SELECT count(*) FROM scored WHERE note_id IS NULL OR score = 'NaN') AS astray,
           (SELECT count(*) FROM rough) AS seen,
           (SELECT min(rough.score) >= min(line.score) FROM rough CROSS JOIN line) AS all_near
),
best AS MATERIALIZED (
    SELECT derivation_id, note_id, row_version, vector_digest, score
    FROM scored
    WHERE score >= %(min_cosine)s::float8 AND score <> 'NaN'
    ORDER BY score DESC, note_id
    LIMIT %(top_k)s::bigint
)
SELECT figures.matched, figures.astray, figures.seen, figures.all_near,
       note.id, source.source_key, note.source_revision, note.text_digest, note.lifecycle_version, note.char_count,
       note.classification, note.asserted_origin, best.score, best.derivation_id, best.row_version, best.vector_digest
FROM figures
LEFT JOIN (
    best JOIN archive_note AS note ON note.id = best.note_id JOIN archive_source AS source ON source.id = note.source_id
) ON true
ORDER BY best.score DESC NULLS LAST, note.id
"""
_RANK_WITHIN: Final = _RANK.format(rough=_WITHIN)
_RANK_FIRST: Final = _RANK.format(rough=_FIRST)


def rank(
    namespace: Namespace, generation: Generation, query: bytes, *, top_k: int, min_cosine: float, slack: float = 1.0
) -> Ranking:
    """Rank the complete derivations of a held namespace and active generation against a unit vector.

    `slack` scales the error bound: 1 is what is proved, more costs time and changes nothing, less is for the test that
    shows what the bound is good for.
    """
    half, bound = halved(query, kept_dimensions(generation.manifest))
    values: dict[str, Any] = {
        "namespace": namespace.id,
        "generation": generation.id,
        "half": half,
        "query": vectors.sent(query),
        "bound": bound * slack,
        "min_cosine": min_cosine,
        "top_k": top_k,
    }
    with connection.cursor() as cursor:
        cursor.execute(_COVERAGE, [namespace.id, generation.id, generation.id])
        promoted, complete, rebuilding, *_ = cursor.fetchone()
        if rebuilding:
            raise CapabilityNotReady
        if min_cosine > MIN_COSINE_LOWEST:
            cursor.execute(_RANK_WITHIN, values)
            found = cursor.fetchall()
            matched = found[0][0]
        else:
            found, matched = _first(cursor, values, top_k), complete
    if found[0][1]:
        raise IntegrityFailure
    return Ranking(tuple(Ranked(*row[4:]) for row in found if row[4] is not None), matched, promoted, complete)


def _first(cursor: CursorWrapper, values: dict[str, Any], top_k: int) -> list[Any]:
    """Look at more and more of the first rows until the last of them is surely out of the answer, or is the last."""
    most = top_k + 100
    while True:
        cursor.execute(_RANK_FIRST, {**values, "most": most})
        found: list[Any] = cursor.fetchall()
        _, _, seen, all_near = found[0][:4]
        if seen < most or not all_near:
            return found
        most *= 8


# What docs/exactness.md derives: unit roundoffs, and how far a sum of n products may be off in any order.
_HALF: Final = 2.0**-11
_HALF_TINY: Final = 2.0**-25
_SINGLE: Final = 2.0**-24


def halved(query: bytes, kept: int) -> tuple[vectors.Sent, float]:
    """Write the query in half precision, brought to length one, and bound how far a first-pass score may be off.

    Only the kept places are written: beyond them every stored vector is zero, so nothing there adds to a score.
    """
    numbers = vectors.components(query)
    length = vectors.l2(query)
    unit = [number / length for number in numbers[:kept]]
    half = vectors.sent_halves(unit)
    return half, error_bound(len(numbers), math.dist(vectors.halves(half), unit))


def error_bound(dimensions: int, query_moved: float) -> float:
    """Bound |first-pass score - score| for any stored vector of any length near one; see docs/exactness.md."""
    gamma = dimensions * _SINGLE / (1 - dimensions * _SINGLE)
    # The copy: brought to length one in float32, then rounded to half.
    copy_moved = 2 * _SINGLE + _HALF * (1 + 2 * _SINGLE) + _HALF_TINY * math.sqrt(dimensions)
    copy_length = 1 + copy_moved
    query_length = 1 + query_moved
    first_pass = copy_moved + query_moved * copy_length + gamma * copy_length * query_length
    # The score itself: three float32 sums of the same length, a root and a quotient.
    score = 3 * gamma + 8 * _SINGLE
    return first_pass + score
