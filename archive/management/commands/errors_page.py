"""Write docs/errors.md from the refusals themselves."""

from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from archive import refusals
from archive.outages import OUTAGES
from archive.refusals import Refusal

_OPENING = """# Errors

Every no of the archive, written from the code by `lychd errors_page --out docs/errors.md`. Over HTTP a refusal is an
`application/problem+json` document with `type` (`urn:lychd:problem:` and the code), `title`, `status`, `code`,
`detail`, `correlation_id` and, where the request itself is at fault, `errors` with a JSON pointer each. Branch on
`code`. On the command line the same codes end a command with the exit code given here.

A refusal changed nothing, with two exceptions: after `outcome_unknown` it may have happened, and a refusal of authority
at the last check withholds an answer whose change is already committed. A miss is no error: it is a receipt with an
empty selection.
"""


def written() -> str:
    """The page as it stands in docs/errors.md."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _OPENING.rstrip()
    status = 0
    for kind in refusals.every():
        if kind.status != status:
            status = kind.status
            yield ""
            yield f"## {status} {_phrase(status)}"
            yield ""
            yield "| code | exit | what it says | what to do |"
            yield "|---|---|---|---|"
        yield _row(kind)
    yield from _outages()


def _outages() -> Iterator[str]:
    yield ""
    yield "## Why the database does not serve"
    yield ""
    yield (
        "`storage_unavailable` says in its title which of these it is, and the log has the SQLSTATE. One that\n"
        "ends in `000` stands for all of its class that are not listed. A 503 carries `Retry-After`."
    )
    yield ""
    yield "| SQLSTATE | what it says | what to do |"
    yield "|---|---|---|"
    yield from (f"| `{one.sqlstate}` | {one.title} | {one.fix} |" for one in OUTAGES)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase


def _row(kind: type[Refusal]) -> str:
    return f"| `{kind.code}` | {kind.exit_code} | {kind.title} | {kind.detail} |"


class Command(BaseCommand):
    """Write the page to standard output, or to a file."""

    help = "Write the page of errors from the refusals in the code."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the file."""
        parser.add_argument("--out", type=Path, help="the file to write; standard output without it")

    def handle(self, *, out: Path | None, **options: Any) -> None:
        """Write."""
        if out is None:
            self.stdout.write(written(), ending="")
        else:
            out.write_text(written(), encoding="utf-8")
