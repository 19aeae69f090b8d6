"""All schedules of a few operations, depth first, each named by one line that runs it again."""

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.racing.actors import Actor, Crew, Walk

VARIABLE: Final = "RACE_SCHEDULE"


@dataclass(frozen=True)
class Run:
    """One schedule that was walked: who had each turn, and how everybody fared."""

    turns: str
    walks: tuple[Walk, ...]
    circle: bool

    @property
    def waited(self) -> bool:
        """Whether anybody waited in the server for somebody else."""
        return any(walk.waited for walk in self.walks)

    @property
    def ends(self) -> tuple[Any, ...]:
        """What each operation returned, or the exception it raised."""
        return tuple(walk.ended.error or walk.ended.value for walk in self.walks)


@dataclass
class Explored:
    """What all schedules together came to."""

    name: str
    schedules: int = 0
    waited: int = 0
    finals: set[Hashable] = field(default_factory=set)
    bad: list[tuple[str, str]] = field(default_factory=list)
    blocked: set[int] = field(default_factory=set)
    """Who ever waited in the server, by place."""

    def __str__(self) -> str:
        return (
            f"{self.name:<44} {self.schedules:>5} schedules {self.waited:>5} with a wait"
            f" {len(self.finals):>3} endings {len(self.bad):>4} bad"
        )

    def require_good(self) -> None:
        """Fail with the first bad schedule, and with how to see it again."""
        if self.bad:
            turns, why = self.bad[0]
            raise AssertionError(f"{self.name}: {why}\nAgain: {VARIABLE}={turns} pytest {_test()!r}")

    def require_meeting(self) -> None:
        """Fail where the operations never met: then their race was not tested."""
        if os.environ.get(VARIABLE) is None and not self.waited and len(self.finals) < 2:
            raise AssertionError(f"{self.name}: nobody ever waited and every ending is the same")

    def require_quiet(self) -> None:
        """Fail where operations that have nothing to settle between them did wait, or ended in more ways than one."""
        if self.waited or len(self.finals) > 1:
            raise AssertionError(f"{self.name}: {self.waited} schedules with a wait, {len(self.finals)} endings")


def explore(
    crew: Crew,
    name: str,
    stage: Callable[[], Sequence[Callable[[], Any]]],
    judge: Callable[[Run], Hashable],
    *,
    at_most: int = 5_000,
    go_on: bool = False,
    preemptions: int | None = None,
) -> Explored:
    """Walk every schedule of what `stage` prepares. `judge` raises AssertionError, or returns how it all ended.

    Stops at the first bad schedule unless `go_on`. With RACE_SCHEDULE set, that one schedule alone is walked. With
    `preemptions`, only those in which an actor that could have gone on had to stand back so many times at most.
    """
    explored = Explored(name)
    only = os.environ.get(VARIABLE)
    prefix: list[int] | None = []
    while prefix is not None:
        turn = _Turns(prefix, only, preemptions)
        circle = crew.perform(operations := stage(), turn)
        run = Run(turn.taken, tuple(actor.walk for actor in crew.actors[: len(operations)]), circle)
        explored.schedules += 1
        explored.waited += run.waited
        explored.blocked |= {place for place, walk in enumerate(run.walks) if walk.waited}
        try:
            assert not circle, "everybody waited for somebody: a deadlock"
            explored.finals.add(judge(run))
        except AssertionError as wrong:
            explored.bad.append((run.turns, f"{wrong}\n{_walked(run)}"))
            if not go_on:
                break
        assert explored.schedules < at_most, f"{name}: more than {at_most} schedules"
        prefix = None if only is not None else turn.next()
    return explored


class _Turns:
    """Follows a prefix of choices, then always the first that is ready, and remembers what else there was."""

    def __init__(self, prefix: Sequence[int], only: str | None, preemptions: int | None = None) -> None:
        self.taken = ""
        self._prefix = prefix
        self._only = only
        self._left = preemptions
        self._options: list[tuple[int, int]] = []

    def __call__(self, ready: Sequence[Actor]) -> Actor:
        going_on = [actor for actor in ready if self.taken.endswith(actor.name)]
        if self._left == 0 and going_on:
            ready = going_on
        chosen = self._chosen(ready)
        if self._left is not None and going_on and chosen not in going_on:
            self._left -= 1
        return chosen

    def _chosen(self, ready: Sequence[Actor]) -> Actor:
        place = len(self._options)
        if self._only is not None:
            names = [actor.name for actor in ready]
            wanted = self._only[place : place + 1]
            assert wanted in names, f"turn {place + 1} of {self._only} is none of {names}"
            choice = names.index(wanted)
        else:
            choice = self._prefix[place] if place < len(self._prefix) else 0
        self._options.append((choice, len(ready)))
        self.taken += ready[choice].name
        return ready[choice]

    def next(self) -> list[int] | None:
        """The next schedule: the last choice that has an untried neighbour takes it; None after the last."""
        for place in range(len(self._options) - 1, -1, -1):
            choice, count = self._options[place]
            if choice + 1 < count:
                return [*(earlier for earlier, _ in self._options[:place]), choice + 1]
        return None


def _walked(run: Run) -> str:
    """Spell a schedule out: every turn with the gate it started from, then how each actor ended."""
    places = dict.fromkeys("abcdefgh", 0)
    steps = []
    for name in run.turns:
        walk = run.walks[ord(name) - ord("a")]
        steps.append(f"{name}@{walk.trace[places[name]]}")
        places[name] += 1
    ends = [f"{chr(ord('a') + place)} ended with {end!r}" for place, end in enumerate(run.ends)]
    return "\n".join([f"schedule {run.turns}: {' '.join(steps)}", *ends])


def _test() -> str:
    return os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" ", 1)[0]
