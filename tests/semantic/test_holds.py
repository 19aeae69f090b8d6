"""What an act of derivation or recall by meaning holds at each of its gates: looked at from outside (0.3, 5.9)."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection

from semantic.operations.attempts import run_attempt
from semantic.operations.generations import register
from semantic.operations.preparation import prepare
from semantic.operations.rebuild import rebuild_scan
from semantic.operations.request import request
from tests.racing.actors import Actor
from tests.semantic import acts, scenes
from tests.semantic.conftest import GENERATION
from tests.semantic.scenes import DERIVED, PREPARED, RECALLED, Begins, Scene
from tests.semantic.scripted import Script

Look = Callable[[Actor], None]


def _broken() -> None:
    raise RuntimeError


def failing(at: Scene) -> None:
    """An attempt that is claimed, fails in the embedder and gives its claim up."""
    Script.before = _broken
    try:
        scenes.ATTEMPT.act(at)
    except Exception:
        return
    finally:
        Script.before = None
    raise AssertionError("it did not fail")


def again(at: Scene) -> None:
    acts.asked(at.caller("bob"), request_id="earlier", query=scenes.QUERY)


# What is done, in which scene, and in how many transactions.
CHANGES: dict[str, tuple[Callable[[Scene], Any], Begins, int]] = {
    "register": (lambda at: register(at.caller("otto")), PREPARED, 1),
    "retire": (scenes.RETIRE.act, PREPARED, 1),
    "prepare": (lambda at: prepare(at.caller("dora"), at.world.notes["1"].id), PREPARED, 1),
    "attempt": (scenes.ATTEMPT.act, PREPARED, 2),
    "attempt that fails": (failing, PREPARED, 2),
    "rebuild": (lambda at: rebuild_scan(at.world.key, GENERATION), DERIVED, 3),
}
RECALLS: dict[str, tuple[Callable[[Scene], Any], Begins, int]] = {
    "recall": (scenes.PUBLISH.act, DERIVED, 2),
    "recall replayed": (again, RECALLED, 1),
    "resolve": (scenes.RESOLVE.act, RECALLED, 1),
}


def walked(crew: Any, act: Callable[[], Any], look: Look) -> None:
    """Let one actor do it alone, and look at each gate where it is inside a transaction."""

    def at_a_gate(ready: Sequence[Actor]) -> Actor:
        (actor,) = ready
        inside = crew.observer.execute(
            "SELECT state = 'idle in transaction' FROM pg_stat_activity WHERE pid = %s", [actor.pid]
        ).fetchone()[0]
        if inside:
            look(actor)
        return actor

    crew.perform([act], at_a_gate)
    assert crew.actors[0].walk.ended.error is None


def free(owner: Any, question: str, *values: Any) -> bool:
    """Whether somebody else could lock all these rows right now."""
    (wanted,) = owner.execute(f"SELECT count(*) FROM ({question}) found", values).fetchone()
    (got,) = owner.execute(f"SELECT count(*) FROM ({question} FOR UPDATE SKIP LOCKED) found", values).fetchone()
    assert wanted
    return bool(wanted == got)


def at_its_gates(crew: Any, owner: Any, begins: Begins, act: Callable[[Scene], Any]) -> list[tuple[Any, ...]]:
    """At each gate inside a transaction: the queue lock it has, and whether others could change or share the row."""
    at = begins.stage(owner)
    seen: list[tuple[Any, ...]] = []
    row = "SELECT FROM archive_namespace WHERE key = %s"

    def look(actor: Actor) -> None:
        queue = owner.execute(
            "SELECT mode FROM pg_locks WHERE pid = %s AND locktype = 'advisory' AND granted"
            " AND ((classid::bigint << 32) | objid::bigint) = hashtextextended('lychd:' || %s::text, 0)",
            [actor.pid, at.world.key],
        ).fetchone()
        shareable = owner.execute(
            f"SELECT count(*) FROM ({row} FOR SHARE SKIP LOCKED) free", [at.world.key]
        ).fetchone()[0]
        seen.append((actor.where, queue and queue[0], free(owner, row, at.world.key), shareable == 1))

    walked(crew, lambda: act(at), look)
    return seen


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_holds_its_namespace_against_everybody(crew, owner, name):
    act, begins, holds = CHANGES[name]
    seen = at_its_gates(crew, owner, begins, act)

    assert sum(gate == "commit" for gate, *_ in seen) == holds
    for gate, *what in seen:
        assert what == ["ExclusiveLock", False, False], gate


@pytest.mark.parametrize("name", RECALLS)
def test_a_recall_holds_its_namespace_against_changes_alone(crew, owner, name):
    act, begins, holds = RECALLS[name]
    seen = at_its_gates(crew, owner, begins, act)

    assert sum(gate == "commit" for gate, *_ in seen) == holds
    for gate, *what in seen:
        assert what == ["ShareLock", False, True], gate


def locked_at(crew: Any, owner: Any, at: Scene, act: Callable[[], Any], question: str, value: Any) -> list[bool]:
    """Whether these rows are somebody's at each A1 and at each commit."""
    seen: list[bool] = []

    def look(actor: Actor) -> None:
        if actor.where.endswith((".A1", "commit")):
            seen.append(not free(owner, question, value))

    walked(crew, act, look)
    return seen


def test_an_attempt_locks_its_row_before_it_asks_and_before_it_looks_at_the_clock(crew, owner):
    at = PREPARED.stage(owner)
    row = "SELECT FROM semantic_derivation WHERE id = %s"

    seen = locked_at(crew, owner, at, lambda: scenes.ATTEMPT.act(at), row, at.derivation.id)

    assert seen == [True] * 4


def test_a_preparation_locks_its_note_and_a_retirement_its_generation_before_they_ask(crew, owner):
    at = PREPARED.stage(owner)
    note = at.world.notes["1"].id

    def prepared() -> Any:
        return prepare(at.caller("dora"), note)

    note_held = locked_at(crew, owner, at, prepared, "SELECT FROM archive_note WHERE id = %s", note)
    generation = (
        "SELECT FROM semantic_generation WHERE namespace_id = (SELECT id FROM archive_namespace WHERE key = %s)"
    )
    retired = locked_at(crew, owner, at, lambda: scenes.RETIRE.act(at), generation, at.world.key)

    assert (note_held, retired) == ([True, True], [True, True])


def test_asking_for_an_attempt_looks_at_one_moment_and_could_write_nothing(crew, owner):
    at = PREPARED.stage(owner)
    caller, attempt = at.caller("dora"), acts.Attempt(at.derivation.id, 1)

    seen = set()

    def look(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        if "semantic_" in statement:
            session = context["connection"].connection
            seen.add(
                tuple(session.execute(f"SHOW transaction_{what}").fetchone()[0] for what in ("isolation", "read_only"))
            )
        return execute(statement, params, many, context)

    with connection.execute_wrapper(look):
        assert request(caller, attempt).needed

    assert seen == {("repeatable read", "on")}
    assert run_attempt(caller, attempt).state == "complete"
