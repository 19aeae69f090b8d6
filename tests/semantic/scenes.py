"""What actors play in the races of derivation and recall by meaning, and what has to hold after every schedule.

Each schedule has a namespace of its own (tests/racing/world.py): roses/1 promoted and prepared, or embedded, or
recalled besides; roses/2 waits to take its place. An act parks at its stops alone, but the scene remembers every gate
that anybody passed, so that an answer can be held against what was committed before it was given.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from django.db import connection
from django.test import override_settings

from archive import bindings, gates
from archive.authority import Caller
from archive.lifecycle import State as NoteState
from archive.operations.recall import recall as lexical_recall
from archive.operations.resolution import resolve as lexical_resolve
from archive.operations.transition import archive, promote, revoke
from archive.refusals import Refusal
from archive.requests import LexicalRecall
from semantic.embedders import Kind
from semantic.operations.attempts import Attempt, run_attempt
from semantic.operations.generations import register, retire
from semantic.operations.preparation import prepare
from semantic.operations.recall import recall
from semantic.operations.resolution import resolve
from semantic.records import DerivationRecord
from semantic.requests import SemanticRecall
from tests.racing import Crew, Run, invariants, world
from tests.racing.world import NEIGHBOUR, TEXTS, World
from tests.semantic.ageing import age
from tests.semantic.conftest import GENERATION
from tests.semantic.scripted import Script

QUERY: Final = "roses sun"


@dataclass
class Scene:
    """One namespace of its own, the derivation in it, and the gates that were passed, in order."""

    world: World
    derivation: DerivationRecord
    embedded_before: int
    passed: list[tuple[str, str]] = field(default_factory=list)

    def caller(self, subject: str) -> Caller:
        return self.world.caller(subject)

    def row(self) -> tuple[str, int, int]:
        """The state, attempt and row version of the derivation right now."""
        found = self.world.owner.execute(
            "SELECT state, attempt, row_version FROM semantic_derivation WHERE id = %s", [self.derivation.id]
        ).fetchone()
        assert found is not None
        return found[0], found[1], found[2]


@dataclass(frozen=True)
class Begins:
    """What a scene has before anybody acts in it."""

    derived: bool = False
    recalled: bool = False

    def stage(self, owner: "psycopg.Connection[Any]") -> Scene:
        """Make one; nobody asks about a beginning, and authority costs time."""
        planted = world.planted(owner)
        dora = planted.caller("dora")
        with override_settings(LYCHD_ARCHIVE={**bindings.require_profile(), "authorizer": "tests.racing.world.Open"}):
            register(planted.caller("otto"))
            row = prepare(dora, planted.notes["1"].id).derivation
            if self.derived:
                row = run_attempt(dora, Attempt(row.id, row.row_version))
            if self.recalled:
                recall(planted.caller("bob"), SemanticRecall("earlier", QUERY, -1.0))
                lexical_recall(planted.caller("bob"), LexicalRecall("words", QUERY))
        Script.calls, Script.seen = 0, []
        return Scene(planted, row, row.attempt)


PREPARED: Final = Begins()
DERIVED: Final = Begins(derived=True)
RECALLED: Final = Begins(derived=True, recalled=True)


@dataclass(frozen=True)
class Part:
    """What one actor does, and the gates it stops at."""

    name: str
    act: Callable[[Scene], str]
    stops: tuple[str, ...]

    def played(self, at: Scene, actor: str) -> Callable[[], str]:
        """The act of an actor in a scene; its ending is one word, and whatever is no refusal stays an error."""

        def play() -> str:
            park = gates._local.park

            def pass_by(gate: str) -> None:
                at.passed.append((actor, gate))
                if gate in self.stops:
                    park(gate)

            gates.occupy(pass_by)
            try:
                return self.act(at)
            except Refusal as refusal:
                return refusal.code
            finally:
                gates.occupy(park)

        return play


def _attempt(at: Scene) -> str:
    return run_attempt(at.caller("dora"), Attempt(at.derivation.id, at.derivation.row_version)).state


_failing = threading.local()


def _fail(at: Scene) -> str:
    """An attempt whose embedder gives up, in this actor alone."""
    _failing.now = True
    try:
        return _attempt(at)
    finally:
        _failing.now = False


def _retry(at: Scene) -> str:
    """Let the minute of a running attempt pass, then ask for another as somebody who has looked."""
    state, _, version = at.row()
    if state != "running":
        return f"found {state}"
    with psycopg.connect(**_superuser()) as superuser:
        # Time passes for nobody who is being changed: this connection is no actor and must not wait for one.
        free = "SELECT FROM semantic_derivation WHERE id = %s FOR UPDATE SKIP LOCKED"
        if superuser.execute(free, [at.derivation.id]).fetchone() is None:
            return "found held"
        age(superuser, at.derivation.id)
    return run_attempt(at.caller("dora"), Attempt(at.derivation.id, version, retry=True)).state


def _superuser() -> dict[str, Any]:
    from lychd import embedded
    from tests import flushing

    return {**flushing.parameters(), "user": embedded.SUPERUSER}


def _retire(at: Scene) -> str:
    return retire(at.caller("otto"), GENERATION).state


def _move(operation: Callable[..., Any], note: str, state: NoteState) -> Callable[[Scene], str]:
    return lambda at: str(operation(at.caller("alice"), at.world.ask(note, state)).note.state)


def _ask(request: str = "asked", **more: Any) -> Callable[[Scene], str]:
    def act(at: Scene) -> str:
        done = recall(at.caller("bob"), SemanticRecall(request, QUERY, -1.0, **more))
        return f"{done.outcome} {len(done.receipt['selected'])}"

    return act


def _ask_words(at: Scene) -> str:
    done = lexical_recall(at.caller("bob"), LexicalRecall("asked-for-words", QUERY))
    return f"{done.outcome} {len(done.receipt['selected'])}"


def _resolve(operation: Callable[..., Any], request: str) -> Callable[[Scene], str]:
    def act(at: Scene) -> str:
        found = operation(at.caller("bob"), request)
        assert [source.text for source in found.sources] == [TEXTS["1"]], "I8: not what the receipt selected"
        return "resolved"

    return act


CLAIM: Final = Part("claim", _attempt, ("attempt.leased", "attempt.claimed"))
COMPLETE: Final = Part("complete", _attempt, ("attempt.claimed", "attempt.closed"))
ATTEMPT: Final = Part("attempt", _attempt, ("attempt.leased", "attempt.claimed", "attempt.closed"))
FAIL: Final = Part("fail", _fail, COMPLETE.stops)
RETRY: Final = Part("retry after expiry", _retry, ("attempt.leased", "attempt.claimed"))
RETIRE: Final = Part("retire", _retire, ("commit",))
REVOKE: Final = Part("revoke", _move(revoke, "1", NoteState.REVOKED), ("commit",))
ARCHIVE: Final = Part("archive", _move(archive, "1", NoteState.ARCHIVED), ("commit",))
PROMOTE: Final = Part("promote the next", _move(promote, "2", NoteState.PROMOTED), ("commit",))
PUBLISH: Final = Part("publish", _ask(), ("semantic_recall.closed", "semantic_recall.looked"))
PUBLISH_OTHER: Final = Part("publish another request", _ask(top_k=3), PUBLISH.stops)
# With no lease left a recall ends where its preflight does.
PREFLIGHT: Final = Part("preflight", _ask(), ("semantic_recall.A1", "commit"))
RESOLVE: Final = Part("resolve", _resolve(resolve, "earlier"), ("semantic_resolve.A1",))
RECALL_WORDS: Final = Part("recall by words", _ask_words, ("recall.looked",))
RESOLVE_WORDS: Final = Part("resolve by words", _resolve(lexical_resolve, "words"), ("resolve.A1",))

CHANGES: Final = frozenset({RETIRE, REVOKE, ARCHIVE, PROMOTE})
# What an act may not come to once a change that ends its note was over before it came under its last hold.
TOO_LATE: Final = {
    CLAIM: "complete",
    COMPLETE: "complete",
    ATTEMPT: "complete",
    RETRY: "complete",
    PUBLISH: "published 1",
    PUBLISH_OTHER: "published 1",
    PREFLIGHT: "lease_unavailable",
    RESOLVE: "resolved",
    RECALL_WORDS: "published 1",
    RESOLVE_WORDS: "resolved",
}
# Words know nothing of generations, and a preflight looks at nothing else.
_UNMOVED: Final = {RETIRE: {RECALL_WORDS, RESOLVE_WORDS}}

Ending = tuple[str, ...]


@dataclass(frozen=True)
class Meeting:
    """Parts that meet, what their scene begins with, and every ending that may be."""

    parts: tuple[Part, ...]
    endings: frozenset[Ending]
    begins: Begins = PREPARED
    leases: int = 8

    def __str__(self) -> str:
        return " x ".join(part.name for part in self.parts)


def endings(*words: Sequence[str]) -> frozenset[Ending]:
    """A closed list of endings."""
    return frozenset(tuple(word) for word in words)


class Judge:
    """Holds every schedule of a meeting against its closed list of endings and the invariants."""

    def __init__(self, meeting: Meeting, crew: Crew, owner: "psycopg.Connection[Any]", settings: Any) -> None:
        self.meeting, self.crew, self.owner, self.settings = meeting, crew, owner, settings
        self.neighbour = invariants.fingerprint(owner, NEIGHBOUR)
        self.asked_again: set[Ending] = set()
        self.scene: Scene

    def stage(self) -> list[Callable[[], Any]]:
        """A new scene, and the acts of this meeting in it."""
        Script.before, self.settings.LYCHD_EMBED_LEASES = None, 8
        self.scene = self.meeting.begins.stage(self.owner)
        Script.before, self.settings.LYCHD_EMBED_LEASES = look_for_locks, self.meeting.leases
        return [part.played(self.scene, f"{place}") for place, part in enumerate(self.meeting.parts)]

    def judge(self, run: Run) -> Ending:
        """Raise AssertionError unless this schedule kept every promise; return how it ended."""
        for end in run.ends:
            assert isinstance(end, str), f"an error that is no refusal: {end!r}"
        ending: Ending = tuple(run.ends)
        assert ending in self.meeting.endings, f"{ending} is no ending that may be"
        self._in_time(ending)
        sound(self.owner, self.scene)
        invariants.require_idle(self.owner, [actor.pid for actor in self.crew.actors])
        assert invariants.fingerprint(self.owner, NEIGHBOUR) == self.neighbour, "I18: another namespace was touched"
        if ending not in self.asked_again:
            self.asked_again.add(ending)
            self._again(ending)
        return ending

    def _in_time(self, ending: Ending) -> None:
        """No answer rests on what a change had ended before the answer came under its last hold (I6, I8, I9, I17)."""
        passed = self.scene.passed
        for changing, change in enumerate(self.meeting.parts):
            over = [at for at, (actor, gate) in enumerate(passed) if actor == f"{changing}" and gate.endswith(".A2")]
            if change not in CHANGES or not over:
                continue
            for acting, part in enumerate(self.meeting.parts):
                held = [at for at, (actor, gate) in enumerate(passed) if actor == f"{acting}" and gate.endswith(".A1")]
                if part in TOO_LATE and part not in _UNMOVED.get(change, set()) and held and held[-1] > over[0]:
                    spares = part is PREFLIGHT and change is not RETIRE
                    assert spares or ending[acting] != TOO_LATE[part], f"{part.name} after {change.name} was over"

    def _again(self, ending: Ending) -> None:
        """Who asks again after a success gets the same again: nothing is written and nothing embedded (I16)."""
        Script.calls = 0
        before = _rows(self.owner, self.scene)
        for part, word in zip(self.meeting.parts, ending, strict=True):
            if part in (PUBLISH, PUBLISH_OTHER) and word.split()[0] in {"published", "joined", "replayed"}:
                assert part.act(self.scene) == f"replayed {word.split()[1]}", "I16: another answer"
            elif word == "complete" and self.scene.row()[0] == "complete":
                assert part.act(self.scene) in {"complete", "found complete"}, "I16: another answer"
        assert Script.calls == 0, "I16: a replay embedded something"
        assert _rows(self.owner, self.scene) == before, "I16: a replay wrote something"


def _rows(owner: "psycopg.Connection[Any]", at: Scene) -> str:
    return invariants.fingerprint(owner, at.world.key)


def look_for_locks() -> None:
    """Stands in the embedder: nothing is held and nothing open while it works (I10), and it gives up when told to."""
    assert not connection.in_atomic_block, "I10: a transaction is open during inference"
    pid = connection.connection.info.backend_pid
    with psycopg.connect(**_superuser(), autocommit=True) as observer:
        held = observer.execute("SELECT count(*) FROM pg_locks WHERE pid = %s", [pid]).fetchone()
    assert held == (0,), "I10: a lock is held during inference"
    if getattr(_failing, "now", False):
        raise TimeoutError


_DERIVED: Final = """
SELECT d.state, d.attempt, d.vector IS NOT NULL, d.vector_digest IS NOT NULL, d.attempt_token IS NOT NULL, d.receipt,
       n.state, g.state, EXISTS (SELECT FROM semantic_scan s WHERE s.derivation_id = d.id)
