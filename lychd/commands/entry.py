"""One command of the line: its words, what it takes, and the act behind it; with the options that many share."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from importlib import import_module
from typing import Any, Final, NoReturn
from uuid import UUID

from archive import limits
from lychd.commands.telling import Told, UsageError


class Needs(Enum):
    """What has to be there before a command can act."""

    NOTHING = "nothing"
    SETTINGS = "settings"
    DATABASE = "database"


class Parser(argparse.ArgumentParser):
    """Raises instead of leaving, so that every usage error ends in one place with one exit code."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\nSee `{self.prog} --help`.")


Option = Callable[[argparse.ArgumentParser], object]


def option(*names: str, **how: Any) -> Option:
    """Describe one option the way argparse takes it."""
    return lambda parser: parser.add_argument(*names, **how)


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: its words, one line of help, what it takes, and the act behind it."""

    line: str
    summary: str
    act: str
    options: tuple[Option, ...] = ()
    needs: Needs = Needs.DATABASE
    about: str = field(default="", kw_only=True)
    # The actions that the principal of `--as` needs, by their names in grants.
    rights: tuple[str, ...] = field(default=(), kw_only=True)
    # Whether it may embed, and so needs what leases are counted in.
    embeds: bool = field(default=False, kw_only=True)

    def perform(self, options: argparse.Namespace) -> Told | None:
        """Run the act; one that speaks while it runs has nothing left to tell at its end."""
        module, _, function = self.act.partition(".")
        told: Told | None = getattr(import_module(f"lychd.commands.{module}"), function)(options)
        return told

    def describe(self, parser: argparse.ArgumentParser) -> None:
        """Teach a parser the options of this command."""
        for add in self.options:
            add(parser)
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document on stdout")
        parser.set_defaults(entry=self)


def moment(value: str) -> datetime:
    """Read a time with its offset."""
    try:
        given = datetime.fromisoformat(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} is no time such as 2031-05-01T12:00:00+02:00") from None
    if given.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{value!r} has no offset; write 2031-05-01T12:00:00+02:00")
    return given.astimezone(UTC)


def note_id(value: str) -> UUID:
    """Read the identity of a note."""
    try:
        return UUID(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} is no note id; `lychd notes` lists them") from None


AS: Final = option("--as", dest="subject", metavar="SUBJECT", help="the principal who acts (or LYCHD_AS)")
NAMESPACE: Final = option(
    "--namespace", metavar="KEY", help="where (or LYCHD_NAMESPACE; the only one served needs no naming)"
)
ACTING: Final = (AS, NAMESPACE)
PAGE: Final = (
    option("--limit", type=int, default=limits.PAGE_SIZE_DEFAULT, metavar="N", help="at most so many (default 50)"),
    option("--cursor", metavar="CURSOR", help="go on where the last page ended"),
)
NOTE: Final = option("note", type=note_id, metavar="NOTE", help="the note's id")
