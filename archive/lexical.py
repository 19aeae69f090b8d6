"""Which promoted notes share a word with a query, best first: BM25 over the postings (specification 0.4).

The one ranked query of words. It takes a held namespace, reads postings from their index alone, and gives rows in a
total order: score, then note UUID. The query text travels as a parameter and is kept nowhere.

# Note [Rough first, exact after]
A sum of floats depends on the order of its terms, and a score has to come out the same on every machine and in every
plan. Adding in lexeme order means sorting every posting that was read, so the statement adds in any order first, takes
the k-th best of those sums as a line, and adds again in lexeme order for the notes at or above the line less one part
in a thousand million. Two orders of at most a thousand positive terms differ by less than one part in a million
million, so no note of the true top k, and none that ties with its last, can be lost.

# Note [Words that cannot decide]
One posting adds less than (k1 + 1) * idf to a score, whatever its tf and length, so the most common words of a query
together add less than the sum of these bounds, `at_most`. The rarest words are glanced at first, up to some hundred
postings: k notes reach a line by them alone, and further words only lift a note. Where `at_most` of the common words is
below that line, a note that has nothing but common words is below it too: it can neither come among the first k nor tie
with the last of them. So only the deciding words are read whole. The others are looked up note by note, for the notes
that could still reach the line with them, and complete their sums. How many postings are glanced at and how far below
the line the others have to stay decides about time alone. Both comparisons keep the margin of the note above.

# Note [Ties]
Postings know a note by its number. Cutting at k by number would pick other notes out of a tie than the UUID does, so
the cut keeps all ties of the k-th score and only then orders by UUID.

# Note [Planning without statistics]
No statistics of words are kept, since they would be words. `OFFSET 0` keeps the planner, which therefore guesses, from
turning an index probe into a scan of the table.
"""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db import connection

from archive.limits import BM25_B, BM25_K1, CUT_OFF_NOTES, CUT_OFF_SHARE, GLANCE_POSTINGS, UNDECIDED_SHARE
from archive.models import Namespace


