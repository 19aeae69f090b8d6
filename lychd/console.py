"""The `lychd` command: one line in, one answer and one exit code out.

`lychd` and `manage.py` share the acts of `lychd.commands`; what is no command of ours is handed to the
framework. Nothing of Django is imported for a command that needs none of it.
"""

import argparse
import contextlib
import difflib
import importlib.metadata
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Final

from archive.refusals import Internal, Refusal
from lychd.commands import grammar
from lychd.commands.entry import Entry, Needs
from lychd.commands.telling import (
    CRASH,
    INTERRUPTED,
    USAGE,
    Told,
    Unready,
    UsageError,
    host_problem,
    problem_lines,
    problem_of,
    remark,
    tell,
)

_UNAVAILABLE: Final = 4
# Handed over to the framework, these talk to the database, so the embedded server has to be there.
_WITH_DATABASE: Final = frozenset(
    {
        "changepassword",
        "createsuperuser",
        "dbshell",
        "dumpdata",
        "inspectdb",
        "runserver",
        "shell",
        "showmigrations",
        "sqlmigrate",
    }
)


def main() -> None:
    """Run one command line and leave with its exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    # A name or a note may hold what the terminal's encoding does not.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:], quiet=True)
    if code not in (0, USAGE, INTERRUPTED):
        from lychd.demo_instance import INSTANCE, runs_beside

        if runs_beside(os.environ):
            remark(f"A demo is running; a command works on it with LYCHD_INSTANCE={INSTANCE} before it.")
    sys.exit(code)


def _terminated(number: int, frame: FrameType | None) -> None:
    # As an exception, so that whoever holds a server lets go of it on the way out.
    raise SystemExit(128 + number)


def run(arguments: Sequence[str], *, quiet: bool = False) -> int:
    """Run one command line and return its exit code; `quiet` keeps the log to warnings."""
    as_json = "--json" in arguments
    try:
        return _run(list(arguments), as_json=as_json, quiet=quiet)
    except KeyboardInterrupt:
        remark("")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has enough. Nothing more can be said, and the interpreter must not try at its end.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        if _interrupted(error):
            remark("")
            return INTERRUPTED
        return _failed(error, as_json=as_json)


def _interrupted(error: BaseException | None) -> bool:
    """Whether a Ctrl-C is what an error came from: giving back what a statement held may fail after it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _run(arguments: list[str], *, as_json: bool, quiet: bool) -> int:
    if not arguments:
        remark(grammar.overview())
        return USAGE
    if arguments[0] in ("help", "-h", "--help"):
        return _help(arguments[1:])
    if arguments[0] == "--version":
        tell(Told({}, f"lychd {importlib.metadata.version('lychd-archive')}"), as_json=False)
        return 0
    if arguments[0] not in grammar.first_words():
        return _hand_over(arguments)
    try:
        options = grammar.parse(arguments)
    except SystemExit as finished:
        # argparse has printed the help that was asked for.
        return finished.code if isinstance(finished.code, int) else 0
    told = perform(options, quiet=quiet)
    if told is None:
        return 0
    tell(told, as_json=options.as_json)
    return told.exit_code


def perform(options: argparse.Namespace, *, quiet: bool = False) -> Told | None:
    """Run the act of parsed options on the ground that it needs."""
    entry: Entry = options.entry
    if entry.needs is Needs.NOTHING:
        return entry.perform(options)
    if entry.line == "demo":
        from lychd.demo_instance import choose_instance

        choose_instance(os.environ, options.model)
    _set_up(quiet=quiet and entry.line != "serve")
    if entry.needs is Needs.SETTINGS:
        return entry.perform(options)
    with database(broker=entry.embeds):
        return entry.perform(options)


def _set_up(*, quiet: bool) -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lychd.settings")
    django.setup()
    if quiet and "LYCHD_LOG_LEVEL" not in os.environ:
        # A refusal is told once, by the command itself.
        logging.getLogger().setLevel(logging.WARNING)


