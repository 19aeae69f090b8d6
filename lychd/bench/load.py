"""Many clients at once on one namespace: what has to come out exactly, and how long it takes (the load rows)."""

import functools
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection, connections

from archive.lifecycle import State
from archive.limits import QUERY_MAX_CHARS
from archive.operations.intake import intake
from archive.operations.recall import recall
from archive.operations.transition import archive, promote, revoke
from archive.refusals import Refusal, Unavailable
from archive.requests import Intake, LexicalRecall, Transition
from archive.transactions import held
from lychd.bench.figures import Figure, clocked
from lychd.bench.ground import NAMESPACE, Ground, fresh, settle
from lychd.evaluation.metrics import percentile

_UNEXPECTED: Final = "unexpected"
_BEFORE: Final = "of notes promoted before the recall began"
_TOO_LONG: Final = "503, typed: they waited longer for the namespace than is allowed; 0 on a machine with room"


@dataclass(frozen=True)
class Scale:
    """How hard a load leans on the archive; the defaults are the load rows themselves, except for the ten minutes."""

    writers: int = 32
    intakes: int = 3_200
    same: int = 64
    rounds: int = 20
    decisions: int = 200
    waiting: int = 600
    blocked_seconds: float = 1.5
    readers: int = 8
    mixed_seconds: float = 30.0


@dataclass
class Outcomes:
    """What the acts of a load came to, by name, with their times."""

    counted: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def note(self, name: str, took: float) -> None:
        with self._lock:
            self.counted[name] += 1
            self.times.append(took)


def together(acts: Sequence[Callable[[], str]], clients: int) -> Outcomes:
    """Let this many clients, each with a connection of its own, begin at once and share out the acts."""
    found = Outcomes()
    clients = min(clients, len(acts))
    line = threading.Barrier(clients)

    def work(own: Sequence[Callable[[], str]]) -> None:
        try:
            line.wait()
            for act in own:
                took, name = clocked(_named, act)
                found.note(name, took)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(clients) as pool:
        for future in [pool.submit(work, acts[place::clients]) for place in range(clients)]:
            future.result()
    return found


def _named(act: Callable[[], str]) -> str:
    try:
        return act()
    except Unavailable:
        return "unavailable"
    except Refusal as refusal:
        return refusal.code
    except Exception:
        return _UNEXPECTED


def measure(ground: Ground, scale: Scale) -> list[Figure]:
    """Every load row that concerns intake, transitions and lexical recall."""
    figures: list[Figure] = []
    for name, row in (
        ("distinct intakes", distinct_intakes),
        ("one intake, many senders", same_intake),
        ("one identity, many texts", one_identity),
        ("one version, many decisions", stale_decisions),
        ("many writers waiting", waiting_writers),
        ("readers beside writers", readers_beside_writers),
    ):
        ground.progress(f"load: {name}", 0, 1)
        figures += row(ground, scale)
        ground.progress(f"load: {name}", 1, 1)
    return figures


def distinct_intakes(ground: Ground, scale: Scale) -> list[Figure]:
    """Writers with notes of their own: nothing fails, nobody waits for more than a second."""
    wanted = ground.wanted(scale.intakes)
    took, found = clocked(together, [_taking_in(ground, one) for one in wanted], scale.writers)
    return [
        Figure("load.distinct.created", found.counted["created"], f"of {scale.intakes}"),
        Figure("load.distinct.unavailable", found.counted["unavailable"], "refusals", note=_TOO_LONG),
        Figure("load.distinct.errors", _others(found, "created", "unavailable"), "errors"),
        Figure("load.distinct.rate", 1000 * scale.intakes / took, "intakes/s", 100, "at least; by the operations"),
        Figure("load.distinct.p99", percentile(found.times, 0.99), "ms", 1_000, "at most"),
    ]


