"""What an ingest finds under a path: leaves to take in, leaves that cannot be, and what was passed over."""

import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from archive import limits
from archive.refusals import InvalidRequest, TextTooLarge
from lychd.commands import strict
from lychd.commands.telling import UsageError

SUFFIXES: Final = frozenset({".md", ".markdown", ".txt"})
_FITS: Final = re.compile(limits.IDENTIFIER_PATTERN)
_CUT: Final = 100
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})")
# Longer than any line that could be taken: 65,536 bytes of text, each of them escaped, and room for the rest.
_LINE_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Leaf:
    """One text to take in; without a revision it gets the next one of its source."""

    place: str
    source_key: str
    text: str = field(repr=False)
    source_revision: str | None = None
    asserted_origin: str | None = field(default=None, repr=False)
    kind: str = "note"
    observed_at: datetime | None = None
    retention_class: str = "standard"
    retain_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Unfit:
    """One that cannot be taken in, and why; the rest goes on."""

    place: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """One that was passed over on purpose."""

    place: str
    why: str


Found: TypeAlias = Leaf | Unfit | Skipped


def browse(path: str) -> tuple[Iterator[Found], int | None]:
    """Give everything under a path in order, and how much it is where that is known."""
    if path == "-":
        return _lines(sys.stdin.buffer, "line"), None
    where = Path(path)
    try:
        kind = where.stat().st_mode
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or 'no such path'}") from None
    if stat.S_ISDIR(kind):
        found = list(_walk(where))
        return (_opened(where, one) if isinstance(one, str) else one for one in found), len(found)
    if not stat.S_ISREG(kind):
        raise UsageError(f"{path} is neither a folder nor a file")
    if where.suffix.lower() == ".jsonl":
        return _lines_of(where), None
    return iter([_opened(where.parent, where.name)]), 1


def source_key_of(relative: str) -> str:
    """Name a file's source by its relative path, or by what fits of it and the path's digest."""
    if _FITS.match(relative):
        return relative
    raw = os.fsencode(relative)
    fitting = re.sub(r"[^A-Za-z0-9._:/-]+", "-", relative).lstrip("._:/-")[:_CUT].rstrip("-") or "path"
    return f"{fitting}-{hashlib.sha256(raw).hexdigest()[:16]}"


def _walk(root: Path) -> Iterator[str | Unfit | Skipped]:
    """Name the files of a folder by their relative paths, in sorted order, with what is passed over in its place."""
    unreadable: list[OSError] = []
    home = root.resolve()
    for folder, names, files in os.walk(root, onerror=unreadable.append):
        inside = Path(folder).relative_to(root)
        for error in unreadable:
            yield Unfit(Path(error.filename).relative_to(root).as_posix(), "unreadable", error.strerror or "unreadable")
        unreadable.clear()
        for name in sorted(names):
            place = (inside / name).as_posix()
            if name.startswith("."):
                yield Skipped(place, "hidden")
            elif (Path(folder) / name).is_symlink():
                yield Skipped(place, "a link to a folder")
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            place = (inside / name).as_posix()
            why = _passed_over(Path(folder) / name, home)
            yield place if why is None else Skipped(place, why)
    for error in unreadable:
        yield Unfit(Path(error.filename).relative_to(root).as_posix(), "unreadable", error.strerror or "unreadable")


def _passed_over(file: Path, home: Path) -> str | None:
    if file.name.startswith("."):
        return "hidden"
    if file.suffix.lower() not in SUFFIXES:
        return "not Markdown or text"
    # Not by Path.resolve, which raises where a link leads to itself; opening it says so.
    if file.is_symlink() and not Path(os.path.realpath(file)).is_relative_to(home):
        return "a link that leaves the folder"
    return None


def _opened(root: Path, relative: str) -> Leaf | Unfit:
    file = root / relative
    try:
        # Not blocked by a pipe that nobody writes to, and asked of what was opened, not of its name.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as opened:
            about = os.fstat(opened.fileno())
            if not stat.S_ISREG(about.st_mode):
                return Unfit(relative, "unreadable", "not a regular file")
            # One byte more than a note may have is enough to be told so.
            raw = opened.read(limits.NOTE_TEXT_MAX_BYTES + 1)
    except OSError as error:
        return Unfit(relative, "unreadable", error.strerror or "unreadable")
    if len(raw) > limits.NOTE_TEXT_MAX_BYTES:
        return Unfit(relative, TextTooLarge.code, f"more than {limits.NOTE_TEXT_MAX_BYTES} bytes")
    try:
        return Leaf(relative, source_key_of(relative), raw.decode("utf-8"))
    except UnicodeDecodeError:
        return Unfit(relative, InvalidRequest.code, "not UTF-8")


def _lines_of(file: Path) -> Iterator[Found]:
    try:
        with file.open("rb") as opened:
            yield from _lines(opened, f"{file.name}:")
    except OSError as error:
        yield Unfit(file.name, "unreadable", error.strerror or "unreadable")


def _lines(opened: IO[bytes], before: str) -> Iterator[Found]:
    number = 0
    while line := opened.readline(_LINE_MAX + 1):
        number += 1
        place = f"{before}{number}" if before.endswith(":") else f"{before} {number}"
        if len(line) > _LINE_MAX:
            while line and not line.endswith(b"\n"):
                line = opened.readline(_LINE_MAX)
            yield Unfit(place, TextTooLarge.code, f"a line of more than {_LINE_MAX} bytes")
        elif line.strip():
            yield _leaf(place, line)


def _leaf(place: str, line: bytes) -> Leaf | Unfit:
    try:
        return Leaf(place, **_fields(strict.read(line)))
    except strict.NotStrict as wrong:
        return Unfit(place, InvalidRequest.code, str(wrong))


_TEXTS: Final = ("source_key", "text", "source_revision", "asserted_origin", "kind")


def _fields(told: Any) -> dict[str, Any]:
    """Read the fields of one line; what is there is checked, what is not there keeps its default."""
    if not isinstance(told, dict):
        raise strict.NotStrict("not an object")
    unknown = told.keys() - {*_TEXTS, "observed_at", "retention"}
    if unknown:
        raise strict.NotStrict(
            "a field that is not known; there are source_key, text, source_revision,"
            " asserted_origin, kind, observed_at and retention"
        )
    given = {name: value for name, value in told.items() if value is not None}
    for name in ("source_key", "text"):
        if name not in given:
            raise strict.NotStrict(f"{name} is missing")
    fields: dict[str, Any] = {name: given[name] for name in _TEXTS if name in given}
    for name, value in fields.items():
        if not isinstance(value, str):
            raise strict.NotStrict(f"{name} is not a string")
    if "observed_at" in given:
        fields["observed_at"] = _moment("observed_at", given["observed_at"])
    retention = given.get("retention", {})
    if not isinstance(retention, dict) or retention.keys() - {"class", "retain_until"}:
        raise strict.NotStrict("retention is an object with class and retain_until")
    if retention.get("class") is not None:
        if not isinstance(retention["class"], str):
            raise strict.NotStrict("retention.class is not a string")
        fields["retention_class"] = retention["class"]
    if retention.get("retain_until") is not None:
        fields["retain_until"] = _moment("retention.retain_until", retention["retain_until"])
    return fields


def _moment(name: str, value: object) -> datetime:
    wrong = strict.NotStrict(f"{name} is no time with an offset, such as 2031-05-01T12:00:00Z")
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise wrong
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise wrong from None
