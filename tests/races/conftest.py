"""Limits far away, so that schedules are decided by their order; and a line for each meeting in the table."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.racing import Crew, Explored, invariants, table, world


@pytest.fixture
def far_limits(settings: Any) -> None:
    """All four limits at a minute: order decides, never the clock."""
    settings.LYCHD_TIMEOUTS = dict.fromkeys(("statement", "lock", "idle", "transaction"), 60_000)


@pytest.fixture
def crew(far_limits: None, owner: "psycopg.Connection[Any]") -> Iterator[Crew]:
    """Three actors on a prepared ground; afterwards no deadlock was met and nobody is left in the server."""
    world.prepare(owner)
    before = invariants.deadlocks(owner)
    made = Crew(3, owner)
    yield made
    pids = [actor.pid for actor in made.actors if actor.pid]
    made.close()
    invariants.require_gone(owner, pids)
    assert invariants.deadlocks(owner) == before, "I20: a deadlock was met"


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[Explored], None]:
    """Put a line into the table at the end of the run."""
    return lambda explored: record_property(table.PROPERTY, str(explored))
