"""Whose process a pid file names, and why a server did not start.

A number in a file says nothing: it may be a dead process's, and by now somebody else's. What decides is the folder that
the process works in, which PostgreSQL makes its own before it does anything else.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

_PROCESSES: Final = Path("/proc")
# PostgreSQL starts on a folder that its owner alone may enter, or its group besides.
_OPEN_TO_OTHERS: Final = 0o027
# How far a process's start may lie from what its pid file says: both are whole seconds of a clock that may be set.
_START_SECONDS: Final = 5.0
# Where the kernel counts the time of processes from, in its own units.
_BOOT: Final = re.compile(r"^btime (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Named:
    """What a pid file says: a number, and when the process of that number began."""

    pid: int
    began: datetime | None


def named(data: Path) -> Named | None:
    """Read a data folder's pid file; a server that ends takes it along, one that dies leaves it."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
        pid = int(lines[0])
    except (OSError, ValueError, IndexError):
        return None
    began = int(lines[2]) if len(lines) > 2 and lines[2].isdigit() else None
    return Named(pid, None if began is None else datetime.fromtimestamp(began, UTC))


def standing(data: Path) -> int | None:
    """The living server of this data folder; never a process that only has the number of one."""
    found = named(data)
    if found is None:
        return None
    return found.pid if _is_postgres(found.pid) and _works_in(found, data) else None


def orphans(data: Path) -> list[int]:
    """The processes that still work in a folder after the server that began them is gone."""
    return sorted(pid for pid in _numbers() if _is_postgres(pid) and _same_folder(pid, data) is True)


def _numbers() -> Iterator[int]:
    for entry in _PROCESSES.glob("[0-9]*"):
        yield int(entry.name)


def _is_postgres(pid: int) -> bool:
    """Whether a process of this number lives, buried ones and zombies aside, and runs a program of this name."""
    if not _PROCESSES.is_dir():
        return "postgres" in _command(pid)
    try:
        before, _, after = (_PROCESSES / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")
    except OSError:
        return False
    return before.endswith("(postgres") and after.split()[0] not in "ZX"


def _works_in(found: Named, data: Path) -> bool:
    same = _same_folder(found.pid, data)
    if same is None:
        # Not ours to look into; then the command line has to name the folder, and its start has to be the file's.
        return f"-D {data} " in f"{_command(found.pid)} " and _began_then(found)
    return same


def _same_folder(pid: int, data: Path) -> bool | None:
    """Whether a process works in a folder; None where it cannot be seen."""
    try:
        return (_PROCESSES / str(pid) / "cwd").samefile(data)
    except PermissionError:
        return None
    except OSError:
        return None if not _PROCESSES.is_dir() else False


def _command(pid: int) -> str:
    try:
        return (_PROCESSES / str(pid) / "cmdline").read_text("utf-8", "replace").replace("\0", " ")
    except OSError:
        listed = ["ps", "-ww", "-o", "args=", "-p", str(pid)]
        return subprocess.run(listed, capture_output=True, text=True, check=False).stdout


def _began_then(found: Named) -> bool:
    try:
        ticks = int((_PROCESSES / str(found.pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19])
        boot = _BOOT.search((_PROCESSES / "stat").read_text("ascii"))
    except (OSError, ValueError):
        return True
    if found.began is None or boot is None:
        return False
    began = int(boot[1]) + ticks / os.sysconf("SC_CLK_TCK")
    return abs(began - found.began.timestamp()) <= _START_SECONDS


# Why it did not start

# What PostgreSQL says, and what it means to whoever started it; its own hints are not in a terse log.
_CAUSES: Final = (
    (r"No space left on device", "The disk is full. Make room on the file system of {data}."),
    (
        r"data directory .* has invalid permissions",
        "{data} is open to other users, and PostgreSQL does not start on such a folder: `chmod 0700 {data}`.",
    ),
    (r"data directory .* has wrong ownership", "{data} belongs to another user: give it back to the one who made it."),
    (
        r"pre-existing shared memory block",
        "Processes of a PostgreSQL that died still hold {data}. They end with their statement; wait and try again.",
    ),
    (
        r"lock file .*\.s\.PGSQL.* already exists|could not bind Unix address .*: Address already in use",
        "Another PostgreSQL listens on the socket of {data}. Stop it, or set LYCHD_STATE_DIR to another folder.",
    ),
    (
        r"could not (?:create|map|resize|attach).* shared memory|could not map anonymous shared memory",
        "There is not enough (shared) memory for PostgreSQL. Free some, or let the machine have more.",
    ),
    (
        r"unrecognized configuration parameter|invalid value for parameter|(?:syntax|contains) errors? in file",
        "A line of {data}/postgresql.conf or postgresql.auto.conf is wrong.",
    ),
    (r"database files are incompatible with server", "{data} was made by another PostgreSQL than this one."),
    (
        r"could not locate a valid checkpoint record|invalid checkpoint record|could not open file .*pg_control",
        "The files in {data} are damaged. Keep them, and restore a backup into a new instance.",
    ),
    (r"Permission denied", "PostgreSQL's user may not read all of {data}: give every file in it back to its owner."),
)
_GRAVE: Final = re.compile(r"(?:FATAL|PANIC):\s+(.*)")


def cause(said: str, data: Path) -> str | None:
    """Name what kept a server from starting, out of what it said; None where it said nothing grave."""
    for pattern, sentence in _CAUSES:
        if re.search(pattern, said):
            return sentence.format(data=data)
    grave = _GRAVE.findall(said)
    return f"PostgreSQL says: {grave[-1]}." if grave else None


def open_to_others(data: Path) -> bool:
    """Whether PostgreSQL would refuse a folder for its rights."""
    try:
        return bool(data.stat().st_mode & _OPEN_TO_OTHERS)
    except OSError:
        return False
