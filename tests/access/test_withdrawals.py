"""Grants taken back in mid-flight by another connection, at every entrance and every check point of it.

R-L-031..035, 038: before A0 and at A1 nothing is changed; at A2 what was committed stays and its answer is withheld;
each time the answer is the refusal that whoever never had a grant gets, to the byte.
"""

from collections.abc import Callable
from typing import Final

import pytest

from archive import gates
from tests.access import doors, table
from tests.access.doors import Met
from tests.access.ground import SECRET, Ground, Place
from tests.access.table import ENTRANCES, Entrance

TRUTH: Final = ("archive_", "semantic_")
CHECKED: Final = (".A1", ".A2", ".AX")
TASK: Final = "semantic.run_derivation_attempt"
HOME: Final = "ns/<key:ns>"
# A batch and an attempt name the gates before their last question otherwise.
LAST: Final = {TASK: "attempt.settled", "derive": "attempt.settled"}


def walk(entrance: Entrance, role: str, here: Ground, place: Place, park: Callable[[str], None]) -> Met:
    gates.occupy(park)
    try:
        return doors.take(entrance, role, here, place)
    finally:
        gates.occupy(None)


def changed(here: Ground, before: dict[str, str]) -> set[str]:
    now = here.digest(*TRUTH)
    return {name for name in now if now[name] != before[name]}


def ground_for(entrance: Entrance, here: Ground, role: str, standing: Place) -> Place:
    if not entrance.reads:
        return here.fresh("changed" if entrance.address == "namespace migrate" else "own")
    here.give_back(role, standing)
    return standing


# What an operator changes on the pages of people and settings stands in the host's own tables, grants among them.
HOSTS: Final = ("ns/<key:ns>/people", "ns/<key:ns>/settings/")
# An empty form, which nothing is read for.
EMPTY: Final = "GET ns/<key:ns>/find"
ARCHIVAL: Final = [
    one for one in ENTRANCES if one.in_namespace and not one.address.startswith(HOSTS) and str(one) != EMPTY
]


@pytest.mark.parametrize("entrance", ARCHIVAL, ids=str)
def test_a_grant_that_ends_is_missed_at_the_next_check_point(here: Ground, entrance: Entrance) -> None:
    role = next(role for role in table.GRANTED if entrance.signs[role] == "+")
    never = doors.take(entrance, "charlie", here, here.places["own"])
    standing = here.fresh("own")

    # What it comes to when nobody interferes, and past which gates.
    passed: list[str] = []
    committed: list[set[str]] = []
    place = ground_for(entrance, here, role, standing)
    before = here.digest(*TRUTH)

    def watch(gate: str) -> None:
        passed.append(gate)
        # By another connection, which sees what is committed and no more.
        committed.append(changed(here, before))

    assert walk(entrance, role, here, place, watch).outcome == "+"
    assert bool(changed(here, before)) is not entrance.reads

    points = [
        place for place, gate in enumerate(passed) if gate.endswith(CHECKED) or gate == LAST.get(entrance.address)
    ]
    assert points, "asked once only"
    assert any(passed[point].endswith(".A2") or passed[point] in LAST.values() for point in points)
    for point in [-1, *points]:
        place = ground_for(entrance, here, role, standing)
        before = here.digest(*TRUTH)
        trace: list[str] = []

        def park(gate: str, trace: list[str] = trace, point: int = point, place: Place = place) -> None:
            if len(trace) == point:
                here.withdraw(role, place)
            trace.append(gate)

        if point == -1:
            here.withdraw(role, place)
        met = walk(entrance, role, here, place, park)

        where = "A0" if point == -1 else passed[point]
        effect = changed(here, before)
        assert SECRET not in met.shown, where
        if entrance.address == HOME and where == "inspect_receipt.A2":
            # The page is put together of answers that were each allowed to the end; this one is left out of it.
            assert met.outcome == "+"
            assert place.receipt_id not in met.shown
            continue
        assert met.outcome == "-", where
        # Once one of many was begun, the command tells what became of each, and no more.
        told_one_by_one = entrance.address == "derive" and '"outcomes": {\n    "authority_refused": 1' in met.shown
        assert met.alike == never.alike or told_one_by_one, where
        assert trace[: point + 1] == passed[: point + 1], where
        if entrance.address == TASK and where in ("execute_derivation.AX", "execute_derivation.A1") and effect:
            # Claimed before, and the claim is given up.
            assert committed[point] == effect == {"semantic_derivation"}
            assert vector_of(here, place) == ("failed", "authority_refused", False), where
        else:
            kept = set() if point == -1 else committed[point]
            assert effect == kept, f"refused at {where}, and what is there is not what was committed by then"


@pytest.mark.parametrize("entrance", [one for one in ENTRANCES if one.door == "admin" and one.method == "GET"], ids=str)
def test_a_grant_that_ends_takes_the_page_of_the_admin_with_it(here: Ground, entrance: Entrance) -> None:
    role = next(role for role in table.GRANTED if entrance.signs[role] == "+")
    never = doors.take(entrance, "charlie", here, here.places["own"])
    own, passed = here.places["own"], list[str]()
    here.give_back(role, own)

    def park(gate: str) -> None:
        passed.append(gate)
        # In one of several namespaces: what the page shows of the others would not be what was asked about.
        here.withdraw(role, own)

    met = walk(entrance, role, here, own, park)
    assert (passed, met.outcome) == (["admin.A2"], "-")
    assert met.alike == never.alike


def vector_of(here: Ground, place: Place) -> tuple[str, str, bool]:
    row = here.owner.execute(
        "SELECT state, failure_code, vector IS NOT NULL FROM semantic_derivation WHERE id = %s", [place.derivation]
    ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]
