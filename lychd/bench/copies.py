"""Very many rows in little time: what a namespace was given through the operations, copied by the server's superuser.

For lists alone, whose rows nobody decides about: what is copied is as consistent as what it was copied from, words and
figures of the index included, but it was never asked for. Only the embedded server has a superuser that this may be.
"""

from typing import Final

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

from lychd import embedded, scratch

# What of each row is another in a copy; the rest is as it was. `step` is the number of the copy.
_NOTE: Final = "md5({} || '-' || step)::uuid"
_TABLES: Final = (
    ("archive_source", {"id": "id + step * ids", "source_key": "source_key || '-' || step"}),
    (
        "archive_note",
        {
            "id": _NOTE.format("kept.id"),
            "source_id": "source_id + step * sources",
            "note_number": "note_number + step * ids",
            "superseded_by_id": _NOTE.format("superseded_by_id"),
        },
    ),
    (
        "archive_lifecycle_event",
        {
            "id": "id + step * ids",
            "note_id": _NOTE.format("note_id"),
            "caused_by_note_id": _NOTE.format("caused_by_note_id"),
        },
    ),
    (
        "archive_intake_request",
        {"id": "id + step * ids", "note_id": _NOTE.format("note_id"), "request_id": "request_id || '-' || step"},
    ),
    ("archive_posting", {"note_number": "note_number + step * ids"}),
)


def multiply(namespace: int, copies: int) -> None:
    """Add so many copies of everything that a namespace has been given."""
    if not settings.LYCHD_EMBEDDED:
        raise scratch.ScratchError(
            "Many rows are copied as the embedded server's superuser; DATABASE_URL names no such."
        )
    known = connection.get_connection_params()
    wanted = {key: value for key, value in known.items() if key in ("dbname", "host", "port")}
    with psycopg.connect(**wanted, user=embedded.SUPERUSER) as copying:
        # No trigger of the archive would let a row come this way.
        copying.execute("SET LOCAL session_replication_role = replica")
        numbers = copying.execute("SELECT max(note_number) FROM archive_note").fetchone()
        sources = copying.execute("SELECT max(id) FROM archive_source").fetchone()
        for table, other in _TABLES:
            columns = [
                name
                for (name,) in copying.execute(
                    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'"
                    " AND table_name = %s ORDER BY ordinal_position",
                    [table],
                )
            ]
            by_number = table in ("archive_note", "archive_posting")
            ids = (
                numbers
                if by_number
                else copying.execute(sql.SQL("SELECT max(id) FROM {}").format(sql.Identifier(table))).fetchone()
            )
            copying.execute(
                sql.SQL(
                    "INSERT INTO {0} ({1}) OVERRIDING SYSTEM VALUE SELECT {2}"
                    " FROM {0} AS kept, generate_series(1, {3}) AS step,"
                    " (SELECT {4}::bigint AS ids, {5}::bigint AS sources) AS offsets"
                    " WHERE kept.namespace_id = {6}"
                ).format(
                    sql.Identifier(table),
                    sql.SQL(", ").join(map(sql.Identifier, columns)),
                    sql.SQL(", ").join(
                        sql.SQL(other[name]) if name in other else sql.Identifier("kept", name) for name in columns
                    ),
                    sql.Literal(copies),
                    sql.Literal(None if ids is None else ids[0]),
                    sql.Literal(None if sources is None else sources[0]),
                    sql.Literal(namespace),
                )
            )
        copying.execute(
            "UPDATE archive_corpus SET notes = notes * %s, total_length = total_length * %s WHERE namespace_id = %s",
            [copies + 1, copies + 1, namespace],
        )
