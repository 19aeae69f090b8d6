"""The ground of the suite: a real PostgreSQL, tests that run as the serving role, and a flush that is quick."""

import logging
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connections
from django.test import TransactionTestCase
from psycopg import sql

from archive.authority import Caller
from lychd import embedded, logs
from tests import cast, flushing
from tests.racing.table import pytest_terminal_summary as pytest_terminal_summary

_STARTED = pytest.StashKey[ExitStack]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the servers once, in the process that hands out the tests."""
    setattr(TransactionTestCase, "_fixture_teardown", flushing.flush_after_test)  # noqa: B010 - the stubs hide it
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell that starts the suite in its background lets it ignore Ctrl-C, and every program it starts after it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    idle = config.option.collectonly or config.option.help or config.option.version
    if settings.LYCHD_EMBEDDED and not hasattr(config, "workerinput") and not idle:
        config.stash[_STARTED] = ExitStack()
        config.stash[_STARTED].enter_context(embedded.sharing(settings.LYCHD_STATE_DIR, durable=False))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("longest") is None)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what was started, unless another suite still uses it."""
    if started := config.stash.get(_STARTED, None):
        started.close()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Migrate as the owner, then take on the serving role for every test."""
    connection = connections["default"]
    with django_db_blocker.unblock():
        with flushing.as_owner() as owner:
            flushing.remember_migration_rows(owner)
        _take_role(settings.LYCHD_SERVING_ROLE)
    yield
    # pytest-django drops the databases next, and only their owner can.
    with django_db_blocker.unblock():
        connection.settings_dict["OPTIONS"].pop("assume_role", None)
        connection.close()
        flushing.forget()


def _take_role(role: str) -> None:
    connection = connections["default"]
    # The dictionary is shared by every thread's connection; the next one that opens says SET ROLE.
    connection.settings_dict["OPTIONS"]["assume_role"] = role
    connection.close()


class _Loud(logging.Handler):
    """Ends the test in which our own code hands the log a field that no line would show."""

    def handle(self, record: logging.LogRecord) -> bool:
        ours = record.name.partition(".")[0] in {"archive", "semantic", "inspection", "lychd"}
        if ours and (lost := logs.unspoken(record)):
            raise AssertionError(f"{record.name} says {sorted(lost)}, and lychd.logs.SPOKEN does not know them")
        return True


@pytest.fixture(autouse=True)
def _nothing_vanishes_from_the_log() -> Iterator[None]:
    # For each test anew: a command that sets the log up clears what stood there.
    loud = _Loud()
    logging.getLogger().addHandler(loud)
    yield
    logging.getLogger().removeHandler(loud)


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """No test inherits another's throttle counts."""
    cache.clear()


def _connect(role: str | None) -> "psycopg.Connection[Any]":
    connection = psycopg.connect(**flushing.parameters(), autocommit=True)
    if role is not None:
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
    return connection


@pytest.fixture
def owner(transactional_db: None) -> "Iterator[psycopg.Connection[Any]]":
    """A connection of its own as the owner of the tables, each statement committed at once."""
    with _connect(None) as connection:
        yield connection


@pytest.fixture
def serving(transactional_db: None) -> "Iterator[psycopg.Connection[Any]]":
    """A connection of its own as the serving role, each statement committed at once."""
    if not settings.LYCHD_EMBEDDED:
        with _connect(settings.LYCHD_SERVING_ROLE) as connection:
            yield connection
        return
    # A true login: what RESET ROLE leads back to is then no more than the role itself.
    with psycopg.connect(**{**flushing.parameters(), "user": embedded.SERVING_ROLE}, autocommit=True) as connection:
        yield connection


@pytest.fixture
def superuser(transactional_db: None) -> "Iterator[psycopg.Connection[Any]]":
    """A connection as the embedded server's superuser, for what no role of the service can do."""
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("the database of DATABASE_URL has no superuser that the suite may be")
    with psycopg.connect(**{**flushing.parameters(), "user": embedded.SUPERUSER}, autocommit=True) as connection:
        yield connection


@pytest.fixture
def garden(transactional_db: None) -> cast.Garden:
    """A configured namespace with the whole cast; nothing is retained yet."""
    return cast.plant()


@pytest.fixture
def alice(garden: cast.Garden) -> Caller:
    """Curates, and may write and recall besides."""
    return garden.caller("alice")


@pytest.fixture
def bob(garden: cast.Garden) -> Caller:
    """Recalls."""
    return garden.caller("bob")


@pytest.fixture
def wanda(garden: cast.Garden) -> Caller:
    """Writes."""
    return garden.caller("wanda")


@pytest.fixture
def ivy(garden: cast.Garden) -> Caller:
    """Inspects."""
    return garden.caller("ivy")


@pytest.fixture
def otto(garden: cast.Garden) -> Caller:
    """Operates."""
    return garden.caller("otto")


@pytest.fixture
def scripted(settings: Any) -> Iterator[type[cast.ScriptedAuthorizer]]:
    """Put the scripted authorizer in place; set `.script`, read `.asked`."""
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "authorizer": "tests.cast.ScriptedAuthorizer"}
    cast.ScriptedAuthorizer.script = [True]
    cast.ScriptedAuthorizer.asked = []
    cast.ScriptedAuthorizer.calls = 0
    yield cast.ScriptedAuthorizer
    cast.ScriptedAuthorizer.script = [True]
