"""Very many rows in little time: what a namespace was given through the operations, copied by the server's superuser.

For lists alone, whose rows nobody decides about: what is copied is as consistent as what it was copied from, words and
figures of the index included, but it was never asked for. Only the embedded server has a superuser that this may be.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

from lychd import embedded, scratch

# What of each row is another in a copy; the rest is as it was. `step` is the number of the copy.
_NOTE: Final = "md5({} || '-' || step)::uuid"
_DIGEST: Final = "encode(sha256(convert_to({} || step, 'UTF8')), 'hex')"
_MATERIAL: Final = (
    ("archive_source", {"id": "id + step * ids", "source_key": "source_key || '-' || step"}),
    (
        "archive_note",
        {
            "id": _NOTE.format("kept.id"),
            "source_id": "source_id + step * sources",
            "note_number": "note_number + step * ids",
            "superseded_by_id": _NOTE.format("superseded_by_id"),
            "text_digest": _DIGEST.format("text_digest"),
            "material_digest": _DIGEST.format("material_digest"),
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
_RECEIPTS: Final = (
    (
        "archive_recall",
        {
            "id": _NOTE.format("kept.id"),
            "request_id": "request_id || '-' || step",
            "request_digest": _DIGEST.format("request_digest"),
            "receipt_digest": _DIGEST.format("receipt_digest"),
            "created_at": "created_at + step * interval '1 second'",
        },
    ),
)
# A namespace that is configured like another and holds notes like its first; numbers come from the sequences.
_NAMESPACES: Final = (
    ("lychd_binding", "id", {"namespace_key": "'ns-' || step"}),
    ("lychd_grant", "id", {"namespace_key": "'ns-' || step"}),
    ("archive_namespace", "id", {"key": "'ns-' || step"}),
    ("archive_source", "id", {"namespace_id": "made.id"}),
    (
        "archive_note",
        "note_number",
        {"namespace_id": "made.id", "id": "md5(kept.id || '-ns-' || step)::uuid", "source_id": "of_source.id"},
    ),
)


def multiply(namespace: int, copies: int) -> None:
    """Add so many copies of every note that a namespace has been given, with all that belongs to it."""
    with _copying() as copying:
        _copy(copying, _MATERIAL, namespace, copies)
        copying.execute(
            "UPDATE archive_corpus SET notes = notes * %s, total_length = total_length * %s WHERE namespace_id = %s",
            [copies + 1, copies + 1, namespace],
        )


def multiply_receipts(namespace: int, copies: int) -> None:
    """Add so many copies of every receipt; their seals are those of what they were copied from, and do not fit."""
    with _copying() as copying:
        _copy(copying, _RECEIPTS, namespace, copies)


def spread(key: str, subject: str, count: int, notes: int) -> None:
    """Configure so many namespaces like one, with the grants that a subject has, and its first notes in each."""
    theirs = "kept.namespace_id = (SELECT id FROM archive_namespace WHERE key = %(key)s)"
    first = (
        "SELECT least.source_id FROM archive_note AS least JOIN archive_namespace AS its ON its.id = least.namespace_id"
        " WHERE its.key = %(key)s AND least.note_number < (SELECT min(note_number) FROM archive_note AS note"
        " WHERE note.namespace_id = its.id) + %(notes)s"
    )
    of_made = "JOIN archive_namespace AS made ON made.key = 'ns-' || step"
    chosen = {
        "lychd_binding": "WHERE kept.namespace_key = %(key)s",
        "lychd_grant": "WHERE kept.subject = %(subject)s",
        "archive_namespace": "WHERE kept.key = %(key)s",
        "archive_source": f"{of_made} WHERE {theirs} AND kept.id IN ({first})",
        "archive_note": f"{of_made} JOIN archive_source AS own ON own.id = kept.source_id"
        " JOIN archive_source AS of_source"
        " ON of_source.namespace_id = made.id AND of_source.source_key = own.source_key"
        f" WHERE {theirs} AND kept.source_id IN ({first})",
    }
    with _copying() as copying:
        for table, number in (("archive_source", "id"), ("archive_note", "note_number")):
            # Copies brought their numbers along.
            copying.execute(
                sql.SQL("SELECT setval(pg_get_serial_sequence({0}, {1}), (SELECT max({2}) FROM {3}))").format(
                    sql.Literal(table), sql.Literal(number), sql.Identifier(number), sql.Identifier(table)
                )
            )
        for table, given, other in _NAMESPACES:
            columns = [name for name in _columns(copying, table) if name != given]
            values = [sql.SQL(other[name]) if name in other else sql.Identifier("kept", name) for name in columns]
            copying.execute(
                sql.SQL(
                    "INSERT INTO {0} ({1}) SELECT {2} FROM {0} AS kept"
                    " JOIN generate_series(1, %(count)s) AS step ON true {3}"
                ).format(
                    sql.Identifier(table),
                    sql.SQL(", ").join(map(sql.Identifier, columns)),
                    sql.SQL(", ").join(values),
                    sql.SQL(chosen[table]),
                ),
                {"key": key, "subject": subject, "count": count, "notes": notes},
            )


@contextlib.contextmanager
def hidden(indexes: Sequence[str]) -> Iterator[None]:
    """Keep some indexes out of every plan for a while; they go on being written."""
    _show(indexes, shown=False)
    try:
        yield
    finally:
        _show(indexes, shown=True)


def _show(indexes: Sequence[str], *, shown: bool) -> None:
    with _copying() as copying:
        copying.execute(
            "UPDATE pg_index SET indisvalid = %s WHERE indexrelid = ANY (%s::text[]::regclass[])",
            [shown, list(indexes)],
        )
    # What this connection had planned goes with it.
    connection.close()


@contextlib.contextmanager
def _copying() -> "Iterator[psycopg.Connection[Any]]":
    if not settings.LYCHD_EMBEDDED:
        raise scratch.ScratchError(
            "Many rows are copied as the embedded server's superuser; DATABASE_URL names no such."
        )
    known = connection.get_connection_params()
    wanted = {key: value for key, value in known.items() if key in ("dbname", "host", "port")}
    with psycopg.connect(**wanted, user=embedded.SUPERUSER) as copying:
        # No trigger of the archive would let a row come this way.
        copying.execute("SET LOCAL session_replication_role = replica")
        yield copying


def _copy(
    copying: "psycopg.Connection[Any]",
    tables: Sequence[tuple[str, Mapping[str, str]]],
    namespace: int,
    copies: int,
) -> None:
    numbers = copying.execute("SELECT max(note_number) FROM archive_note").fetchone()
    sources = copying.execute("SELECT max(id) FROM archive_source").fetchone()
    for table, other in tables:
        columns = _columns(copying, table)
        ids = (
            numbers
            if table in ("archive_note", "archive_posting", "archive_recall")
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


def _columns(copying: "psycopg.Connection[Any]", table: str) -> list[str]:
    return [
        name
        for (name,) in copying.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'"
            " AND table_name = %s ORDER BY ordinal_position",
            [table],
        )
    ]
