"""What the same rows cost without the archive's code: plain SQL under the same hold, same tables, same triggers."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg

from archive.requests import Intake
from lychd.bench.ground import NAMESPACE

Connection = psycopg.Connection[Any]

# Digests, lengths, times and the policy revision are left to the database, which computes them in any case.
_SOURCES = """
INSERT INTO archive_source (namespace_id, source_key)
SELECT %s::bigint, source_key FROM unnest(%s::text[]) AS given (source_key) RETURNING id, source_key
"""
_NOTES = """
INSERT INTO archive_note (namespace_id, id, source_id, source_revision, kind, text, classification, retention_class,
    admitted_subject, state, lifecycle_version)
SELECT %s::bigint, id, source, '1', 'note', body, 'public', 'standard', 'bare', 'candidate', 1
FROM unnest(%s::uuid[], %s::bigint[], %s::text[]) AS given (id, source, body)
"""
_EVENTS = """
INSERT INTO archive_lifecycle_event (namespace_id, note_id, from_state, to_state, from_version, to_version, cause,
    subject)
SELECT %s::bigint, id, %s::text, %s::text, %s::integer, %s::integer + 1, 'explicit', 'bare'
FROM unnest(%s::uuid[]) AS given (id)
"""
_REQUESTS = """
INSERT INTO archive_intake_request (namespace_id, request_id, note_id, subject)
SELECT %s::bigint, request_id, note, 'bare'
FROM unnest(%s::text[], %s::uuid[]) AS given (request_id, note)
"""
_MOVE = """
UPDATE archive_note SET state = %s::text, lifecycle_version = lifecycle_version + 1,
    text = CASE WHEN %s::text = 'revoked' THEN NULL ELSE text END
WHERE id = %s::uuid
"""

# The textbook statement: every posting of every word that counts, nothing passed over, the best k of all sums.
PLAIN_RANK = """
WITH corpus AS MATERIALIZED (
    SELECT notes::float8 AS notes, total_length::float8 / notes AS mean FROM archive_corpus
    WHERE namespace_id = %(namespace)s AND notes > 0
),
counted AS MATERIALIZED (
    SELECT asked.lexeme COLLATE "C" AS lexeme, count(*)::float8 AS notes
    FROM archive_lexemes(%(configuration)s::text::regconfig, %(query)s::text, false) AS asked
    JOIN archive_posting AS posting
      ON posting.namespace_id = %(namespace)s AND posting.lexeme = asked.lexeme COLLATE "C"
    GROUP BY 1
),
marked AS (
    SELECT counted.*, counted.notes > greatest(%(cut_off_notes)s::float8, corpus.notes * %(cut_off)s::float8) AS common
    FROM counted, corpus
),
kept AS MATERIALIZED (
    SELECT lexeme, notes FROM marked WHERE NOT common OR NOT EXISTS (SELECT FROM marked WHERE NOT common)
)
SELECT note.id
FROM (
    SELECT posting.note_number, sum(
        ln(1::float8 + (corpus.notes - kept.notes + 0.5::float8) / (kept.notes + 0.5::float8))
        * (posting.tf::float8 * (%(k1)s::float8 + 1::float8)) / (posting.tf::float8 + %(k1)s::float8
        * (1::float8 - %(b)s::float8 + %(b)s::float8 * posting.length::float8 / corpus.mean))
        ORDER BY kept.lexeme COLLATE "C") AS score
    FROM corpus CROSS JOIN kept
    JOIN archive_posting AS posting ON posting.namespace_id = %(namespace)s AND posting.lexeme = kept.lexeme
    GROUP BY posting.note_number
) AS scored
JOIN archive_note AS note ON note.note_number = scored.note_number AND note.namespace_id = %(namespace)s
WHERE note.state = 'promoted'
ORDER BY scored.score DESC, note.id LIMIT %(top_k)s
"""


@contextmanager
def held(connection: Connection) -> Iterator[int]:
    """The exclusive hold of the namespace, in one transaction."""
    with connection.transaction():
        connection.execute("SELECT set_config('lychd.hold', 'exclusive', true)")
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('lychd:' || %s::text, 0))", [NAMESPACE])
        [(number,)] = connection.execute("SELECT id FROM archive_namespace WHERE key = %s FOR UPDATE", [NAMESPACE])
        yield int(number)


def take_in(connection: Connection, items: Sequence[Intake]) -> list[UUID]:
    """Insert sources, notes, events and requests, one statement a table."""
    ids = [uuid4() for _ in items]
    with held(connection) as namespace:
        made = connection.execute(_SOURCES, [namespace, [one.source_key for one in items]]).fetchall()
        sources = {key: number for number, key in made}
        connection.execute(
            _NOTES, [namespace, ids, [sources[one.source_key] for one in items], [one.text for one in items]]
        )
        connection.execute(_EVENTS, [namespace, None, "candidate", 0, 0, ids])
        connection.execute(_REQUESTS, [namespace, [one.request_id for one in items], ids])
    return ids


def move(connection: Connection, note: UUID, start: str, end: str, version: int) -> None:
    """Take one note from one state to another, with its event."""
    with held(connection) as namespace:
        connection.execute(_MOVE, [end, end, note])
        connection.execute(_EVENTS, [namespace, start, end, version, version, [note]])


def ranked(connection: Connection, values: Mapping[str, Any]) -> list[str]:
    """The ids of the best notes, by the textbook statement."""
    return [str(row[0]) for row in connection.execute(PLAIN_RANK, values)]