def same_intake(ground: Ground, scale: Scale) -> list[Figure]:
    """Everybody sends the same intake at once: one note, and everybody else is told so."""
    sums: Counter[str] = Counter()
    rows = 0
    for _ in range(scale.rounds):
        (wanted,) = ground.wanted(1)
        found = together([_taking_in(ground, wanted)] * scale.same, scale.same)
        sums += found.counted
        rows += _count("archive_intake_request", "request_id", wanted.request_id)
    return [
        Figure("load.same.created", sums["created"], f"of {scale.rounds} rounds"),
        Figure("load.same.replayed", sums["replayed"], f"of {scale.rounds * (scale.same - 1)}"),
        Figure("load.same.unavailable", sums["unavailable"], "refusals", note=_TOO_LONG),
        Figure("load.same.errors", _others(Outcomes(sums), "created", "replayed", "unavailable"), "errors"),
        Figure("load.same.rows", rows, f"of {scale.rounds}"),
    ]


def one_identity(ground: Ground, scale: Scale) -> list[Figure]:
    """One request identity, as many texts as senders: the first wins, all others conflict."""
    request = fresh("one")
    wanted = [Intake(request, one.source_key, "1", one.text) for one in ground.wanted(scale.same)]
    found = together([_taking_in(ground, one) for one in wanted], scale.same)
    return [
        Figure("load.identity.created", found.counted["created"], "of 1"),
        Figure("load.identity.conflicts", found.counted["request_conflict"], f"of {scale.same - 1}"),
        Figure("load.identity.unavailable", found.counted["unavailable"], "refusals", note=_TOO_LONG),
        Figure("load.identity.errors", _others(found, "created", "request_conflict", "unavailable"), "errors"),
    ]


def stale_decisions(ground: Ground, scale: Scale) -> list[Figure]:
    """Decisions on one version of one note: exactly one is taken."""
    (note,) = ground.candidates(1)
    kinds = (promote, archive, revoke)
    states = (State.PROMOTED, State.ARCHIVED, State.REVOKED)

    def deciding(place: int) -> Callable[[], str]:
        def act() -> str:
            kinds[place % 3](ground.caller, Transition(note, states[place % 3], 1))
            return "accepted"

        return act

    found = together([deciding(place) for place in range(scale.decisions)], scale.writers)
    # An archiving that comes first is no edge of a candidate; it changes nothing either.
    stale = found.counted["lifecycle_version_conflict"] + found.counted["illegal_transition"]
    others = _others(found, "accepted", "lifecycle_version_conflict", "illegal_transition", "unavailable")
    return [
        Figure("load.decisions.accepted", found.counted["accepted"], "of 1"),
        Figure("load.decisions.stale", stale, f"of {scale.decisions - 1}"),
        Figure("load.decisions.unavailable", found.counted["unavailable"], "refusals", note=_TOO_LONG),
        Figure("load.decisions.errors", others, "errors"),
    ]


def waiting_writers(ground: Ground, scale: Scale) -> list[Figure]:
    """More writers than can be served while the namespace is held: a typed no or a whole note, nothing between."""
    before = _sums()
    wanted = ground.wanted(scale.waiting)
    freed_at = 0.0

    def block(begun: threading.Event) -> None:
        nonlocal freed_at
        try:
            with held(NAMESPACE):
                begun.set()
                # Within the limits of an idle transaction, which would free the namespace sooner.
                time.sleep(min(scale.blocked_seconds, 0.8 * settings.LYCHD_TIMEOUTS["idle"] / 1000))
            freed_at = time.monotonic()
        finally:
            connections.close_all()

    begun = threading.Event()
    blocker = threading.Thread(target=block, args=[begun])
    blocker.start()
    begun.wait()
    found = together([_taking_in(ground, one) for one in wanted], scale.waiting)
    ended_at = time.monotonic()
    blocker.join()
    drained = max(0.0, ended_at - freed_at)
    notes, requests, events = (after - ago for after, ago in zip(_sums(), before, strict=True))
    return [
        Figure("load.waiting.created", found.counted["created"], f"of {scale.waiting}"),
        Figure("load.waiting.unavailable", found.counted["unavailable"], f"of {scale.waiting}", note="503, typed"),
        Figure("load.waiting.errors", _others(found, "created", "unavailable"), "errors"),
        Figure(
            "load.waiting.partial",
            sum(abs(rows - found.counted["created"]) for rows in (notes, requests, events)),
            "rows",
            note="notes, requests and events beyond those that were answered",
        ),
        Figure("load.waiting.drained", 1000 * drained, "ms", 10_000, "at most, after the hold ends"),
    ]


