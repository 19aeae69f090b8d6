"""Whoever waits and is cut short says so: no empty answer, no half of a row, and the same again afterwards (I11)."""

from dataclasses import replace

import pytest

from tests.racing import Crew, invariants
from tests.racing.operations import PAIRS
from tests.racing.pairs import Meeting

FENCES = {"intake-new x intake-new", "promote x promote", "revoke x recall", "recall x recall", "revoke x resolve"}
# The first of these acts is not found by the second before it is committed; the others share what they hold.
NEVER = {f"intake-new x {change}" for change in ("promote", "archive", "revoke")}
NEVER |= {"recall x resolve", "resolve x resolve"}


def waits(meeting: Meeting) -> bool:
    """A withdrawal waits for a migration and for another withdrawal; nobody else looks at what it holds."""
    name = str(meeting)
    withdraws = name.endswith("grant withdrawal") and not name.startswith(("binding", "grant"))
    return name not in NEVER and not withdraws


def ended_while_waiting(crew: Crew, owner, meeting: Meeting, turns: int) -> str | None:
    """Let the first go so many turns, then the second until it waits, and end its wait; None if it never waits."""
    first, second = meeting.parts
    found = meeting.ground(owner)
    a, b = crew.actors[:2]
    cut: list[str] = []

    def choose(ready):
        if b.blocked and not cut:
            cut.append(b.where)
            owner.execute("SELECT pg_cancel_backend(%s)", [b.pid])
            crew.wait_for(b)
        if a in ready and (len(a.walk.trace) <= turns or b not in ready):
            return a
        return b

    crew.perform([lambda: first.play(found), lambda: second.play(found)], choose)
    if not cut:
        return None
    assert b.walk.ended.value == "archive_timeout", f"cut short at {cut[0]}, ended with {b.walk.ended}"
    ledger = found.ledger()
    invariants.check(ledger)
    alone = meeting.ground(owner)
    word = first.play(alone)
    assert (a.walk.ended.value, ledger.shape()) == (word, alone.ledger().shape()), f"cut short at {cut[0]}"
    # And nothing is left of it: the same act now ends as it does after the other.
    assert second.play(found) == second.play(alone)
    assert found.ledger().shape() == alone.ledger().shape()
    return cut[0]


def cuts(crew: Crew, owner, meeting: Meeting) -> list[str]:
    found = (ended_while_waiting(crew, owner, meeting, turns) for turns in range(1, len(meeting.parts[0].gates)))
    return [gate for gate in found if gate is not None]


@pytest.mark.parametrize(
    "meeting",
    [pytest.param(one, marks=() if str(one) in FENCES else pytest.mark.slow) for one in PAIRS],
    ids=str,
)
def test_a_wait_that_is_cut_short_is_told_and_leaves_nothing(crew, owner, meeting):
    there = cuts(crew, owner, meeting)
    back = cuts(crew, owner, replace(meeting, parts=meeting.parts[::-1]))

    assert bool(there or back) == waits(meeting)
