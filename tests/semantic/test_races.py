"""Every order in which attempts, recalls and changes can meet, one turn at a time, with I5-I9 and I17 after each."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from archive import gates
from archive.authority import Caller
from archive.lifecycle import State as NoteState
from archive.operations import host
from archive.operations.transition import archive, promote, revoke
from archive.records import NoteRecord
from archive.refusals import Refusal
from archive.seals import verify
from semantic.operations.attempts import Attempt, run_attempt
from semantic.operations.generations import register, retire
from semantic.operations.recall import recall
from semantic.operations.resolution import resolve
from semantic.requests import SemanticRecall
from tests import cast
from tests.racing import Crew, Run, explore, invariants
from tests.semantic import acts
from tests.semantic.ageing import age
from tests.semantic.conftest import GENERATION
from tests.semantic.scripted import Script

_numbers = itertools.count(1)

CLAIMING = ("attempt.leased", "attempt.claimed", "attempt.closed")
RECALLING = ("semantic_recall.closed", "semantic_recall.looked")
CHANGING = ("commit",)


@dataclass
class Scene:
    """One namespace of its own: roses/1 promoted and prepared, roses/2 waiting to take its place."""

    key: str
    first: NoteRecord
    second: NoteRecord
    derivation: Any

    def caller(self, subject: str) -> Caller:
        return Caller.in_namespace(subject, self.key)


@pytest.fixture
def crew(meaning, settings, owner) -> Iterator[Crew]:
    settings.LYCHD_TIMEOUTS = dict.fromkeys(("statement", "lock", "idle", "transaction"), 60_000)
    settings.LYCHD_EMBED_LEASES = 8
    made = Crew(3, owner)
    yield made
    pids = [actor.pid for actor in made.actors if actor.pid]
    made.close()
    invariants.require_gone(owner, pids)


def scene(*, derived: bool = False, recalled: bool = False) -> Scene:
    garden = cast.plant(f"scene-{next(_numbers)}")
    host.grant("dora", garden.binding, host.actions_of(["deriver"]), by="host:tests")
    alice, dora = garden.caller("alice"), garden.caller("dora")
    first = cast.promoted(alice, "Roses want morning sun.", source="roses")
    second = cast.admitted(alice, "Roses want evening sun.", source="roses", revision="2")
    register(garden.caller("otto"))
    row = acts.derived(dora, first) if derived else acts.prepared(dora, first)
    if recalled:
        recall(garden.caller("bob"), SemanticRecall("earlier", "roses", -1.0))
    return Scene(garden.binding.namespace, first, second, row)


def stopping(act: Callable[[], Any], *stops: str) -> Callable[[], str]:
    """Let an act stop at these gates alone, and put its ending into a word."""

    def play() -> str:
        park = gates._local.park
        gates.occupy(lambda name: park(name) if name in stops else None)
        try:
            return str(act())
        except Refusal as refusal:
            return refusal.code
        finally:
            gates.occupy(park)

    return play


Part = Callable[[Scene], Callable[[], str]]


def attempt(at: Scene) -> Callable[[], str]:
    wanted = Attempt(at.derivation.id, at.derivation.row_version)
    return stopping(lambda: run_attempt(at.caller("dora"), wanted).state, *CLAIMING)


def retiring(at: Scene) -> Callable[[], str]:
    return stopping(lambda: retire(at.caller("otto"), GENERATION).state, *CHANGING)


def revoking(at: Scene) -> Callable[[], str]:
    step = cast.step(at.first, NoteState.REVOKED)
    return stopping(lambda: revoke(at.caller("alice"), step).note.state, *CHANGING)


def archiving(at: Scene) -> Callable[[], str]:
    step = cast.step(at.first, NoteState.ARCHIVED)
    return stopping(lambda: archive(at.caller("alice"), step).note.state, *CHANGING)


def promoting(at: Scene) -> Callable[[], str]:
    step = cast.step(at.second, NoteState.PROMOTED)
    return stopping(lambda: promote(at.caller("alice"), step).note.state, *CHANGING)


def asking(at: Scene) -> Callable[[], str]:
    def act() -> str:
        done = recall(at.caller("bob"), SemanticRecall("s1", "roses", -1.0))
        return f"{done.outcome} {len(done.receipt['selected'])}"

    return stopping(act, *RECALLING)


def resolving(at: Scene) -> Callable[[], str]:
    return stopping(lambda: f"{len(resolve(at.caller('bob'), 'earlier').sources)} texts", "semantic_resolve.A1")


# What the actors do, what the scene begins with, and every ending that may be.
MEETINGS: dict[str, tuple[tuple[Part, ...], dict[str, bool], set[tuple[str, ...]]]] = {
    "claim x claim": (
        (attempt, attempt),
        {},
        {
            ("complete", "complete"),
            ("complete", "derivation_not_claimable"),
            ("derivation_not_claimable", "complete"),
        },
    ),
    "claim x retire": (
        (attempt, retiring),
        {},
        {("complete", "retired"), ("attempt_fenced", "retired"), ("generation_retired", "retired"),
         ("derivation_invalidated", "retired")},
    ),
    "claim x revoke": (
        (attempt, revoking),
        {},
        {("complete", "revoked"), ("attempt_fenced", "revoked"), ("derivation_invalidated", "revoked")},
    ),
    "claim x archive": (
        (attempt, archiving),
        {},
        {("complete", "archived"), ("attempt_fenced", "archived"), ("derivation_invalidated", "archived")},
    ),
    "complete x promote": (
        (attempt, promoting),
        {},
        {("complete", "promoted"), ("attempt_fenced", "promoted"), ("derivation_invalidated", "promoted")},
    ),
    "publish x publish": (
        (asking, asking),
        {"derived": True},
        {("published 1", "joined 1"), ("joined 1", "published 1"), ("published 1", "replayed 1"),
         ("replayed 1", "published 1")},
    ),
    "publish x retire": (
        (asking, retiring),
        {"derived": True},
        {("published 1", "retired"), ("generation_retired", "retired")},
    ),
    "publish x promote": (
        (asking, promoting),
        {"derived": True},
        {("published 1", "promoted"), ("published 0", "promoted")},
    ),
    "publish x revoke": (
        (asking, revoking),
        {"derived": True},
        {("published 1", "revoked"), ("published 0", "revoked")},
    ),
    "resolve x revoke": (
        (resolving, revoking),
        {"derived": True, "recalled": True},
        {("1 texts", "revoked"), ("selection_stale", "revoked")},
    ),
    "resolve x retire": (
        (resolving, retiring),
        {"derived": True, "recalled": True},
        {("1 texts", "retired"), ("generation_retired", "retired")},
    ),
    "publish x derive": (
        (asking, attempt),
        {},
        {("published 0", "complete"), ("published 1", "complete")},
    ),
}  # fmt: skip


def sound(owner: "psycopg.Connection[Any]", key: str) -> None:
    """What holds of a namespace after any schedule."""
    rows = owner.execute(
        "SELECT d.state, d.vector IS NOT NULL, d.attempt_token IS NOT NULL, n.state, g.state,"
        " EXISTS (SELECT FROM semantic_scan s WHERE s.derivation_id = d.id)"
        " FROM semantic_derivation d JOIN archive_note n ON n.id = d.note_id"
        " JOIN semantic_generation g ON g.id = d.generation_id JOIN archive_namespace s ON s.id = d.namespace_id"
        " WHERE s.key = %s",
        [key],
    ).fetchall()
    for state, vector, token, note, generation, scanned in rows:
        eligible = note == "promoted" and generation == "active"
        assert eligible or state == "invalidated", "I5, I17: derived without a promoted note or an active generation"
        assert vector == scanned == (state == "complete"), "I5, I6: a vector outside a complete derivation"
        assert token == (state == "running"), "I9: a token without an attempt"
        assert state != "running", "an attempt ended and left its claim"
    counted = owner.execute(
        "SELECT g.id, coalesce(c.complete, 0), (SELECT count(*) FROM semantic_scan s WHERE s.generation_id = g.id)"
        " FROM semantic_generation g LEFT JOIN semantic_coverage c ON c.generation_id = g.id"
        " JOIN archive_namespace n ON n.id = g.namespace_id WHERE n.key = %s",
        [key],
    ).fetchall()
    assert all(complete == scanned for _, complete, scanned in counted), "coverage differs from the scan"
    for (receipt,) in owner.execute(
        "SELECT receipt FROM archive_recall r JOIN archive_namespace n ON n.id = r.namespace_id WHERE n.key = %s", [key]
    ):
        assert verify(receipt), "I7: a receipt that does not match its digest"
        assert len(receipt["selected"]) <= receipt["coverage"]["complete"]


@pytest.mark.parametrize("name", MEETINGS)
def test_every_schedule_ends_as_one_of_the_few_ways_that_may_be(crew, owner, script, name):
    parts, begins, allowed = MEETINGS[name]
    staged: list[Scene] = []

    def stage() -> list[Callable[[], Any]]:
        script.calls, script.seen = 0, []
        staged.append(scene(**begins))
        script.calls = 0
        return [part(staged[-1]) for part in parts]

    def judge(run: Run) -> tuple[str, ...]:
        endings = tuple(str(end) if isinstance(end, str) else repr(end) for end in run.ends)
        assert endings in allowed, f"{endings} is no ending that may be"
        sound(owner, staged[-1].key)
        if name == "claim x claim":
            assert script.calls == 1, "I9: one claim, one disclosure of the text"
        return endings

    explored = explore(crew, name, stage, judge)

    explored.require_good()
    explored.require_meeting()
    assert explored.schedules >= 4


def test_complete_x_retry_after_expiry(crew, owner, superuser, script):
    """However a late completion and an explicit retry meet, the vector that stays is the one whose token lives."""
    staged: list[Scene] = []

    def retry(at: Scene) -> Callable[[], str]:
        def act() -> str:
            row = owner.execute(
                "SELECT row_version, state FROM semantic_derivation WHERE id = %s", [at.derivation.id]
            ).fetchone()
            if row is None or row[1] != "running":
                return f"found {row and row[1]}"
            age(superuser, at.derivation.id)
            return run_attempt(at.caller("dora"), Attempt(at.derivation.id, row[0], retry=True)).state

        return stopping(act, "attempt.leased", "attempt.claimed")

    def stage() -> list[Callable[[], Any]]:
        staged.append(scene())
        return [attempt(staged[-1]), retry(staged[-1])]

    def judge(run: Run) -> tuple[str, ...]:
        endings = tuple(str(end) if isinstance(end, str) else repr(end) for end in run.ends)
        row = owner.execute(
            "SELECT state, attempt, row_version FROM semantic_derivation WHERE id = %s", [staged[-1].derivation.id]
        ).fetchone()
        assert row is not None
        allowed = {
            ("complete", "found prepared"): ("complete", 1),
            ("complete", "found complete"): ("complete", 1),
            ("complete", "derivation_not_claimable"): ("complete", 1),
            ("attempt_fenced", "complete"): ("complete", 2),
            # Aged, and completed by nobody before the retry came: the first is too late.
            ("attempt_fenced", "derivation_not_claimable"): ("running", 1),
        }
        assert endings in allowed, f"{endings} is no ending that may be"
        assert row[:2] == allowed[endings]
        return endings

    explored = explore(crew, "complete x retry after expiry", stage, judge)

    explored.require_good()
    assert ("attempt_fenced", "complete") in explored.finals
    assert Script.closed == Script.opened
