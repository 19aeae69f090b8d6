import pytest

from tests.racing import world
from tests.racing.operations import JOINED
from tests.racing.pairs import Meeting, alone, meet
from tests.racing.world import (
    ARCHIVE_1,
    FLAG,
    INTAKE,
    INTAKE_AGAIN,
    INTAKE_ALIKE,
    INTAKE_BATCH,
    INTAKE_OTHER,
    MOVE_BATCH,
    PROMOTE_2,
    PROMOTE_3,
    REBUILD,
    RECALL,
    RECALL_REPLAY,
    REVIEW,
    REVOKE_1,
    REVOKE_2,
    REWORD,
    SECOND_PERSON,
)

PARTS = [value for value in vars(world).values() if isinstance(value, world.Part)]


def endings(*words: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    """Endings that no order of whole operations has."""
    return frozenset(words)


# Met between its door and its hold, a change of binding refuses: the caller came under the one before it.
OVERTAKEN = endings(*((word, "migrated, rebuild needed") for word in ("authority_refused", "binding_mismatch")))

# What the fences of an archive rest on, walked whole at every change; the pairs of the table are in test_every_pair.py.
EVERY_CHANGE = [
    Meeting((INTAKE, INTAKE_OTHER)),
    Meeting((INTAKE, INTAKE), begins=world.bare),
    Meeting((PROMOTE_2, PROMOTE_3)),
    Meeting((PROMOTE_2, PROMOTE_2)),
    Meeting((RECALL, REVOKE_1)),
    Meeting((RECALL, RECALL), JOINED),
    Meeting((INTAKE, INTAKE_ALIKE)),
    Meeting((INTAKE_AGAIN, REVOKE_2)),
    Meeting((PROMOTE_2, REVOKE_2)),
    Meeting((FLAG, REVOKE_1)),
    Meeting((PROMOTE_2, SECOND_PERSON)),
    Meeting((REVIEW, REVOKE_2)),
    Meeting((REBUILD, PROMOTE_2)),
    Meeting((REBUILD, RECALL), endings(("rebuilt 1", "capability_not_ready"))),
    Meeting((REBUILD, REBUILD)),
]
NOW_AND_THEN = [
    Meeting((INTAKE, PROMOTE_2)),
    Meeting((INTAKE, ARCHIVE_1)),
    Meeting((INTAKE, REVOKE_1)),
    Meeting((INTAKE, INTAKE_BATCH)),
    Meeting((MOVE_BATCH, PROMOTE_3)),
    Meeting((INTAKE, INTAKE_OTHER), begins=world.bare),
    Meeting((INTAKE_BATCH, INTAKE_BATCH)),
    Meeting((MOVE_BATCH, MOVE_BATCH)),
    Meeting((RECALL_REPLAY, REVOKE_1)),
    Meeting((REVIEW, ARCHIVE_1)),
    Meeting((RECALL, REWORD), OVERTAKEN),
    Meeting((PROMOTE_2, REWORD), OVERTAKEN),
    Meeting((REBUILD, REWORD)),
]
MEETINGS = [*EVERY_CHANGE, *(pytest.param(meeting, marks=pytest.mark.slow) for meeting in NOW_AND_THEN)]


def test_each_operation_alone_passes_its_gates_in_order(crew, owner):
    passed = {part.name: tuple(alone(part, crew, part.ground(owner))) for part in PARTS}

    assert passed == {part.name: part.gates for part in PARTS}


@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_every_schedule_ends_as_one_order_of_the_two_does(crew, owner, tell, meeting):
    explored = meet(meeting, crew, owner)
    tell(explored)
    explored.require_good()
    explored.require_meeting()