@dataclass(frozen=True, slots=True)
class Ranked:
    """One note of the ranking: everything a receipt says of it, and not its text."""

    note_id: UUID
    source_key: str
    source_revision: str
    text_digest: str
    lifecycle_version: int
    char_count: int
    classification: str
    asserted_origin: str | None = field(repr=False)
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best notes in order, with the figures that explain their scores."""

    rows: tuple[Ranked, ...]
    corpus_notes: int
    mean_length: float
    cut_off: float
    lexemes_asked: int
    lexemes_found: int
    lexemes_left_out: int


@dataclass(frozen=True, slots=True)
class Alike:
    """One promoted note beside another text, and how many of their triples of letters they share."""

    note_id: UUID
    source_key: str
    source_revision: str
    text_digest: str
    likeness: float


@dataclass(frozen=True, slots=True)
class Figures:
    """How many promoted notes a namespace has, and how many words they have together."""

    notes: int
    total_length: int


_FIGURES = "SELECT notes, total_length FROM archive_corpus WHERE namespace_id = %s"

_TERM = """(
    weighed.idf * (posting.tf::float8 * (%(k1)s::float8 + 1::float8)) / (posting.tf::float8
    + %(k1)s::float8 * (1::float8 - %(b)s::float8 + %(b)s::float8 * posting.length::float8 / weighed.mean))
)"""

# See Note [Planning without statistics] for every `OFFSET 0`.
_RANK = f"""
WITH corpus AS MATERIALIZED (
    SELECT notes::float8 AS notes, total_length::float8 / notes::float8 AS mean,
           greatest(%(cut_off_notes)s::float8, notes::float8 * %(cut_off)s::float8) AS line
    FROM archive_corpus WHERE namespace_id = %(namespace)s::bigint AND notes > 0
),
asked AS MATERIALIZED (
    SELECT lexeme COLLATE "C" AS lexeme
    FROM archive_lexemes(%(configuration)s::text::regconfig, %(query)s::text, false)
),
-- Counted no further than just over the line: of a word that is left out no more is asked.
counted AS MATERIALIZED (
    SELECT asked.lexeme, held.notes, held.notes > corpus.line AS common
    FROM corpus CROSS JOIN asked CROSS JOIN LATERAL (
        SELECT count(*) AS notes FROM (
            SELECT FROM archive_posting AS posting
            WHERE posting.namespace_id = %(namespace)s::bigint AND posting.lexeme = asked.lexeme
            LIMIT floor(corpus.line)::bigint + 1
        ) AS upto
    ) AS held
    WHERE held.notes > 0
),
-- Nothing but common words found: then they are all there is, and count in full.
kept AS MATERIALIZED (
    SELECT lexeme, notes FROM counted WHERE NOT common
    UNION ALL
    SELECT counted.lexeme, held.notes
    FROM counted CROSS JOIN LATERAL (
        SELECT count(*) AS notes FROM archive_posting AS posting
        WHERE posting.namespace_id = %(namespace)s::bigint AND posting.lexeme = counted.lexeme
    ) AS held
    WHERE NOT EXISTS (SELECT FROM counted WHERE NOT common)
),
weighed AS MATERIALIZED (
    SELECT kept.lexeme, kept.notes,
           ln(1::float8 + (corpus.notes - kept.notes + 0.5::float8) / (kept.notes + 0.5::float8)) AS idf,
           corpus.mean
    FROM kept CROSS JOIN corpus
),
-- See Note [Words that cannot decide].
ordered AS MATERIALIZED (
    SELECT weighed.*,
           sum(notes) OVER (ORDER BY notes, lexeme COLLATE "C") - notes AS read_before,
           (%(k1)s::float8 + 1::float8)
           * sum(idf) OVER (ORDER BY notes DESC, lexeme COLLATE "C" DESC) AS at_most
    FROM weighed
),
glance AS MATERIALIZED (
    SELECT greatest(%(min_rank)s::float8, (
        SELECT sum({_TERM}) AS score
        FROM ordered AS weighed CROSS JOIN LATERAL (
            SELECT note_number, tf, length FROM archive_posting
            WHERE namespace_id = %(namespace)s::bigint AND lexeme = weighed.lexeme
            OFFSET 0
        ) AS posting
        WHERE weighed.read_before < {GLANCE_POSTINGS}
        GROUP BY posting.note_number
        ORDER BY score DESC OFFSET %(top_k)s::bigint - 1 LIMIT 1
    )) AS line
),
deciding AS MATERIALIZED (
    SELECT ordered.* FROM ordered CROSS JOIN glance
    WHERE ordered.at_most >= {UNDECIDED_SHARE}::float8 * glance.line
),
others AS MATERIALIZED (
    SELECT coalesce(max(ordered.at_most), 0::float8) AS at_most FROM ordered CROSS JOIN glance
    WHERE ordered.at_most < {UNDECIDED_SHARE}::float8 * glance.line
),
rough AS MATERIALIZED (
    SELECT posting.note_number,
           sum({_TERM}) AS score
    FROM deciding AS weighed CROSS JOIN LATERAL (
        SELECT note_number, tf, length FROM archive_posting
        WHERE namespace_id = %(namespace)s::bigint AND lexeme = weighed.lexeme
        OFFSET 0
    ) AS posting
    GROUP BY posting.note_number
),
near AS MATERIALIZED (
    SELECT rough.note_number, rough.score FROM rough CROSS JOIN glance CROSS JOIN others
    WHERE rough.score + others.at_most >= 0.999999999::float8 * greatest(
        glance.line,
        (SELECT score FROM rough ORDER BY score DESC OFFSET %(top_k)s::bigint - 1 LIMIT 1)
    )
),
completed AS MATERIALIZED (
    SELECT near.note_number, near.score + coalesce((
        SELECT sum({_TERM})
        FROM ordered AS weighed CROSS JOIN LATERAL (
            SELECT tf, length FROM archive_posting
            WHERE namespace_id = %(namespace)s::bigint AND lexeme = weighed.lexeme
              AND note_number = near.note_number
            OFFSET 0
        ) AS posting
        WHERE weighed.at_most <= others.at_most
    ), 0::float8) AS score
    FROM near CROSS JOIN others
),
nearest AS MATERIALIZED (
    SELECT completed.note_number FROM completed CROSS JOIN glance
    WHERE completed.score >= 0.999999999::float8 * greatest(
        glance.line,
        (SELECT score FROM completed ORDER BY score DESC OFFSET %(top_k)s::bigint - 1 LIMIT 1)
    )
),
scored AS MATERIALIZED (
    SELECT nearest.note_number,
           sum({_TERM} ORDER BY weighed.lexeme COLLATE "C") AS score
    FROM nearest CROSS JOIN weighed CROSS JOIN LATERAL (
        SELECT tf, length FROM archive_posting
        WHERE namespace_id = %(namespace)s::bigint AND lexeme = weighed.lexeme AND note_number = nearest.note_number
        OFFSET 0
    ) AS posting
    GROUP BY nearest.note_number
),
-- Eligibility is asked of the truth itself, beside the postings that the database keeps equal to it.
best AS MATERIALIZED (
    SELECT note.id, note.source_id, note.source_revision, note.text_digest, note.lifecycle_version, note.char_count,
           note.classification, note.asserted_origin, scored.score
    FROM scored CROSS JOIN LATERAL (
        SELECT id, source_id, source_revision, text_digest, lifecycle_version, char_count, classification,
               asserted_origin
        FROM archive_note
        WHERE note_number = scored.note_number AND namespace_id = %(namespace)s::bigint
          AND state = 'promoted' AND text IS NOT NULL
        OFFSET 0
    ) AS note
    WHERE scored.score >= %(min_rank)s::float8
    ORDER BY scored.score DESC
    FETCH FIRST (%(top_k)s::bigint) ROWS WITH TIES
),
figures AS (
    SELECT coalesce((SELECT notes FROM corpus), 0)::bigint AS notes,
           coalesce((SELECT mean FROM corpus), 0::float8) AS mean,
           (SELECT count(*) FROM asked) AS asked,
           (SELECT count(*) FROM counted) AS found,
           (SELECT count(*) FROM counted) - (SELECT count(*) FROM kept) AS left_out
)
SELECT figures.notes, figures.mean, figures.asked, figures.found, figures.left_out,
       best.id, source.source_key, best.source_revision, best.text_digest, best.lifecycle_version, best.char_count,
       best.classification, best.asserted_origin, best.score
