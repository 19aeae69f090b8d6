"""Threads that stop at every gate, and the conductor who lets exactly one of them go on.

Nothing is concluded from time. After each turn the actor is in one of three conditions that can be observed: parked at
its next gate, done, or waiting in the server for another actor (`pg_blocking_pids`, which knows row locks and advisory
locks alike). The clock only ends a test that hangs.
"""

import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Final

import psycopg
from django.db import connection, connections

from archive import gates

_GLANCE: Final = 0.002
"""How long to wait for a sign from an actor before asking the server about it."""


class Hung(AssertionError):
    """An actor neither reached a gate, nor ended, nor waits for another actor."""


class _Abandoned(BaseException):
    """Raised inside an actor that is given up, so that its thread ends."""


@dataclass
class Ended:
    """How an operation ended: its value, or what it raised."""

    value: Any = None
    error: BaseException | None = None


@dataclass
class Walk:
    """One actor's way through one schedule: where it stopped and how it ended."""

    trace: list[str] = field(default_factory=list)
    ended: Ended = field(default_factory=Ended)
    waited: bool = False
    ended_by: int = 0
    """After how many turns of everybody it was seen to be done."""


class Actor:
    """One thread with one database connection of its own, which performs operations from gate to gate."""

    def __init__(self, name: str, sign: threading.Condition) -> None:
        self.name = name
        self.state = "idle"
        self.pid = 0
        self.walk = Walk()
        self.blocked = False
        self._sign = sign
        self._permit = threading.Semaphore(0)
        self._abandoned = False
        self._waiting: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._live, name=f"actor {name}", daemon=True)
        self._thread.start()

    # --- inside the thread ---------------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            while (operation := self._waiting.get()) is not None:
                self._perform(operation)
        finally:
            # A connection left open would keep the test database from being dropped.
            connections.close_all()
            self._become("gone")

    def _perform(self, operation: Callable[[], Any]) -> None:
        gates.occupy(self._park)
        try:
            # Asked every time: an operation may have closed its connection and opened another.
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                (self.pid,) = cursor.fetchone()
            self._park("start")
            self.walk.ended.value = operation()
        except BaseException as error:
            self.walk.ended.error = error
        finally:
            gates.occupy(None)
            self._become("done")

    def _park(self, gate: str) -> None:
        self.walk.trace.append(gate)
        self._become("parked")
        self._permit.acquire()
        if self._abandoned:
            raise _Abandoned
        self._become("running")

    def _become(self, state: str) -> None:
        with self._sign:
            self.state = state
            self._sign.notify_all()

    # --- from outside --------------------------------------------------------------------------------------------

    def begin(self, operation: Callable[[], Any]) -> None:
        """Take on an operation; the actor parks at `start` before its first word."""
        self.walk, self.state = Walk(), "starting"
        self._waiting.put(operation)

    def go(self) -> None:
        """Let a parked actor walk to its next gate."""
        self.state = "running"
        self._permit.release()

    @property
    def where(self) -> str:
        """The gate it stopped at last."""
        return self.walk.trace[-1] if self.walk.trace else "nowhere"

    def stack(self) -> str:
        """What the thread is doing right now."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame)) if frame else "the thread has ended\n"

    def leave(self) -> None:
        """End the thread once it has nothing to do; one that still stands at a gate is given up there."""
        self._abandoned = True
        self._permit.release()
        self._waiting.put(None)

    def left(self, within: float) -> bool:
        """Whether the thread has ended, waiting a little for it."""
        self._thread.join(within)
        return not self._thread.is_alive()


class Crew:
    """The actors of one test and the connection that watches them."""

    def __init__(self, size: int, observer: "psycopg.Connection[Any]", *, patience: float = 60) -> None:
        self.observer = observer
        self.patience = patience
        self._sign = threading.Condition()
        self.actors = [Actor(chr(ord("a") + place), self._sign) for place in range(size)]

    def perform(self, operations: Sequence[Callable[[], Any]], choose: Callable[[Sequence[Actor]], Actor]) -> bool:
        """Walk operations to their ends, one turn at a time; returns whether all of them ever waited in a circle."""
        playing = self.actors[: len(operations)]
        for actor, operation in zip(playing, operations, strict=True):
            actor.begin(operation)
        for actor in playing:
            self._settle(actor, playing)
        circle, turns = False, 0
        while any(actor.state != "done" for actor in playing):
            ready = [actor for actor in playing if actor.state == "parked"]
            if not ready:
                circle = True
                self._until_the_server_decides(playing)
                continue
            chosen = choose(ready)
            chosen.go()
            self._settle(chosen, playing)
            # Whoever this turn has freed walks to its next gate before anybody else is chosen.
            while any(self._freed(other, playing) for other in playing):
                pass
            turns += 1
            for actor in playing:
                if actor.state == "done" and not actor.walk.ended_by:
                    actor.walk.ended_by = turns
        return circle

    def _freed(self, actor: Actor, playing: Sequence[Actor]) -> bool:
        """Settle an actor that was waiting; whether it moved, by which it may have freed others in turn."""
        if actor.state != "running":
            return False
        self._settle(actor, playing)
        return actor.state != "running"

    def wait_for(self, actor: Actor) -> None:
        """Wait until an actor whose wait somebody has ended stands at a gate or is done."""
        if not self._signed(actor, self.patience):
            raise Hung(self._told(actor, self.actors))

    def _settle(self, actor: Actor, playing: Sequence[Actor]) -> None:
        deadline = time.monotonic() + self.patience
        # Who waited before this turn most likely still does: the server is asked at once.
        glance, actor.blocked = (0.0 if actor.blocked else _GLANCE), False
        while not self._signed(actor, glance):
            if self._waits(actor, playing):
                actor.blocked = actor.walk.waited = True
                return
            glance = _GLANCE
            if time.monotonic() > deadline:
                raise Hung(self._told(actor, playing))

    def _signed(self, actor: Actor, glance: float) -> bool:
        with self._sign:
            return self._sign.wait_for(lambda: actor.state in {"parked", "done"}, glance)

    def _waits(self, actor: Actor, playing: Sequence[Actor]) -> bool:
        others = [other.pid for other in playing if other is not actor]
        row = self.observer.execute(
            "SELECT pg_blocking_pids(%s) && %s::integer[]", [actor.pid, others], prepare=True
        ).fetchone()
        return bool(row and row[0])

    def _until_the_server_decides(self, playing: Sequence[Actor]) -> None:
        """Everybody waits for somebody: the deadlock detector has to end one of them."""
        with self._sign:
            moved = self._sign.wait_for(
                lambda: any(actor.state in {"parked", "done"} for actor in playing), self.patience
            )
        if not moved:
            raise Hung(self._told(playing[0], playing))
        for actor in playing:
            if actor.state == "running":
                self._settle(actor, playing)

    def _told(self, hung: Actor, playing: Sequence[Actor]) -> str:
        lines = [f"actor {hung.name} is neither at a gate, nor done, nor waiting for another actor"]
        lines += [f"{one.name}: {one.state}, after {' > '.join(one.walk.trace) or 'nothing'}" for one in playing]
        lines += ["", hung.stack()]
        return "\n".join(lines)

    def close(self) -> None:
        """Send everybody home; what still runs loses its connection first."""
        for actor in self.actors:
            if actor.state not in {"done", "idle", "parked"}:
                self.observer.execute("SELECT pg_terminate_backend(%s)", [actor.pid])
            actor.leave()
        stuck = [actor.name for actor in self.actors if not actor.left(within=10)]
        assert not stuck, f"actors that never ended: {', '.join(stuck)}"
