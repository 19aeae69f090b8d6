"""An explorer is worth what it finds: fences taken out, each missed by some schedule of two operations (G3).

What is good is settled before the fence goes: the judge has then seen every order of whole operations. Found means an
invariant that broke, or an answer or rows that no order has; a fault that only makes the code stumble proves nothing.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.planting import Code, Constraint, Together, Trigger
from tests.racing import operations, world
from tests.racing.operations import named
from tests.racing.pairs import Judge, Meeting, walk

LOOSE = "__import__('tests.faults.loose').faults.loose."
INTAKE_HOLD = Code("archive.operations.intake:intake", "locked(", f"{LOOSE}locked(")
MOVE_HOLD = Code("archive.operations.transition:_move", "locked(", f"{LOOSE}locked(")
WRITTEN = ("archive_source", "archive_note", "archive_lifecycle_event", "archive_intake_request")


@dataclass(frozen=True)
class Planted:
    """A fence, the two that meet without it, and a word of what the explorer then says."""

    name: str
    planting: Any
    meeting: Meeting
    told: str

    def __str__(self) -> str:
        return self.name


def pair(first: str, second: str) -> Meeting:
    return operations.pair(named(first), named(second))


def unasked(where: str, point: str, action: str) -> Code:
    """The gate is still passed; the question is not asked."""
    return Code(
        where, f"question.require(Point.{point})", f"__import__('archive.gates').gates.gate('{action}.{point}')"
    )


NO_ORDER = "no order of whole operations"
# Those of the default run first; each takes about a second.
EVERY_CHANGE = [
    Planted(
        "lock: an intake holds nothing",
        INTAKE_HOLD,
        Meeting((world.INTAKE, world.INTAKE_OTHER)),
        "no refusal",
    ),
    Planted(
        "lock, trigger and unique index: two revisions are promoted",
        Together(
            (
                MOVE_HOLD,
                Trigger("archive_note", "a_nslock"),
                Trigger("archive_lifecycle_event", "a_nslock"),
                Constraint("archive_note", "note_one_promoted_per_source"),
            )
        ),
        pair("promote", "promote"),
        "I3",
    ),
    Planted(
        "recheck: a decision is not asked about under the hold",
        unasked("archive.operations.transition:_move", "A1", "promote"),
        pair("promote", "grant withdrawal"),
        "I14",
    ),
    Planted(
        "lock: grants are carried over while they are withdrawn",
        Code("archive.operations.migration:_carry", '.select_for_update(of=("self",))', ""),
        pair("binding migration", "grant withdrawal"),
        NO_ORDER,
    ),
]
NOW_AND_THEN = [
    Planted(
        "lock, triggers and savepoint: a lost race is not judged again",
        Together(
            (
                INTAKE_HOLD,
                *(Trigger(table, "a_nslock") for table in WRITTEN),
                Code("archive.operations.intake:intake", "savepoint()", f"{LOOSE}savepoint()"),
            )
        ),
        Meeting((world.INTAKE, world.INTAKE_OTHER)),
        "no refusal",
    ),
    Planted("lock: a decision holds nothing", MOVE_HOLD, pair("promote", "promote"), "no refusal"),
    Planted(
        "lock: a recall holds nothing",
        Code("archive.operations.recall:recall", "shared(", f"{LOOSE}shared("),
        pair("revoke", "recall"),
        "no refusal",
    ),
    Planted(
        "lock: a migration holds nothing",
        Code("archive.operations.migration:migrate", "held(", f"{LOOSE}held("),
        pair("binding migration", "binding migration"),
        "no refusal",
    ),
    Planted(
        "recheck: a rebuild ends though its namespace moved on",
        Code(
            "archive.operations.rebuild:_passed",
            "        if namespace.row_version != begun.row_version:\n            return None\n        return _finish",
            "        return _finish",
        ),
        Meeting((world.REBUILD, world.REWORD)),
        "postings",
    ),
    Planted(
        "lock: withdrawals do not hold what they end",
        Code("archive.operations.host:withdraw", "standing.select_for_update()", "standing"),
        pair("grant withdrawal", "grant withdrawal"),
        "no refusal",
    ),
    Planted(
        "recheck: a withdrawal looks once",
        Code("archive.operations.host:withdraw", "while found", "if found"),
        pair("binding migration", "grant withdrawal"),
        NO_ORDER,
    ),
    Planted(
        "recheck: a recall is not asked about before it leaves",
        unasked("archive.operations.recall:recall", "A2", "recall"),
        pair("recall", "grant withdrawal"),
        "I14",
    ),
    Planted(
        "recheck: a resolution is not asked about at its door",
        Code("archive.operations.resolution:resolve", "question.require(Point.A0)", "None"),
        pair("resolve", "grant withdrawal"),
        "I14",
    ),
    Planted(
        "recheck: the binding is not compared under the hold",
        Code("archive.transactions:_admitted", "_compare(namespace, binding)", "None"),
        pair("intake-new", "binding migration"),
        # The rule of the table refuses what then follows; the service has no word for that.
        "sqlstate LY012",
    ),
    Planted(
        "recheck: a decision takes any version",
        Code("archive.operations.transition:_judge", "note.lifecycle_version != change.expected_version", "False"),
        pair("archive", "revoke"),
        "no answer of this operation",
    ),
    Planted(
        "recheck: a resolution takes what has been archived",
        Together(
            (
                Code("archive.selections:_source", "note.state != State.PROMOTED", "False"),
                Code("archive.selections:_source", "if not stands:", "if False:"),
            )
        ),
        pair("archive", "resolve"),
        NO_ORDER,
    ),
    Planted(
        "predicate: a request is the same whatever it brings",
        Code("archive.operations.intake:_admit", "canonical.same(request.request_digest, one.request_digest)", "True"),
        pair("intake-new", "intake-conflict"),
        "no answer of this operation",
    ),
    Planted(
        "predicate: a tombstone can be taken in again",
        Code("archive.operations.intake:_admit", "note.state == State.REVOKED", "False"),
        Meeting((world.INTAKE_AGAIN, world.REVOKE_2)),
        NO_ORDER,
    ),
    Planted(
        "predicate: two publications of one receipt",
        Code("archive.publication:publish", " ON CONFLICT (namespace_id, request_id) DO NOTHING", ""),
        pair("recall", "recall"),
        "no refusal",
    ),
    Planted(
        "trigger: words stay when their note leaves",
        Trigger("archive_note", "postings"),
        pair("revoke", "recall"),
        NO_ORDER,
    ),
]
FAULTS = [*EVERY_CHANGE, *(pytest.param(fault, marks=pytest.mark.slow) for fault in NOW_AND_THEN)]


def test_there_are_at_least_twenty():
    faults = [*EVERY_CHANGE, *NOW_AND_THEN]

    assert len({fault.name for fault in faults}) == len(faults) >= 20


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fence_that_is_gone_is_missed(crew, owner, tell, fault):
    judge = Judge(fault.meeting, crew, owner)
    whole = walk(judge, preemptions=1, name=f"{fault.meeting} with every fence")
    with fault.planting.planted():
        explored = walk(judge, name=f"without the {fault.name}")
    tell(explored)

    assert whole.bad == []
    assert explored.bad, "not found"
    why = explored.bad[0][1]
    assert fault.told in why, why
    assert not any(stumble in why for stumble in ("NameError", "AttributeError", "TypeError", "ImportError")), why
