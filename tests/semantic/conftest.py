"""The garden with derivation and semantic recall switched on, and an embedder that the test directs."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from archive.authority import Caller
from archive.operations import host
from semantic import leases
from semantic.operations.generations import register
from semantic.presets import STAND_IN
from tests import cast
from tests.commands.conftest import outside, start
from tests.racing import Crew, invariants, world
from tests.scenarios.counting import Counts
from tests.semantic import acts
from tests.semantic.scripted import PROVIDER, Script

# Command lines as processes, as tests of commands run them.
__all__ = ["outside", "start"]

GENERATION = "notes-1"


def derivation(**changes: Any) -> dict[str, Any]:
    """The settings of derivation, with some values of the embedder's binding changed."""
    return {
        "generation": changes.pop("generation", GENERATION),
        "embed_profile": "model.embed@1",
        "embed_binding": {**STAND_IN, "provider": PROVIDER, **changes},
        "attempt_seconds": 60,
    }


@pytest.fixture
def script() -> Iterator[type[Script]]:
    """What the embedder does and has done."""
    Script.clear()
    yield Script
    Script.clear()
    assert not leases._held, "a lease was left behind"


@pytest.fixture
def meaning(garden: cast.Garden, settings: Any, script: type[Script]) -> cast.Garden:
    """The garden, with one generation configured and not registered, and dora who derives in it."""
    settings.LYCHD_EMBEDDERS = {PROVIDER: "tests.semantic.scripted.Scripted"}
    settings.LYCHD_TEST_EMBEDDER = True
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(), "semantic": True}
    host.map_principal("dora")
    host.grant("dora", garden.binding, host.actions_of(["deriver"]), by="host:tests")
    return garden


@pytest.fixture
def dora(meaning: cast.Garden) -> Caller:
    """Derives."""
    return meaning.caller("dora")


@pytest.fixture
def counts(meaning: cast.Garden, owner: "psycopg.Connection[Any]") -> Counts:
    """Row counts of every table, from the moment at which the garden is planted."""
    return Counts(owner)


@pytest.fixture
def crew(meaning: cast.Garden, settings: Any, owner: "psycopg.Connection[Any]") -> Iterator[Crew]:
    """Three actors, a neighbour with a vector whom nothing may touch, and limits so far away that order decides."""
    settings.LYCHD_TIMEOUTS = dict.fromkeys(("statement", "lock", "idle", "transaction"), 60_000)
    world.prepare(owner)
    for key in (world.TEMPLATE, world.NEIGHBOUR):
        binding = Caller.in_namespace("otto", key).binding
        host.grant("dora", binding, host.actions_of(["deriver"]), by="host:tests")
    neighbour = world.World(world.NEIGHBOUR, owner)
    register(neighbour.caller("otto"))
    (promoted,) = (note["id"] for note in neighbour.ledger().notes if note["state"] == "promoted")
    acts.derived(neighbour.caller("dora"), promoted)
    before = invariants.deadlocks(owner)
    made = Crew(3, owner)
    yield made
    pids = [actor.pid for actor in made.actors if actor.pid]
    made.close()
    invariants.require_gone(owner, pids)
    assert invariants.deadlocks(owner) == before, "I20: a deadlock was met"