@contextlib.contextmanager
def database(*, broker: bool = False) -> Iterator[None]:
    """Have the database there: the one of DATABASE_URL, or the embedded server, attached to or started.

    With `broker` the embedded broker as well, where something is embedded and no other broker is named.
    """
    from django.conf import settings
    from django.db import connections

    from lychd import embedded

    if not settings.LYCHD_EMBEDDED:
        yield
        return
    archive = settings.LYCHD_ARCHIVE or {}
    counted = broker and not settings.REDIS_URL and archive.get("derivation") and archive["coordination"] == "redis"
    with _interruptible() as deafen, embedded.sharing(settings.LYCHD_STATE_DIR, broker=bool(counted)):
        try:
            yield
        finally:
            connections.close_all()
            # A second Ctrl-C must not leave a half-stopped server behind.
            deafen()


@contextlib.contextmanager
def _interruptible() -> Iterator[Callable[[], object]]:
    """Give the means to ignore Ctrl-C from some moment on; what was before comes back at the end."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    finally:
        signal.signal(signal.SIGINT, before)


def _help(words: list[str]) -> int:
    if not words:
        tell(Told({}, grammar.overview()), as_json=False)
        return 0
    return _run([*words, "--help"], as_json=False, quiet=True)


def _hand_over(arguments: list[str]) -> int:
    _set_up(quiet=False)
    from django.core.management import ManagementUtility, get_commands

    if arguments[0] not in get_commands():
        near = difflib.get_close_matches(arguments[0], [*grammar.first_words(), *get_commands()], n=1)
        raise UsageError(
            f"there is no command {arguments[0]!r}"
            + (f"; did you mean `lychd {near[0]}`?" if near else "")
            + "\n`lychd help` lists them all."
        )
    utility = ManagementUtility(["lychd", *arguments])
    if arguments[0] in _WITH_DATABASE or any(word.startswith("--database") for word in arguments):
        with database():
            utility.execute()
    else:
        utility.execute()
    return 0


def _failed(error: Exception, *, as_json: bool) -> int:
    """Tell what went wrong and which kind of wrong it is."""
    if isinstance(error, Refusal):
        return _say(problem_of(error), problem_lines(error), error.exit_code, as_json=as_json)
    if isinstance(error, UsageError):
        return _say(
            host_problem("usage", "The command line is not well formed", str(error)),
            f"lychd: {error}",
            USAGE,
            as_json=as_json,
        )
    if isinstance(error, Unready):
        return _say(
            host_problem("not_ready", "Something that the command needs is not there", str(error)),
            f"lychd: {error}",
            _UNAVAILABLE,
            as_json=as_json,
        )
    from lychd.places import EmbeddedError

    if isinstance(error, EmbeddedError):
        return _failed(Unready(str(error)), as_json=as_json)
    if "django" in sys.modules:
        from django.core.exceptions import ImproperlyConfigured
        from django.db import Error

        if isinstance(error, ImproperlyConfigured):
            return _failed(UsageError(str(error)), as_json=as_json)
        if isinstance(error, Error):
            from archive.transactions import named

            meant = named(error)
            if isinstance(meant, Refusal):
                return _failed(meant, as_json=as_json)
    return _crashed(error, as_json=as_json)


def _crashed(error: Exception, *, as_json: bool) -> int:
    """A fault of ours: its type and where it passed, never its message, which may quote a note."""
    from lychd.logs import frames

    name = type(error).__qualname__
    if sqlstate := getattr(error.__cause__, "sqlstate", None):
        name += f", SQLSTATE {sqlstate}"
    passed = frames(error.__traceback__)
    lines = [problem_lines(Internal()), f"  {name}", *(f"    {frame}" for frame in passed)]
    return _say({**problem_of(Internal()), "error": name, "frames": passed}, "\n".join(lines), CRASH, as_json=as_json)


def _say(problem: dict[str, object], lines: str, code: int, *, as_json: bool) -> int:
    if as_json:
        tell(Told(problem, ""), as_json=True)
    remark(lines)
    return code


if __name__ == "__main__":
    main()
