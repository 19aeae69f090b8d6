"""What the explorer asks of two operations that meet: every ending is that of one order, or one that was named.

The oracle knows no operation. It runs the two in one order and in the other and remembers the words they ended with and
all rows they left; every other schedule must come to the same as one of them. Some pairs have endings of their own, a
refusal between two checks say; those are named, and still must leave the rows that some of the acts alone would leave.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any, Final

import psycopg

from tests.racing import invariants
from tests.racing.actors import Crew
from tests.racing.exploration import Explored, Run, explore
from tests.racing.world import NEIGHBOUR, Part, World, planted, recalled

Ending = tuple[str, ...]


@dataclass(frozen=True)
class Meeting:
    """Parts that meet, the endings beyond those of an order, and where their world begins."""

    parts: tuple[Part, ...]
    also: frozenset[Ending] = frozenset()
    begins: Callable[["psycopg.Connection[Any]"], World] | None = None

    def ground(self, owner: "psycopg.Connection[Any]") -> World:
        """A new world: the one this meeting names, else the fullest that any of its parts needs."""
        if self.begins is not None:
            return self.begins(owner)
        return recalled(owner) if any(part.ground is recalled for part in self.parts) else planted(owner)

    def __str__(self) -> str:
        return " x ".join(part.name for part in self.parts)


@dataclass(frozen=True)
class _Serial:
    """What whole operations come to: by the order of all, and by the order of any of them."""

    endings: frozenset[tuple[Ending, Hashable]]
    rows: frozenset[Hashable]


class Judge:
    """Holds every schedule of a meeting against its orders and the invariants."""

    def __init__(self, meeting: Meeting, crew: Crew, owner: "psycopg.Connection[Any]") -> None:
        self.meeting, self.crew, self.owner = meeting, crew, owner
        self.replayed: set[tuple[Ending, Hashable]] = set()
        self.neighbour = invariants.fingerprint(owner, NEIGHBOUR)
        self.world = meeting.ground(owner)
        self.serial = self._serial()

    def stage(self) -> list[Callable[[], Any]]:
        """A new world, and the acts of this meeting in it."""
        self.world = self.meeting.ground(self.owner)
        return [partial(part.play, self.world) for part in self.meeting.parts]

    def judge(self, run: Run) -> Hashable:
        """Raise AssertionError unless this schedule kept every promise; return how it ended."""
        for end in run.ends:
            assert isinstance(end, str), f"an error that is no refusal: {end!r}"
        ending: Ending = tuple(run.ends)
        ledger = self.world.ledger()
        invariants.check(ledger)
        invariants.require_idle(self.owner, [actor.pid for actor in self.crew.actors])
        assert invariants.fingerprint(self.owner, NEIGHBOUR) == self.neighbour, "I18: another namespace was touched"
        rows = ledger.shape(), self.world.authority()
        if ending in self.meeting.also:
            assert rows in self.serial.rows, f"{ending} left rows that no whole operations leave"
        else:
            assert (ending, rows) in self.serial.endings, f"{ending} with these rows is no order of whole operations"
        if (ending, rows) not in self.replayed:
            self.replayed.add((ending, rows))
            self._replays(ending, rows)
        return ending, rows

    def _replays(self, ending: Ending, rows: Hashable) -> None:
        """Who asks again after a success gets it again, and nothing is written (I16)."""
        for part, word in zip(self.meeting.parts, ending, strict=True):
            if part.again and word.split()[0] in {"created", "existing", "replayed", "published", "joined"}:
                told = part.play(self.world)
                assert told.startswith(part.again) or told in ANSWERS_OF_A_CHANGED_BINDING, f"I16: asked again: {told}"
        assert self._rows() == rows, "I16: a replay wrote something"

    def _rows(self) -> Hashable:
        return self.world.ledger().shape(), self.world.authority()

    def _serial(self) -> _Serial:
        endings, rows = set(), set()
        count = len(self.meeting.parts)
        for size in range(count + 1):
            for order in permutations(range(count), size):
                self.world = self.meeting.ground(self.owner)
                words = {place: self.meeting.parts[place].play(self.world) for place in order}
                left = self._rows()
                rows.add(left)
                if size == count:
                    endings.add((tuple(words[place] for place in range(count)), left))
        return _Serial(frozenset(endings), frozenset(rows))


ANSWERS_OF_A_CHANGED_BINDING: Final = frozenset(
    {"binding_mismatch", "authority_refused", "request_conflict", "capability_not_ready"}
)
"""What a repeated request may meet once its namespace is under another binding or its permission is gone."""


def meet(
    meeting: Meeting, crew: Crew, owner: "psycopg.Connection[Any]", *, go_on: bool = False, name: str | None = None
) -> Explored:
    """Walk every schedule of a meeting; the caller says what a good one is by `Explored.require_good`."""
    judge = Judge(meeting, crew, owner)
    return explore(crew, name or str(meeting), judge.stage, judge.judge, go_on=go_on)


def alone(part: Part, crew: Crew, world: World) -> Sequence[str]:
    """The gates an operation passes when nobody is in its way."""
    crew.perform([partial(part.play, world)], lambda ready: ready[0])
    return crew.actors[0].walk.trace
