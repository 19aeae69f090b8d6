"""The flush between tests that commit: by the owner, of the tables that have rows, in one statement."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connections
from django.test import TransactionTestCase
from psycopg import sql

# Django keeps these in step with the code, and no test changes them.
KEPT = ("django_migrations", "django_content_type", "auth_permission")
COPIES = "migration_rows"

_connections: dict[str, "psycopg.Connection[Any]"] = {}
_tables: list[str] = []
_remembered: list[str] = []


def parameters() -> dict[str, Any]:
    """How to log in to the test database as the owner, for psycopg."""
    found = connections["default"].get_connection_params()
    return {name: found[name] for name in ("dbname", "user", "password", "host", "port") if found.get(name)}


@contextmanager
def as_owner() -> "Iterator[psycopg.Connection[Any]]":
    """The suite's one connection as the owner, kept open from test to test."""
    key = str(parameters()["dbname"])
    if key not in _connections or _connections[key].closed:
        _connections[key] = psycopg.connect(**parameters(), autocommit=True, options="-c lock_timeout=10s")
    yield _connections[key]


def forget() -> None:
    """Close that connection, so that the database can be dropped."""
    for connection in _connections.values():
        connection.close()
    _connections.clear()


def remember_migration_rows(owner: "psycopg.Connection[Any]") -> None:
    """Copy what the migrations wrote, so that a flush can write it again."""
    _tables[:] = [
        name
        for (name,) in owner.execute(
            "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace"
            " AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> ALL(%s)",
            [list(KEPT)],
        )
    ]
    owner.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(COPIES)))
    owner.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(COPIES)))
    _remembered[:] = _with_rows(owner, _tables)
    for table in _remembered:
        owner.execute(
            sql.SQL("CREATE TABLE {} AS TABLE {}").format(
                sql.Identifier(COPIES, table), sql.Identifier("public", table)
            )
        )


def remembered() -> tuple[str, ...]:
    """The tables that migrations wrote rows into."""
    return tuple(_remembered)


def restore_migration_rows(owner: "psycopg.Connection[Any]", tables: Sequence[str]) -> None:
    """Write the rows of the migrations again, into tables that were emptied."""
    # One transaction, so that deferred foreign keys look once all are back.
    with owner.transaction():
        for table in tables:
            columns = [
                sql.Identifier(name)
                for (name,) in owner.execute(
                    "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass"
                    " AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
                    [f"public.{table}"],
                )
            ]
            names = sql.SQL(", ").join(columns)
            owner.execute(
                sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {}").format(
                    sql.Identifier("public", table), names, names, sql.Identifier(COPIES, table)
                )
            )


def flush_after_test(case: TransactionTestCase) -> None:
    """Empty every table that has rows and write the rows of the migrations again; no signal is sent."""
    if "default" in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]
        connections["default"].close()
        with as_owner() as owner:
            flush(owner)


def flush(owner: "psycopg.Connection[Any]") -> None:
    """The database as the migrations left it."""
    filled = [table for table in _with_rows(owner, _tables) if table not in _remembered]
    dirty = [*filled, *_changed(owner)]
    if not dirty:
        return
    # Those with rows from migrations keep their counters: the rows come back with the numbers they had.
    for tables, counters in ((filled, "RESTART"), ([name for name in dirty if name in _remembered], "CONTINUE")):
        if tables:
            owner.execute(
                sql.SQL("TRUNCATE {} {} IDENTITY CASCADE").format(
                    sql.SQL(", ").join(sql.Identifier("public", name) for name in tables), sql.SQL(counters)
                )
            )
    # Asked again, since a cascade may have emptied one that had not changed.
    restore_migration_rows(owner, _changed(owner))


def _with_rows(owner: "psycopg.Connection[Any]", tables: Sequence[str]) -> list[str]:
    if not tables:
        return []
    question = sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})").format(sql.Literal(name), sql.Identifier("public", name))
        for name in tables
    )
    return [name for (name,) in owner.execute(question)]


def _changed(owner: "psycopg.Connection[Any]") -> list[str]:
    if not _remembered:
        return []
    rows = sql.SQL("(SELECT array_agg(r::text ORDER BY r::text) FROM {} r)")
    question = sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT {} WHERE {} IS DISTINCT FROM {}").format(
            sql.Literal(name), rows.format(sql.Identifier("public", name)), rows.format(sql.Identifier(COPIES, name))
        )
        for name in _remembered
    )
    return [name for (name,) in owner.execute(question)]
