"""How an instance's own PostgreSQL is, found by looking: nothing is started, stopped or connected to."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from lychd import postmaster
from lychd.places import data_dir, listens, log_path

POSTGRES: Final = "PostgreSQL"
BROKER: Final = "the broker"
_KEPT: Final = 200
_DAYS: Final = 7
_SHOWN: Final = "%Y-%m-%d %H:%M:%S UTC"
_BY_ITSELF: Final = "`lychd serve` starts it again, and so does every command but this one. {log} says why it ended."


@dataclass(frozen=True, slots=True)
class Condition:
    """What was seen of the server, and what to do where it does not run."""

    seen: str
    fix: str | None = None

    @property
    def runs(self) -> bool:
        """Whether there is nothing to do."""
        return self.fix is None


def look(state: Path) -> Condition:
    """Look at the server of an instance."""
    data = data_dir(state)
    if not data.exists():
        return Condition("The embedded PostgreSQL was never made here.", "Run `lychd init`.")
    named = postmaster.named(data)
    began = "at an unknown time" if named is None or named.began is None else f"{named.began:{_SHOWN}}"
    if postmaster.standing(data) is not None or listens(state):
        return Condition(f"runs since {began}")
    if postmaster.open_to_others(data):
        seen = f"The embedded PostgreSQL is not running, and {data} is open to other users."
        return Condition(seen, f"PostgreSQL does not start on such a folder: `chmod 0700 {data}`.")
    fix = _BY_ITSELF.format(log=log_path(state))
    if named is not None:
        return Condition(f"The embedded PostgreSQL is not running: it died. It was started {began}.", fix)
    return Condition("The embedded PostgreSQL is not running: it was stopped.", fix)


def died(state: Path, name: str) -> None:
    """Write down that a server was found dead and is started again."""
    file = state / "deaths"
    lines = [*_lines(file), f"{datetime.now(UTC).isoformat(timespec='seconds')} {name}"]
    draft = file.with_name("deaths.draft")
    draft.touch(mode=0o600)
    draft.write_text("\n".join([*lines[-_KEPT:], ""]), encoding="utf-8")
    draft.rename(file)


def deaths(state: Path) -> list[str]:
    """Say of each server how often it died of late and was started again; nothing where none did."""
    since = datetime.now(UTC) - timedelta(days=_DAYS)
    counts: Counter[str] = Counter()
    last: dict[str, datetime] = {}
    for line in _lines(state / "deaths"):
        moment, _, name = line.partition(" ")
        try:
            found = datetime.fromisoformat(moment)
        except ValueError:
            continue
        if found >= since:
            counts[name] += 1
            last[name] = found
    return [
        f"{name} died {count} time{'' if count == 1 else 's'} in the last {_DAYS} days and was started again,"
        f" last {last[name]:{_SHOWN}}"
        for name, count in sorted(counts.items())
    ]


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
