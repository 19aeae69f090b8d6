"""The explorer itself: it must find what is wrong, name it, and find nothing where nothing is wrong."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction

from archive.gates import gate
from tests.faults.planting import Code, Together, Trigger
from tests.racing import Crew, Hung, Run, explore, invariants
from tests.racing.pairs import Meeting, meet
from tests.racing.world import INTAKE, INTAKE_OTHER

LOOSE = "__import__('tests.faults.loose').faults.loose."
NO_HOLD = Code("archive.operations.intake:intake", "locked(", f"{LOOSE}locked(")
NO_TRIGGER = [
    Trigger(table, "a_nslock")
    for table in ("archive_source", "archive_note", "archive_lifecycle_event", "archive_intake_request")
]
NO_SAVEPOINT = Code("archive.operations.intake:intake", "savepoint()", f"{LOOSE}savepoint()")


@pytest.fixture
def counter(owner) -> Iterator[None]:
    """A toy: one row with a number in it."""
    owner.execute("CREATE TABLE toy_counter (number integer NOT NULL)")
    owner.execute("GRANT SELECT, INSERT, UPDATE ON toy_counter TO lychd_serving")
    yield
    connection.close()
    owner.execute("DROP TABLE toy_counter")


def add_one(lock: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT number FROM toy_counter {lock}")
        (number,) = cursor.fetchone()
        gate("toy.read")
        cursor.execute("UPDATE toy_counter SET number = %s", [number + 1])
        gate("toy.written")


def counted(crew: Crew, owner: Any, lock: str) -> Any:
    def stage() -> list[Callable[[], None]]:
        owner.execute("DELETE FROM toy_counter")
        owner.execute("INSERT INTO toy_counter VALUES (0)")
        return [partial(add_one, lock)] * 2

    def judge(run: Run) -> int:
        assert run.ends == (None, None)
        (number,) = owner.execute("SELECT number FROM toy_counter").fetchone()
        assert number == 2, f"two additions made {number}"
        return int(number)

    return explore(crew, f"toy {lock or 'without its lock'}", stage, judge, go_on=True)


def test_a_toy_that_locks_its_row_never_loses_an_addition(crew, owner, counter, tell):
    explored = counted(crew, owner, "FOR UPDATE")
    tell(explored)

    assert explored.bad == []
    assert explored.waited > 0


def test_the_same_toy_without_its_lock_does(crew, owner, counter, tell):
    explored = counted(crew, owner, "")
    tell(explored)

    assert len(explored.bad) > explored.schedules / 3
    assert "two additions made 1" in explored.bad[0][1]


@pytest.mark.parametrize("meeting", [Meeting((INTAKE, INTAKE)), Meeting((INTAKE, INTAKE_OTHER))], ids=str)
def test_an_intake_without_its_hold_is_found(crew, owner, tell, meeting):
    with NO_HOLD.planted():
        explored = meet(meeting, crew, owner, name=f"{meeting} without the hold")
    tell(explored)

    assert explored.bad


def test_the_savepoint_saves_an_intake_that_nothing_holds_and_without_it_nothing_does(crew, owner, tell):
    meeting = Meeting((INTAKE, INTAKE_OTHER))
    with Together((NO_HOLD, *NO_TRIGGER)).planted():
        saved = meet(meeting, crew, owner, go_on=True, name="the same, triggers gone too")
        with NO_SAVEPOINT.planted():
            lost = meet(meeting, crew, owner, name="the same, savepoint gone too")
    tell(saved)
    tell(lost)

    assert saved.bad == []
    assert saved.waited > 0
    assert lost.bad


def test_a_schedule_runs_again_alone(crew, owner, counter, monkeypatch):
    turns, why = counted(crew, owner, "").bad[0]

    monkeypatch.setenv("RACE_SCHEDULE", turns)
    again = counted(crew, owner, "")

    assert again.bad == [(turns, why)]
    assert again.schedules == 1


def test_a_deadlock_is_a_bad_schedule_even_if_the_server_ends_it(owner, far_limits):
    owner.execute("CREATE TABLE toy_counter AS SELECT n AS number FROM generate_series(1, 2) n")
    owner.execute("GRANT SELECT, UPDATE ON toy_counter TO lychd_serving")
    crew = Crew(2, owner)

    def both(first: int, second: int) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            for number in (first, second):
                cursor.execute("SELECT FROM toy_counter WHERE number = %s FOR UPDATE", [number])
                gate("toy.locked")

    try:
        explored = explore(crew, "toy", lambda: [partial(both, 1, 2), partial(both, 2, 1)], lambda run: 0)
    finally:
        crew.close()
        owner.execute("DROP TABLE toy_counter")

    assert "a deadlock" in explored.bad[0][1]


def test_an_actor_that_hangs_is_told_with_its_trace(owner, far_limits):
    never = threading.Event()
    crew = Crew(2, owner, patience=0.2)

    def wait_for_nobody() -> None:
        gate("toy.before")
        never.wait()

    try:
        with pytest.raises(Hung) as told:
            explore(crew, "toy", lambda: [wait_for_nobody, lambda: None], lambda run: 0)
    finally:
        never.set()
        crew.close()

    assert "actor a is neither at a gate, nor done, nor waiting" in str(told.value)
    assert "a: running, after start > toy.before" in str(told.value)
    assert "in wait_for_nobody" in str(told.value)


def test_operations_that_never_meet_are_refused_as_a_test(crew):
    explored = explore(crew, "strangers", lambda: [lambda: None, lambda: None], lambda run: 0)

    with pytest.raises(AssertionError, match="nobody ever waited"):
        explored.require_meeting()


def test_a_hundred_actors_leave_no_session_behind(owner, far_limits):
    pids = []
    for _ in range(10):
        crew = Crew(10, owner)
        crew.perform([lambda: None] * 10, lambda ready: ready[-1])
        pids += [actor.pid for actor in crew.actors]
        crew.close()

    assert len(set(pids)) == 100
    invariants.require_gone(owner, pids)


def test_the_invariants_read_every_table_of_a_namespace(owner):
    held = owner.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attname = 'namespace_id' ORDER BY 1"
    ).fetchall()

    assert sorted(name for (name,) in held) == sorted([*invariants.MEMORY, *invariants.DERIVED])
