"""A database of its own for commands that measure, since nothing in an archive can be deleted (specification 0.14).

It lies on the server of this installation, is migrated by the owner like any other, and is dropped at the end, whatever
the end was. Another process works in it by its name.
"""

import contextlib
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import Error, connections
from psycopg import Connection, sql

from archive import limits
from archive.operations import host
from lychd import databases, embedded
from lychd.roles import OWNER_ALIAS

PREFIX: Final = "lychd_scratch_"
SUBJECT: Final = "scratch"
_OWNER: Final = "scratch"
_POLICY: Final = "scratch-1"
_ROLES: Final = ("curator", "writer", "recaller")
_ALIASES: Final = ("default", OWNER_ALIAS)


class ScratchError(RuntimeError):
    """No database could be made; the message is one sentence for whoever asked."""


@contextlib.contextmanager
def database(purpose: str) -> Iterator[str]:
    """Make a migrated database, work in it as the serving role, and drop it at the end, by Ctrl-C or SIGTERM too."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_terminated_like_interrupted())
        if settings.LYCHD_EMBEDDED:
            stack.enter_context(embedded.sharing(settings.LYCHD_STATE_DIR))
        # By its process, so that a left one says whose it was; and by chance, since numbers of processes come again.
        name = f"{PREFIX}{purpose}_{os.getpid()}_{secrets.token_hex(6)}"
        # Registered first: an interrupt may come between the server's answer and ours.
        stack.callback(_drop, name)
        _create(name)
        stack.enter_context(taken_up(name))
        call_command("migrate", database=OWNER_ALIAS, verbosity=0, interactive=False)
        yield name


@contextlib.contextmanager
def taken_up(name: str) -> Iterator[None]:
    """Let this process work in the database of that name, with the archive's profile on."""
    before = {alias: connections.settings[alias]["NAME"] for alias in _ALIASES}
    profile, waiting = settings.LYCHD_ARCHIVE, settings.LYCHD_WAITING_CANDIDATES_MAX
    # What is measured here was written by one subject.
    settings.LYCHD_WAITING_CANDIDATES_MAX = 2**31 - 1
    settings.LYCHD_ARCHIVE = {
        "profile": limits.PROFILE,
        "authorizer": "archive.authority.GrantAuthorizer",
        "bindings": "archive.bindings.TableBindings",
    }
    _point(dict.fromkeys(_ALIASES, name))
    try:
        yield
    finally:
        _point(before)
        settings.LYCHD_ARCHIVE, settings.LYCHD_WAITING_CANDIDATES_MAX = profile, waiting


def serve(namespace: str, text_configuration: str) -> None:
    """Configure a namespace of the scratch database, with one subject that writes, decides and recalls."""
    binding = host.configure_namespace(
        namespace, owner=_OWNER, policy_revision=_POLICY, by=host.host_actor(), text_configuration=text_configuration
    )
    host.map_principal(SUBJECT)
    host.grant(SUBJECT, binding, host.actions_of(_ROLES), by=host.host_actor())


def _point(names: dict[str, Any]) -> None:
    for alias, name in names.items():
        # One dictionary for the connections of every thread; the next one that opens goes there.
        connections[alias].close()
        connections[alias].settings_dict["NAME"] = name


def _create(name: str) -> None:
    try:
        with as_owner() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except (Error, psycopg.Error) as error:
        raise ScratchError("The owner's login may make no database (CREATEDB), and this command needs one.") from error


def _drop(name: str) -> None:
    if threading.current_thread() is threading.main_thread():
        # A second Ctrl-C must not leave the database behind.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with as_owner() as connection:
        databases.drop(connection, name)


@contextlib.contextmanager
def as_owner() -> Iterator[Connection[Any]]:
    """The owner of the schema, for what the serving role may not: databases, tables of one's own, and VACUUM."""
    connection = connections[OWNER_ALIAS]
    connection.ensure_connection()
    try:
        yield connection.connection
    finally:
        connection.close()


@contextlib.contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM unwinds like Ctrl-C, and both find their old meaning at the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def unwind(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        for number, meaning in before.items():
            signal.signal(number, meaning)
