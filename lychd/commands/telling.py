"""What a command says: on stdout one JSON document or plain lines for people, on stderr everything else."""

import json
import sys
import time
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from archive import visible as eye
from archive.refusals import Refusal

USAGE: Final = 64
CRASH: Final = 1
INTERRUPTED: Final = 130
_LINE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Told:
    """The answer of one command, in both forms, and its exit code."""

    document: dict[str, Any]
    text: str
    exit_code: int = 0

    def said(self, *, as_json: bool) -> str:
        """The one form that was asked for."""
        return json.dumps(self.document, indent=2) if as_json else self.text


class UsageError(Exception):
    """The command line itself is wrong; the message says what would be right."""


class Unready(Exception):
    """Something the command needs is not there; the message says what, and how to get it (exit 4)."""


def tell(told: Told, *, as_json: bool) -> None:
    """Write the answer to stdout: exactly one JSON document, or lines."""
    said = told.said(as_json=as_json)
    # In one piece, so that a reader of a pipe never sees half a document followed by something else.
    sys.stdout.write(said.rstrip("\n") + "\n")
    sys.stdout.flush()


def remark(line: str) -> None:
    """Say something beside the answer: a warning, a step, a hint."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def problem_of(refusal: Refusal) -> dict[str, Any]:
    """Return the problem object of a refusal, as every door gives it; it quotes no text."""
    problem: dict[str, Any] = {
        "type": f"urn:lychd:problem:{refusal.code}",
        "title": refusal.title,
        "status": refusal.status,
        "detail": refusal.detail,
        "code": refusal.code,
    }
    if refusal.faults:
        problem["errors"] = [fault.as_json() for fault in refusal.faults]
    return {**problem, **refusal.extra}


def problem_lines(refusal: Refusal) -> str:
    """Write a refusal for people: what, where, and the next step."""
    lines = [f"lychd: {refusal.title} ({refusal.code})"]
    lines += [
        f"  {on_one_line(fault.pointer.removeprefix('/'))}: {on_one_line(fault.message)}" for fault in refusal.faults
    ]
    return "\n".join([*lines, f"  {refusal.detail}"])


def host_problem(code: str, title: str, detail: str) -> dict[str, Any]:
    """Return the problem object of what only a command can meet: a wrong line, a missing server, a fault."""
    return {"type": f"urn:lychd:problem:{code}", "title": title, "detail": detail, "code": code}


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> str:
    """Lay rows out under their heads; an empty table is a sentence instead."""
    cells = [["-" if value is None else on_one_line(value) for value in row] for row in rows]
    if not cells:
        return empty
    wide = [max(_width(row[place]) for row in [list(heads), *cells]) for place in range(len(heads))]
    return "\n".join(
        "  ".join(value + " " * (wide[place] - _width(value)) for place, value in enumerate(row)).rstrip()
        for row in [[head.upper() for head in heads], *cells]
    )


def pairs(rows: Iterable[tuple[str, object]]) -> str:
    """Lay a record out as names and values."""
    known = [(name, "-" if value is None else on_one_line(value)) for name, value in rows]
    wide = max(len(name) for name, _ in known)
    return "\n".join(f"{name:<{wide}}  {value}" for name, value in known)


def _width(value: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in value)


# Note [What a terminal must not be told]
# A note is foreign text. Escape sequences could rewrite the screen, direction marks could show another order than the
# one that is stored, and characters without width could hide. The eye is that of the pages (archive/visible.py), so
# that whoever judges here misses nothing that is marked there; `--json` escapes everything outside ASCII anyway.


def visible(text: str) -> str:
    """Spell out every character that a terminal would obey or hide, and name look-alikes; line ends and tabs stay."""
    return "".join(map(_spelled, eye.visible(text).pieces)).replace("\r", "<U+000D>")


def _spelled(piece: eye.Piece) -> str:
    if piece.mark is None:
        return piece.text
    code = f"<{piece.name.partition(' ')[0]}>"
    return f"{piece.text}{code}" if piece.mark is eye.Mark.LOOKALIKE else code


def on_one_line(value: object) -> str:
    """The same for a value that has to stay on its line."""
    return visible(str(value)).replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def marked(text: str) -> str:
    """Say how many characters of a text are spelled out; nothing where there is none."""
    seen = eye.visible(text)
    found = ((seen.hidden, "hidden character"), (seen.lookalikes, "look-alike letter"))
    return ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in found if count)


def indented(text: str, by: str = "  | ") -> str:
    """Set foreign text off from our own words, line by line."""
    return "\n".join(by + line for line in visible(text).split("\n"))


class Progress:
    """How far a long act has come: a bar on a terminal, elsewhere the first step and a line every ten seconds."""

    def __init__(self, what: str, total: int | None, unit: str = "notes") -> None:
        from tqdm import tqdm

        self._what, self._total, self._unit = what, total, unit
        self._bar = tqdm(total=total, desc=what, unit=f" {unit}", disable=None, leave=False)
        self._done = 0
        self._said_at: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def reach(self, done: int, total: int | None = None) -> None:
        """Say that this many are done."""
        self._total = self._total if total is None else total
        if not self._bar.disable:
            self._bar.total = self._total
            self._bar.update(done - self._done)
        elif self._said_at is None or time.monotonic() - self._said_at >= _LINE_SECONDS:
            self._said_at = time.monotonic()
            remark(f"{self._what}: {done}{'' if self._total is None else f' of {self._total}'} {self._unit}")
        self._done = done
