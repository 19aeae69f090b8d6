"""A connection that is kept serves one request after another: each entrance leaves the session as it found it, and what
the session has prepared outlives a change of the tables under a serving process.
"""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from django.db import connection
from psycopg import sql
from psycopg._preparing import PrepareManager
from psycopg.pq import ExecStatus, TransactionStatus

from tests.access import doors
from tests.access.ground import Ground
from tests.access.table import ENTRANCES, Entrance

# What a session can carry from one request into the next.
_CARRIED = {
    "settings": "SELECT name, setting FROM pg_settings WHERE name NOT LIKE 'transaction\\_%' OR name LIKE '%timeout'",
    "own settings": "SELECT coalesce(current_setting('lychd.hold', true), '')",
    "role": "SELECT current_user, session_user, current_schemas(true)::text",
    "locks": (
        "SELECT locktype, mode, classid, objid, relation FROM pg_locks WHERE pid = pg_backend_pid()"
        " AND locktype NOT IN ('relation', 'virtualxid')"
    ),
    "channels": "SELECT pg_listening_channels()",
    "cursors": "SELECT name FROM pg_cursors",
    "temporary": "SELECT relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()",
    "prepared by hand": "SELECT name FROM pg_prepared_statements WHERE name NOT LIKE '\\_pg3\\_%' OR from_sql",
    "backend": "SELECT pg_backend_pid()",
}


def _session() -> "psycopg.Connection[Any]":
    connection.ensure_connection()
    session: psycopg.Connection[Any] = connection.connection
    return session


def _carried() -> dict[str, set[Any]]:
    session = _session()
    carried = {what: set(session.execute(asked, prepare=False).fetchall()) for what, asked in _CARRIED.items()}
    carried["driver"] = {(session.isolation_level, session.read_only, session.deferrable, session.autocommit)}
    return carried


def _allowed(entrance: Entrance) -> str | None:
    return next((role for role in reversed(entrance.signs) if entrance.signs[role] == "+"), None)


def _take(entrance: Entrance, role: str, here: Ground) -> None:
    fresh = entrance.in_namespace and not entrance.reads
    met = doors.take(entrance, role, here, here.fresh("own") if fresh else here.places["own"])
    assert met.outcome == "+", f"{entrance} as {role}: {met.shown}"


_ROLES = [(entrance, role) for entrance in ENTRANCES if (role := _allowed(entrance)) is not None]
# The many lists of the admin take longest, and send what the framework wrote.
_DOORS = [pytest.param(door, marks=[pytest.mark.slow] if door == "admin" else []) for door in doors.DOORS]
_REFUSED = [(entrance, "charlie") for entrance in ENTRANCES if entrance.signs["charlie"] == "-"]


@pytest.mark.parametrize("door", _DOORS)
def test_no_entrance_leaves_anything_in_the_session(here: Ground, door: str) -> None:
    connection.close()
    # Each library brings settings of its own, once a session uses it.
    _session().execute("SELECT similarity('a', 'b'), '[1]'::vector", prepare=False)
    _session().execute("DO 'BEGIN END'", prepare=False)
    before = _carried()
    for entrance, role in [*_ROLES, *_REFUSED]:
        if entrance.door == door:
            doors.take(entrance, role, here, here.places["own"] if entrance.reads else here.fresh("own"))
            changed = {what: rows ^ before[what] for what, rows in _carried().items() if rows != before[what]}
            assert not changed, f"{entrance} as {role}"


@pytest.fixture
def altered(owner: "psycopg.Connection[Any]") -> Iterator[Any]:
    """Do what a migration does: a column more in every table, every function anew, an index gone; then undo it."""
    names = [
        name
        for (name,) in owner.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
            " AND relname ~ '^(archive|semantic|lychd|django|auth)_'"
        )
    ]

    def alter(how: str) -> None:
        for name in names:
            owner.execute(sql.SQL("ALTER TABLE {} " + how).format(sql.Identifier(name)))

    (index,) = owner.execute("SELECT pg_get_indexdef('note_waiting'::regclass)").fetchone() or ("",)

    def migrate() -> None:
        alter("ADD COLUMN added_later text")
        for (function,) in owner.execute(
            "SELECT pg_get_functiondef(oid) FROM pg_proc"
            " WHERE pronamespace = 'public'::regnamespace AND proowner = current_user::regrole AND prokind = 'f'"
        ).fetchall():
            owner.execute(function)
        owner.execute("DROP INDEX note_waiting")

    yield migrate
    alter("DROP COLUMN IF EXISTS added_later")
    owner.execute(index.replace("CREATE INDEX", "CREATE INDEX IF NOT EXISTS"))


@pytest.mark.parametrize("door", _DOORS)
def test_a_migration_under_a_serving_process_breaks_no_prepared_statement(
    here: Ground, altered: Any, door: str
) -> None:
    # The probe tells that nobody has granted the column yet.
    taken = [(one, role) for one, role in _ROLES if one.door == door and one.address != "readyz"]
    (backend,) = _carried()["backend"]
    # A rollback or very many statements would let the driver forget some of them; here none is spared.
    with (
        patch.object(PrepareManager, "clear", lambda self: False),
        patch.object(PrepareManager, "prepared_max", 10_000),
    ):
        for entrance, role in taken:
            for _ in range(3):
                _take(entrance, role, here)
        (prepared,) = _session().execute("SELECT count(*) FROM pg_prepared_statements").fetchone() or (0,)
        altered()
        for entrance, role in taken:
            _take(entrance, role, here)
    assert prepared > len(taken)
    assert _carried()["backend"] == {backend}


@pytest.mark.parametrize("door", _DOORS)
def test_behind_a_pooler_no_entrance_needs_anything_of_the_session_it_had_before(
    here: Ground, settings: Any, door: str
) -> None:
    """Before every transaction the session is emptied, as one that others have used."""

    def emptied(execute: Any, asked: str, values: Any, many: bool, context: Any) -> Any:
        session = _session()
        if session.info.transaction_status == TransactionStatus.IDLE:
            for command in ("DISCARD ALL", f"SET ROLE {settings.LYCHD_SERVING_ROLE}"):
                assert session.pgconn.exec_(command.encode()).status == ExecStatus.COMMAND_OK
        return execute(asked, values, many, context)

    connection.close()
    # As LYCHD_DATABASE_POOLER sets it.
    _session().prepare_threshold = None
    backend = _carried()["backend"]
    with connection.execute_wrapper(emptied):
        for entrance, role in _ROLES:
            if entrance.door == door:
                _take(entrance, role, here)
    assert _carried()["backend"] == backend
    connection.close()
