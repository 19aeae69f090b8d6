"""A permission taken back at every gate: refused from the next check point on, and what was committed stays (I14)."""

import pytest

from archive.authority import Action
from tests.racing import Run, explore, invariants, world
from tests.racing.world import Part

WITHDRAWN = [
    (world.INTAKE, "alice", Action.INTAKE),
    (world.INTAKE_BATCH, "alice", Action.INTAKE),
    (world.PROMOTE_2, "alice", Action.PROMOTE),
    (world.ARCHIVE_1, "alice", Action.ARCHIVE),
    (world.REVOKE_1, "alice", Action.REVOKE),
    (world.MOVE_BATCH, "alice", Action.PROMOTE),
    (world.PROMOTE_BATCH, "alice", Action.PROMOTE),
    (world.RECALL, "bob", Action.RECALL),
    (world.RESOLVE, "bob", Action.RESOLVE),
    (world.REVIEW, "alice", Action.REVIEW),
    (world.DESK, "alice", Action.REVIEW),
    (world.FLAG, "bob", Action.FLAG),
    (world.MIGRATE_AT_LAST, "otto", Action.MIGRATE_BINDING),
    (world.LIST, "ivy", Action.INSPECT_METADATA),
    (world.DISCOVER, "otto", Action.DISCOVER_CONFIGURATION),
]


def only_promotions_refused(part: Part) -> bool:
    """The batch of transitions holds a revocation too, whose permission nobody takes back."""
    return part is world.MOVE_BATCH


@pytest.mark.parametrize(("part", "subject", "action"), WITHDRAWN, ids=[str(part) for part, *_ in WITHDRAWN])
def test_a_permission_that_ends_refuses_from_the_next_check_point_on(crew, owner, tell, part, subject, action):
    begun = []

    def stage():
        found = part.ground(owner)
        begun[:] = [(found, found.ledger().shape())]
        return [lambda: part.play(found), lambda: world.withdrawal(subject, action).play(found)]

    # What it comes to when nobody interferes.
    stage()
    whole = part.play(begun[0][0])
    done = begun[0][0].ledger().shape()

    def judge(run: Run) -> object:
        (found, before), (end, _) = begun[0], run.ends
        # The gate at which it stood when the withdrawal was committed.
        passed = run.turns[: run.turns.rindex("b")].count("a")
        ledger = found.ledger()
        invariants.check(ledger)
        trace = run.walks[0].trace
        if passed == len(part.gates):
            assert (end, ledger.shape()) == (whole, done), "allowed to the end, and not done"
            return end
        assert end != whole, f"done although the permission ended at {part.gates[passed]}"
        assert "authority_refused" in str(end), f"ended with {end!r}"
        if only_promotions_refused(part):
            return end
        if passed == 0:
            assert trace == ["start"], "looked before authority was asked"
        held = [place for place, gate in enumerate(part.gates) if gate.endswith(".A1")]
        if (held and passed > held[0]) or (not held and passed > 1):
            assert ledger.shape() == done, "refused after the commit, and what was committed is gone"
        else:
            assert ledger.shape() == before, "refused under the hold, and something was written"
        return end

    # The withdrawal itself is a step that may stand half done: every order of the two is walked for the table's pairs.
    explored = explore(crew, f"{part} x withdraw {action}", stage, judge, preemptions=1)
    tell(explored)
    explored.require_good()
    explored.require_meeting()