FROM semantic_derivation d JOIN archive_note n ON n.id = d.note_id JOIN semantic_generation g ON g.id = d.generation_id
WHERE d.namespace_id = (SELECT id FROM archive_namespace WHERE key = %s)
"""
_COVERED: Final = """
SELECT coalesce(c.complete, 0), (SELECT count(*) FROM semantic_scan s WHERE s.generation_id = g.id)
FROM semantic_generation g LEFT JOIN semantic_coverage c ON c.generation_id = g.id
WHERE g.namespace_id = (SELECT id FROM archive_namespace WHERE key = %s)
"""
_RECEIPTS: Final = """
SELECT r.receipt, r.created_at, g.retired_at
FROM archive_recall r JOIN semantic_generation g
  ON g.namespace_id = r.namespace_id AND g.reference = r.receipt #>> '{generation,reference}'
WHERE r.schema = 2 AND r.namespace_id = (SELECT id FROM archive_namespace WHERE key = %s)
"""


def sound(owner: "psycopg.Connection[Any]", at: Scene) -> None:
    """What holds of a namespace after any schedule, read by the owner."""
    invariants.check(at.world.ledger())
    key = at.world.key
    for state, attempt, vector, digest, token, receipt, note, generation, scanned in owner.execute(_DERIVED, [key]):
        eligible = note == "promoted" and generation == "active"
        assert eligible or state == "invalidated", "I5, I17: derived without a promoted note or an active generation"
        assert vector == digest == scanned == (state == "complete"), "I5, I6: a vector outside a complete derivation"
        assert token == (state == "running"), "I9: a token without an attempt"
        if state == "complete":
            assert receipt["attempt"] == attempt, "I9: completed by an attempt that is not the latest"
        texts = sum(kind is Kind.DOCUMENT for _, kind in Script.seen)
        assert texts <= attempt - at.embedded_before, "I9: a text disclosed without a claim"
    for complete, scanned in owner.execute(_COVERED, [key]):
        assert complete == scanned, "coverage differs from the scan"
    for receipt, created_at, retired_at in owner.execute(_RECEIPTS, [key]):
        assert len(receipt["selected"]) <= receipt["matched_count"] <= receipt["coverage"]["complete"], "I6: coverage"
        assert retired_at is None or created_at <= retired_at, "I17: published under a retired generation"