def readers_beside_writers(ground: Ground, scale: Scale) -> list[Figure]:
    """Readers alone, then beside writers: they slow down by half at most and miss nothing that was there before."""
    known = _Known(ground)
    for _ in range(10):
        known.add()
    settle()
    alone, _ = _reading(ground, scale, known, writers=0)
    beside, written = _reading(ground, scale, known, writers=scale.readers)
    unavailable = beside.counted["unavailable"] + written.counted["unavailable"]
    return [
        Figure(
            "load.readers.p99",
            percentile(beside.times, 0.99),
            "ms",
            percentile(alone.times, 0.99),
            "beside writers; baseline: alone; at most 1.5 times",
        ),
        Figure("load.readers.misses", alone.counted["missed"] + beside.counted["missed"], "misses", note=_BEFORE),
        Figure("load.readers.found", beside.counted["found"], "notes", note=_BEFORE),
        Figure("load.readers.unavailable", unavailable, "refusals", note=_TOO_LONG),
        Figure("load.readers.errors", _others(beside, "answered", "found", "missed", "unavailable"), "errors"),
        Figure("load.readers.recalls", len(beside.times), "recalls"),
        Figure("load.readers.written", written.counted["created"] + written.counted["promoted"], "notes"),
        Figure("load.readers.promoted", written.counted["promoted"], "notes"),
        Figure("load.readers.write_errors", _others(written, "created", "promoted", "unavailable"), "errors"),
    ]


@dataclass
class _Known:
    """Promoted notes, each with a word that no other note has: whoever asks for that word has to be given that note."""

    ground: Ground
    notes: list[tuple[str, UUID]] = field(default_factory=list)

    def add(self) -> None:
        """Take one more in and promote it; it counts as known once that has been answered."""
        word = fresh("mark").replace("-", "")
        (wanted,) = self.ground.wanted(1)
        marked = replace(wanted, text=f"{word} {wanted.text}")
        note = intake(self.ground.caller, marked).note.id
        promote(self.ground.caller, Transition(note, State.PROMOTED, 1))
        self.notes.append((word, note))


def _reading(ground: Ground, scale: Scale, known: _Known, *, writers: int) -> tuple[Outcomes, Outcomes]:
    """Recall until the time is over, in turns a question of the set and the word of a note that is known by then."""
    questions = itertools.cycle(ground.asked(200))
    ends = time.monotonic() + scale.mixed_seconds

    def ask(place: int) -> str:
        if place % 2:
            recall(ground.caller, LexicalRecall(fresh("q"), next(questions)[:QUERY_MAX_CHARS]))
            return "answered"
        # The newest in turns with those before it.
        word, note = known.notes[-1 - place // 2 % 10]
        receipt = recall(ground.caller, LexicalRecall(fresh("q"), word)).receipt
        return "found" if [one["note_id"] for one in receipt["selected"]] == [str(note)] else "missed"

    def write(place: int) -> str:
        if place % 5:
            return _taking_in(ground, ground.wanted(1)[0])()
        known.add()
        return "promoted"

    read, written = Outcomes(), Outcomes()

    def until_the_end(act: Callable[[int], str], found: Outcomes) -> None:
        try:
            for place in itertools.count():
                if time.monotonic() >= ends:
                    return
                took, name = clocked(_named, functools.partial(act, place))
                found.note(name, took)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(scale.readers + writers) as pool:
        working = [pool.submit(until_the_end, ask, read) for _ in range(scale.readers)]
        working += [pool.submit(until_the_end, write, written) for _ in range(writers)]
        for future in working:
            future.result()
    return read, written


def _taking_in(ground: Ground, wanted: Intake) -> Callable[[], str]:
    return lambda: intake(ground.caller, wanted).outcome.value


def _others(found: Outcomes, *expected: str) -> int:
    return sum(found.counted.values()) - sum(found.counted[name] for name in expected)


def _count(table: str, column: str, value: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table} WHERE {column} = %s", [value])  # noqa: S608
        return int(cursor.fetchone()[0])


def _sums() -> tuple[int, int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(*) FROM archive_note), (SELECT count(*) FROM archive_intake_request),"
            " (SELECT count(*) FROM archive_lifecycle_event)"
        )
        notes, requests, events = cursor.fetchone()
    return notes, requests, events