FROM figures
LEFT JOIN (best JOIN archive_source AS source ON source.id = best.source_id) ON true
ORDER BY best.score DESC NULLS LAST, best.id
LIMIT %(top_k)s::bigint
"""


def rank(namespace: Namespace, query: str, *, top_k: int, min_rank: float) -> Ranking:
    """Rank the promoted notes of a held namespace that share any word with the query; none of them is a miss."""
    with connection.cursor() as cursor:
        cursor.execute(_RANK, _values(namespace, query, top_k=top_k, min_rank=min_rank))
        found = cursor.fetchall()
    notes, mean, asked, known, left_out = found[0][:5]
    return Ranking(
        rows=tuple(Ranked(*row[5:]) for row in found if row[5] is not None),
        corpus_notes=notes,
        mean_length=mean,
        cut_off=CUT_OFF_SHARE,
        lexemes_asked=asked,
        lexemes_found=known,
        lexemes_left_out=left_out,
    )


def _values(namespace: Namespace, query: str, *, top_k: int, min_rank: float) -> dict[str, str | int | float]:
    return {
        "namespace": namespace.id,
        "configuration": namespace.text_configuration,
        "query": query,
        "top_k": top_k,
        "min_rank": min_rank,
        "k1": BM25_K1,
        "b": BM25_B,
        "cut_off": CUT_OFF_SHARE,
        "cut_off_notes": float(CUT_OFF_NOTES),
    }


_ALIKE: Final = f"""
SELECT ranked.note_id, ranked.source_key, ranked.source_revision, ranked.text_digest,
       similarity(left(other.text, %(chars)s::int), left(%(text)s::text, %(chars)s::int)) AS likeness
FROM ({_RANK}) AS ranked (
    corpus_notes, mean, asked, found, left_out,
    note_id, source_key, source_revision, text_digest, lifecycle_version, char_count, classification, asserted_origin,
    score)
JOIN archive_note AS other ON other.id = ranked.note_id
"""


def alike(namespace: Namespace, text: str, words: str, *, top_k: int, chars: int) -> list[Alike]:
    """Of the promoted notes that share most of these words, say how alike each is to a text, by three letters."""
    values = _values(namespace, words, top_k=top_k, min_rank=0.0)
    with connection.cursor() as cursor:
        cursor.execute(_ALIKE, {**values, "text": text[:chars], "chars": chars})
        return [Alike(*row) for row in cursor.fetchall()]


def figures(namespace_id: int) -> Figures:
    """Read the corpus figures of a namespace; nothing promoted yet is none and nothing."""
    with connection.cursor() as cursor:
        cursor.execute(_FIGURES, [namespace_id])
        row = cursor.fetchone()
    return Figures(0, 0) if row is None else Figures(*row)


def fingerprint(text_configuration: str) -> str:
    """Digest how this server cuts words today; a stored one that differs asks for a rebuild."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT archive_lexer_fingerprint(%s::text::regconfig)", [text_configuration])
        (digest,) = cursor.fetchone()
    return str(digest)


_MOVED: Final = """
WITH today AS (
    SELECT text_configuration, archive_lexer_fingerprint(text_configuration::regconfig) AS fingerprint
    FROM (SELECT DISTINCT text_configuration FROM archive_namespace) AS used
)
SELECT key FROM archive_namespace JOIN today USING (text_configuration)
WHERE lexical_state = 'ready' AND lexer_fingerprint <> fingerprint ORDER BY key
"""


def moved() -> list[str]:
    """Name the namespaces whose words were cut by another lexer than this server's."""
    with connection.cursor() as cursor:
        cursor.execute(_MOVED)
        return [key for (key,) in cursor.fetchall()]


def vacuum() -> None:
    """Let recall read the index of the postings alone; for the end of whatever wrote many, outside a transaction.

    Where somebody else vacuums the table just now, that will do.
    """
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE, SKIP_LOCKED) archive_posting")
