"""Which eligible notes are nearest to a query, exactly: the one ranked query of vectors (0.6, R-L-227..230).

It takes a held namespace and an active generation and gives rows in a total order: score descending, then note UUID.
The score is `1 - (vector <=> query)` as PostgreSQL computes it on full vectors; no approximate index exists.

# Note [Half first, exact after]
`semantic_scan` holds one row for each complete derivation, and a trigger keeps it so in the transaction that changes
that: eligibility is decided before anything is ranked. Its copies are in half precision and in-line, so that reading
all of them is quick. A first pass takes their inner products with the query; whatever the true score may still bring
into the answer - everything within twice the error bound of the k-th best, and everything within the bound of the
threshold - is scored again on full vectors. docs/exactness.md derives the bound and proves that nothing can be lost.

# Note [Loud, not short]
Each row that is scored is read again through the truth: note promoted at the pinned version with text, derivation
complete. A scan row without that would be a broken trigger, so it refuses the whole recall instead of leaving a hole
that the bound knows nothing of.
"""

import math
import struct
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection

from archive import lexical
from archive.models import Namespace
from archive.refusals import IntegrityFailure
from semantic import vectors
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


_COVERAGE: Final = """
SELECT coalesce((SELECT notes FROM archive_corpus WHERE namespace_id = %s), 0)::bigint,
       coalesce((SELECT complete FROM semantic_coverage WHERE generation_id = %s), 0)::bigint
"""

# See Note [Half first, exact after]. `OFFSET 0` keeps the planner from scoring full vectors of rows that are not near.
_RANK: Final = """
WITH rough AS MATERIALIZED (
    SELECT derivation_id, -(half <#> %(half)s::halfvec) AS score
    FROM semantic_scan
    WHERE generation_id = %(generation)s::uuid
),
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
       OR abs(rough.score - %(min_cosine)s::float8) <= %(bound)s::float8
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
           (SELECT count(*) FROM scored WHERE note_id IS NULL OR score = 'NaN') AS astray
),
best AS MATERIALIZED (
    SELECT derivation_id, note_id, row_version, vector_digest, score
    FROM scored
    WHERE score >= %(min_cosine)s::float8 AND score <> 'NaN'
    ORDER BY score DESC, note_id
    LIMIT %(top_k)s::bigint
)
SELECT figures.matched, figures.astray,
       note.id, source.source_key, note.source_revision, note.text_digest, note.lifecycle_version, note.char_count,
       note.classification, note.asserted_origin, best.score, best.derivation_id, best.row_version, best.vector_digest
FROM figures
LEFT JOIN (
    best JOIN archive_note AS note ON note.id = best.note_id JOIN archive_source AS source ON source.id = note.source_id
) ON true
ORDER BY best.score DESC NULLS LAST, note.id
"""


def rank(
    namespace: Namespace, generation: Generation, query: bytes, *, top_k: int, min_cosine: float, slack: float = 1.0
) -> Ranking:
    """Rank the complete derivations of a held namespace and active generation against a unit vector.

    `slack` scales the error bound: 1 is what is proved, more costs time and changes nothing, less is for the test that
    shows what the bound is good for.
    """
    half, bound = halved(query)
    with connection.cursor() as cursor:
        cursor.execute(_COVERAGE, [namespace.id, generation.id])
        promoted, complete = cursor.fetchone()
        # The first pass keeps one pair a row, which the usual work_mem would spill beyond some sixty thousand.
        cursor.execute("SELECT set_config('work_mem', '64MB', true)")
        values: dict[str, Any] = {
            "namespace": namespace.id,
            "generation": generation.id,
            "half": half,
            "query": vectors.literal(query),
            "bound": bound * slack,
            "min_cosine": min_cosine,
            "top_k": top_k,
        }
        cursor.execute(_RANK, values)
        found = cursor.fetchall()
    matched, astray = found[0][:2]
    if astray:
        raise IntegrityFailure
    rows = tuple(Ranked(*row[2:]) for row in found if row[2] is not None)
    return Ranking(rows, matched, promoted, complete)


# What docs/exactness.md derives: unit roundoffs, and how far a sum of n products may be off in any order.
_HALF: Final = 2.0**-11
_HALF_TINY: Final = 2.0**-25
_SINGLE: Final = 2.0**-24


def halved(query: bytes) -> tuple[str, float]:
    """Write the query in half precision, brought to length one, and bound how far a first-pass score may be off."""
    numbers = vectors.components(query)
    length = vectors.l2(query)
    unit = [number / length for number in numbers]
    half = struct.unpack(f"<{len(unit)}e", struct.pack(f"<{len(unit)}e", *unit))
    moved = math.sqrt(math.fsum((one - other) ** 2 for one, other in zip(half, unit, strict=True)))
    return "[" + ",".join(map(repr, half)) + "]", error_bound(len(unit), moved)


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
