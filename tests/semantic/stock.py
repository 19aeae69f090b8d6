"""Many embedded notes at once, written by the owner with the fences down, and the scan table filled by its own trigger.

For tests and measurements that need more rows than operations would bring there in a minute.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg import sql

from semantic import vectors

_FENCED = ("archive_note", "archive_source", "semantic_derivation")


def stock(
    owner: "psycopg.Connection[Any]", namespace: int, generation: UUID, rows: Iterable[tuple[bytes, bool]]
) -> list[tuple[UUID, UUID]]:
    """Put one note with one derivation for each (vector, eligible); ineligible ones are archived and have no vector.

    Returns (note, derivation) identities in order.
    """
    given = [(uuid4(), uuid4(), vector, eligible) for vector, eligible in rows]
    with owner.transaction():
        for table in _FENCED:
            owner.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(sql.Identifier(table)))
        owner.execute("ALTER TABLE semantic_derivation ENABLE TRIGGER scan")
        _load(owner, given)
        owner.execute(
            "WITH sources AS (INSERT INTO archive_source (namespace_id, source_key, space_id, space_generation)"
            " SELECT %s, 'stock-' || note, gen_random_uuid(), 1 FROM stock RETURNING id, source_key)"
            " INSERT INTO archive_note (id, namespace_id, space_id, space_generation, source_id, source_revision, kind,"
            " state, lifecycle_version, text, text_digest, char_count, byte_count, material_digest, classification,"
            " retention_class, admitted_subject, policy_revision)"
            " SELECT note, %s, gen_random_uuid(), 1, sources.id, '1', 'note',"
            " CASE WHEN eligible THEN 'promoted' ELSE 'archived' END, CASE WHEN eligible THEN 2 ELSE 3 END,"
            " 'stock ' || note, 'd', 6, 6, 'd', 'public', 'standard', 'alice', 'p'"
            " FROM stock JOIN sources ON sources.source_key = 'stock-' || note",
            [namespace, namespace],
        )
        owner.execute(
            "INSERT INTO semantic_derivation (id, namespace_id, space_id, space_generation, generation_id, note_id,"
            " chunk, source_key, source_revision, text_digest, note_lifecycle_version, state, attempt, row_version,"
            " dimensions, invalidation)"
            " SELECT derivation, %s, gen_random_uuid(), 1, %s, note, 'whole-note', 'stock-' || note, '1', 'd', 2,"
            " CASE WHEN eligible THEN 'prepared' ELSE 'invalidated' END, 1, 3, 1024,"
            " CASE WHEN eligible THEN NULL ELSE 'archived' END FROM stock",
            [namespace, generation],
        )
        owner.execute(
            "UPDATE semantic_derivation d SET state = 'complete', vector = s.vector, vector_digest = 'd', l2_norm = 1,"
            " receipt = '{}' FROM stock s WHERE s.derivation = d.id AND s.eligible"
        )
        promoted = sum(eligible for *_, eligible in given)
        owner.execute(
            "INSERT INTO archive_corpus (namespace_id, notes, total_length) VALUES (%s, %s, 0)"
            " ON CONFLICT (namespace_id) DO UPDATE SET notes = archive_corpus.notes + excluded.notes",
            [namespace, promoted],
        )
        owner.execute("SET CONSTRAINTS ALL IMMEDIATE")
        owner.execute("DROP TABLE stock")
        for table in _FENCED:
            owner.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(sql.Identifier(table)))
    owner.execute("VACUUM (ANALYZE) semantic_scan, semantic_derivation, archive_note")
    return [(note, derivation) for note, derivation, *_ in given]


def _load(owner: "psycopg.Connection[Any]", given: Sequence[tuple[UUID, UUID, bytes, bool]]) -> None:
    owner.execute("CREATE TEMP TABLE stock (note uuid, derivation uuid, vector vector, eligible boolean)")
    with (
        owner.cursor() as cursor,
        cursor.copy("COPY stock (note, derivation, vector, eligible) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.set_types(["uuid", "uuid", "bytea", "bool"])
        for note, derivation, vector, eligible in given:
            copy.write_row((note, derivation, vectors.sent(vector), eligible))
