"""Connections that serving threads keep: one each, replaced when it died, and never waited for without end."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any
from wsgiref.util import setup_testing_defaults

import psycopg
import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.signals import connection_created

from archive.authority import Caller
from archive.operations import host
from lychd import kept
from tests import cast

THREADS = 3
Answer = tuple[int, dict[str, Any]]


@pytest.fixture
def opened() -> Iterator[list[int]]:
    """The server's processes of every connection that is opened."""
    found: list[int] = []

    def note(connection: Any, **kwargs: Any) -> None:
        found.append(connection.connection.info.backend_pid)

    connection_created.connect(note)
    yield found
    connection_created.disconnect(note)


@pytest.fixture
def keeping(transactional_db: None) -> Iterator[dict[str, Any]]:
    """This process keeps connections; its settings of the database, to be changed."""
    served = connections.settings[DEFAULT_DB_ALIAS]
    before = {**served, "OPTIONS": {**served["OPTIONS"]}}
    kept.keep()
    yield served
    served.update(before)


@pytest.fixture
def ask(keeping: dict[str, Any], alice: Caller) -> Iterator[Callable[[], list[Answer]]]:
    """Let each of the serving threads answer one request at the same time."""
    secret = host.issue_token("alice", by="host:tests", namespaces=None).secret
    handler = WSGIHandler()
    together = threading.Barrier(THREADS)

    def answer(_: int) -> Answer:
        environ: dict[str, Any] = {}
        setup_testing_defaults(environ)
        environ |= {"PATH_INFO": "/api/v1/ns/garden/events", "HTTP_HOST": "testserver", "wsgi.input": BytesIO()}
        environ["HTTP_AUTHORIZATION"] = f"Bearer {secret}"
        status: list[int] = []
        together.wait(30)
        response: Any = handler(environ, lambda line, *_: status.append(int(line.split()[0])))  # type: ignore[arg-type]
        body = json.loads(b"".join(response))
        response.close()
        return status[0], body

    def leave(_: int) -> None:
        together.wait(30)
        connections.close_all()

    with ThreadPoolExecutor(THREADS) as threads:
        yield lambda: list(threads.map(answer, range(THREADS)))
        list(threads.map(leave, range(THREADS)))


def statuses(answers: list[Answer]) -> set[int]:
    return {status for status, _ in answers}


def test_each_thread_opens_one_connection_and_keeps_it(ask: Any, opened: list[int]) -> None:
    for _ in range(5):
        assert statuses(ask()) == {200}
    assert len(opened) == THREADS


def test_without_keeping_every_request_opens_its_own(keeping: dict[str, Any], ask: Any, opened: list[int]) -> None:
    keeping["CONN_MAX_AGE"] = 0
    for _ in range(3):
        ask()
    assert len(opened) == 3 * THREADS


def test_a_kept_connection_that_died_is_replaced_without_an_error(
    ask: Any, opened: list[int], owner: "psycopg.Connection[Any]"
) -> None:
    assert statuses(ask()) == {200}
    owner.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid", [opened])
    assert statuses(ask()) == {200}
    assert len(opened) == 2 * THREADS


def test_where_nobody_listens_requests_are_refused_at_once_and_go_on_by_themselves(
    keeping: dict[str, Any], ask: Any, opened: list[int], owner: "psycopg.Connection[Any]", tmp_path: Any
) -> None:
    ask()
    there, keeping["HOST"] = keeping["HOST"], str(tmp_path)
    owner.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid", [opened])
    for _ in range(3):
        begun = time.monotonic()
        answers = ask()
        # Sooner than the driver gives a server up, on a machine with much else to do.
        assert time.monotonic() - begun < kept.CONNECT_SECONDS
        assert [(status, body["code"]) for status, body in answers] == [(503, "storage_unavailable")] * THREADS
    keeping["HOST"] = there
    assert statuses(ask()) == {200}


def test_a_server_that_says_nothing_keeps_a_request_waiting_for_two_seconds(keeping: dict[str, Any], ask: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        keeping.update(HOST="127.0.0.1", PORT=silent.getsockname()[1])
        begun = time.monotonic()
        answers = ask()
        assert time.monotonic() - begun < 2 * kept.CONNECT_SECONDS
    assert statuses(answers) == {503}


def test_a_session_of_a_serving_process_has_bounds_of_its_own(keeping: dict[str, Any], settings: Any) -> None:
    settings.LYCHD_TIMEOUTS = {"statement": 1_001, "lock": 1_002, "idle": 1_003, "transaction": 4_004}
    connections.settings[DEFAULT_DB_ALIAS]["OPTIONS"].pop("options")
    kept.keep()
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, setting FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout',"
            " 'idle_in_transaction_session_timeout', 'transaction_timeout')"
        )
        assert dict(cursor.fetchall()) == {
            "statement_timeout": "1001",
            "lock_timeout": "1002",
            "idle_in_transaction_session_timeout": "1003",
            "transaction_timeout": "4004",
        }


def test_behind_a_pooler_nothing_is_asked_of_the_session(keeping: dict[str, Any], settings: Any) -> None:
    settings.LYCHD_DATABASE_POOLER = True
    connections.settings[DEFAULT_DB_ALIAS]["OPTIONS"].pop("options")
    kept.keep()
    assert "options" not in keeping["OPTIONS"]


def test_a_statement_is_planned_once_a_session_and_not_at_all_behind_a_pooler(
    transactional_db: None, settings: Any, alice: Caller
) -> None:
    cast.promoted(alice)

    def prepared() -> list[str]:
        connection.close()
        for _ in range(3):
            cast.asked(alice)
        with connection.cursor() as cursor:
            cursor.execute("SELECT statement FROM pg_prepared_statements WHERE NOT from_sql")
            return [statement for (statement,) in cursor.fetchall()]

    assert len(ranking := [one for one in prepared() if "archive_posting" in one]) == 1, ranking
    assert len(prepared()) > 5
    options = connections.settings[DEFAULT_DB_ALIAS]["OPTIONS"]
    options["prepare_threshold"] = None
    try:
        assert prepared() == []
    finally:
        options["prepare_threshold"] = 2
        connection.close()
