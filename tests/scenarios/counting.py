"""What every table holds, so that a test can say that nothing was written, or exactly what."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from archive.refusals import Refusal


class Counts:
    """The rows of every archive_, semantic_ and lychd_ table, by number and by content, since the last look."""

    def __init__(self, owner: "psycopg.Connection[Any]") -> None:
        self.owner = owner
        self.tables: list[str] = [
            name
            for (name,) in owner.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
                " AND relname ~ '^(archive|semantic|lychd)_' ORDER BY 1"
            )
        ]
        assert len(self.tables) > 10
        self.mark()

    def look(self) -> dict[str, tuple[int, str]]:
        """Count and digest every table in one statement."""
        question = sql.SQL(" UNION ALL ").join(
            sql.SQL(
                "SELECT {}, count(*), coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') FROM {} t"
            ).format(sql.Literal(name), sql.Identifier("public", name))
            for name in self.tables
        )
        return {name: (count, content) for name, count, content in self.owner.execute(question)}

    def mark(self) -> None:
        """Measure from here on."""
        self.last = self.look()

    def unchanged(self, *, but: Sequence[str] = ()) -> None:
        """No row came, went or changed."""
        now = self.look()
        moved = {name for name in self.tables if now[name] != self.last[name] and name not in but}
        assert not moved, f"changed: {sorted(moved)}"

    def grew(self, **by: int) -> None:
        """Exactly these tables have exactly so many rows more (or fewer); measures from here on."""
        now = self.look()
        differences = {name: now[name][0] - self.last[name][0] for name in self.tables}
        assert {name: step for name, step in differences.items() if step} == {name: n for name, n in by.items() if n}
        self.last = now

    @contextmanager
    def refused(self, status: int, code: str) -> Iterator[None]:
        """What happens inside is refused in this way, and nothing at all is different afterwards."""
        self.mark()
        with refused(status, code):
            yield
        self.unchanged()


@contextmanager
def refused(status: int, code: str) -> Iterator[None]:
    """What happens inside is a typed no with this status and code."""
    with pytest.raises(Refusal) as met:
        yield
    assert (met.value.status, met.value.code) == (status, code)
