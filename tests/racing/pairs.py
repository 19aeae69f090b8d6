"""What the explorer asks of operations that meet: every ending is that of one order, or one that was named.

The oracle knows no operation. It runs them in every order and remembers the words they ended with and all rows they
left; every other schedule must come to the same as one of those, in which whoever had ended before another began comes
first. Some meetings have endings of their own, a refusal between two checks say; those are named, and still must leave
the rows that the acts which took effect alone would leave.

Beside the rows, after every schedule: no answer outside the operation's own list, nothing timed out (I11), a permission
that ended refuses from the next check point on (I14), a repetition writes nothing (I16), what only reads left every row
as it was (I19). All of a receipt's texts or none (I8) is looked at by whoever resolves it, in tests/racing/world.py.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from typing import Any, Final

import psycopg

from archive import refusals
from archive.bindings import source
from archive.operations import host
from tests.racing import invariants
from tests.racing.actors import Crew
from tests.racing.exploration import Explored, Run, explore
from tests.racing.world import NEIGHBOUR, Part, World, planted, recalled

Ending = tuple[str, ...]
Ground = Callable[["psycopg.Connection[Any]"], World]


@dataclass(frozen=True)
class Meeting:
    """Parts that meet, the endings beyond those of an order, and where their world begins."""

    parts: tuple[Part, ...]
    also: frozenset[Ending] = frozenset()
    begins: Ground | None = None
    asked: tuple[tuple[str, str] | None, ...] = ()
    """The subject and the permission that each part is asked about, where another part may take it back."""
    answers: tuple[frozenset[str], ...] = ()
    """All that each part may ever say."""
    name: str = ""
    doors: bool = False
    """Whether they stop at the door as well, under the binding they came with."""

    def ground(self, owner: "psycopg.Connection[Any]") -> World:
        """A new world: the one this meeting names, else the fullest that any of its parts needs."""
        found = self._ground(owner)
        found.doors = self.doors
        return found

    def _ground(self, owner: "psycopg.Connection[Any]") -> World:
        if self.begins is not None:
            return self.begins(owner)
        grounds = {part.ground for part in self.parts} - {planted, recalled}
        if grounds:
            (wanted,) = grounds
            return wanted(owner)
        return recalled(owner) if any(part.ground is recalled for part in self.parts) else planted(owner)

    def __str__(self) -> str:
        return self.name or " x ".join(part.name for part in self.parts)


@dataclass(frozen=True)
class _Serial:
    """What whole operations come to: by the order of all, and by which of them there were."""

    endings: dict[tuple[int, ...], tuple[Ending, Hashable]]
    rows: dict[frozenset[int], set[Hashable]]


@dataclass
class Judge:
    """Holds every schedule of a meeting against its orders and the invariants."""

    meeting: Meeting
    crew: Crew
    owner: "psycopg.Connection[Any]"
    replayed: set[tuple[Ending, Hashable]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.neighbour = invariants.fingerprint(self.owner, NEIGHBOUR)
        self.world = self.meeting.ground(self.owner)
        self.reads = all(part.reads for part in self.meeting.parts)
        self.before = ""
        self.serial = self._serial()

    def stage(self) -> list[Callable[[], Any]]:
        """A new world, and the acts of this meeting in it."""
        self.world = self.meeting.ground(self.owner)
        if self.reads:
            self.before = invariants.fingerprint(self.owner, self.world.key)
        return [partial(part.play, self.world) for part in self.meeting.parts]

    def judge(self, run: Run) -> Hashable:
        """Raise AssertionError unless this schedule kept every promise; return how it ended."""
        for end in run.ends:
            assert isinstance(end, str), f"an error that is no refusal: {end!r}"
            assert end != "archive_timeout", "I11: timed out, with every limit far away"
        ending: Ending = tuple(run.ends)
        for said, known in zip(ending, self.meeting.answers, strict=bool(self.meeting.answers)):
            assert said in known, f"{said!r} is no answer of this operation"
        ledger = self.world.ledger()
        invariants.check(ledger)
        invariants.require_idle(self.owner, [actor.pid for actor in self.crew.actors])
        assert invariants.fingerprint(self.owner, NEIGHBOUR) == self.neighbour, "I18: another namespace was touched"
        rows = ledger.shape(), self.world.authority()
        self._withdrawn(run)
        if ending in self.meeting.also and _met(run):
            assert rows in self.serial.rows[_effective(run)], f"{ending} left rows that no whole operations leave"
        else:
            orders = [order for order in self.serial.endings if all(_before(order, *pair) for pair in _precedence(run))]
            assert (ending, rows) in [self.serial.endings[order] for order in orders], (
                f"{ending} with these rows is no order of whole operations"
            )
        self._reads(rows)
        if (ending, rows) not in self.replayed:
            self.replayed.add((ending, rows))
            self._replays(ending, rows)
            self._comes_back(run)
        return ending, rows

    def _withdrawn(self, run: Run) -> None:
        """Refused at the first check point after the withdrawal was committed, and allowed at each before it (I14)."""
        for by, withdrawing in enumerate(self.meeting.parts):
            for place, asked in enumerate(self.meeting.asked):
                if withdrawing.ends is None or withdrawing.ends != asked or place == by:
                    continue
                ended_at = run.turns.rindex(_name(by))
                trace = run.walks[place].trace
                late = [stop for stop, turn in _points(run, place) if turn > ended_at]
                if late:
                    assert run.ends[place] == "authority_refused", f"I14: allowed at {trace[late[0]]} and after"
                    assert len(trace) == late[0] + 1, f"I14: refused at {trace[-1]} and not at {trace[late[0]]}"
                elif len(self.meeting.parts) == 2:
                    assert run.ends[place] != "authority_refused", "I14: refused before the permission ended"

    def _reads(self, rows: Hashable) -> None:
        """Whatever the others did, who only reads added nothing to it (I19)."""
        if self.reads:
            assert invariants.fingerprint(self.owner, self.world.key) == self.before, "I19: a read wrote something"
        writers = frozenset(place for place, part in enumerate(self.meeting.parts) if not part.reads)
        if len(writers) < len(self.meeting.parts):
            left = [self.serial.rows[some] for some in self.serial.rows if some <= writers]
            assert any(rows in some for some in left), "I19: rows that the others alone do not leave"

    def _replays(self, ending: Ending, rows: Hashable) -> None:
        """Who asks again after a success gets it again, and nothing is written (I16)."""
        for part, word in zip(self.meeting.parts, ending, strict=True):
            if part.again and word.split()[0] in _SUCCESSES:
                told = part.play(self.world)
                assert told.startswith(part.again) or told in ANSWERS_OF_A_CHANGED_BINDING, f"I16: asked again: {told}"
        assert self._rows() == rows, "I16: a replay wrote something"

    def _comes_back(self, run: Run) -> None:
        """What was committed before its answer was withheld stays, and is told once the permission is back (I14)."""
        for withdrawing in self.meeting.parts:
            for place, asked in enumerate(self.meeting.asked):
                if withdrawing.ends is None or withdrawing.ends != asked or run.ends[place] != "authority_refused":
                    continue
                part, before = self.meeting.parts[place], self.world.ledger().shape()
                if not (part.again and run.walks[place].trace[-1].endswith(".A2")):
                    continue
                binding = source().find(self.world.key)
                assert binding is not None
                host.grant(withdrawing.ends[0], binding, [withdrawing.ends[1]], by="host:tests")
                told = part.play(self.world)
                assert told.startswith(part.again), f"I14: committed, withheld, and then told as {told}"
                assert self.world.ledger().shape() == before, "I14: committed, withheld, and then written once more"

    def _rows(self) -> Hashable:
        return self.world.ledger().shape(), self.world.authority()

    def _serial(self) -> _Serial:
        endings, rows = {}, defaultdict(set)
        count = len(self.meeting.parts)
        for size in range(count + 1):
            for order in permutations(range(count), size):
                self.world = self.meeting.ground(self.owner)
                words = {place: self.meeting.parts[place].play(self.world) for place in order}
                left = self._rows()
                rows[frozenset(order)].add(left)
                if size == count:
                    endings[order] = tuple(words[place] for place in range(count)), left
        return _Serial(endings, dict(rows))


_SUCCESSES: Final = frozenset({"created", "existing", "replayed", "published", "joined"})
ANSWERS_OF_A_CHANGED_BINDING: Final = frozenset(
    {"binding_mismatch", "authority_refused", "request_conflict", "capability_not_ready"}
)
"""What a repeated request may meet once its namespace is under another binding or its permission is gone."""

_REFUSED: Final = frozenset(
    value.code for value in vars(refusals).values() if isinstance(value, type) and hasattr(value, "code")
)


def _name(place: int) -> str:
    return chr(ord("a") + place)


def _points(run: Run, place: int) -> Iterator[tuple[int, int]]:
    """The check points an act came to: which of its stops, and which turn of all let it go on from there."""
    turns = [turn for turn, name in enumerate(run.turns) if name == _name(place)]
    trace = run.walks[place].trace
    # A0 is asked on leaving the last stop outside the archive: the door, where they stop at it.
    outside = trace.index("door") if "door" in trace else 0
    for stop, (gate, turn) in enumerate(zip(trace, turns, strict=True)):
        if stop == outside or gate.endswith((".A1", ".A2")):
            yield stop, turn


def _precedence(run: Run) -> list[tuple[int, int]]:
    """Which of two had ended before the other began: an order of whole operations has to keep that."""
    places = range(len(run.walks))
    return [
        (first, second)
        for first in places
        for second in places
        if first != second and run.walks[first].ended_by <= run.turns.index(_name(second))
    ]


def _met(run: Run) -> bool:
    """Whether any two of them were under way at once."""
    count = len(run.walks)
    return len(_precedence(run)) < count * (count - 1) // 2


def _before(order: Sequence[int], first: int, second: int) -> bool:
    return order.index(first) < order.index(second)


def _effective(run: Run) -> frozenset[int]:
    """Whose act took effect: who was not refused, or was so after the commit."""
    return frozenset(
        place for place, end in enumerate(run.ends) if end not in _REFUSED or run.walks[place].trace[-1].endswith(".A2")
    )


def meet(
    meeting: Meeting,
    crew: Crew,
    owner: "psycopg.Connection[Any]",
    *,
    go_on: bool = False,
    name: str | None = None,
    preemptions: int | None = None,
    at_most: int = 5_000,
) -> Explored:
    """Walk every schedule of a meeting; the caller says what a good one is by `Explored.require_good`."""
    judge = Judge(meeting, crew, owner)
    return walk(judge, go_on=go_on, name=name, preemptions=preemptions, at_most=at_most)


def walk(
    judge: Judge,
    *,
    go_on: bool = False,
    name: str | None = None,
    preemptions: int | None = None,
    at_most: int = 5_000,
) -> Explored:
    """The same with a judge who has already seen what whole operations come to."""
    return explore(
        judge.crew,
        name or str(judge.meeting),
        judge.stage,
        judge.judge,
        go_on=go_on,
        preemptions=preemptions,
        at_most=at_most,
    )


def alone(part: Part, crew: Crew, world: World) -> Sequence[str]:
    """The gates an operation passes when nobody is in its way."""
    crew.perform([partial(part.play, world)], lambda ready: ready[0])
    return crew.actors[0].walk.trace
