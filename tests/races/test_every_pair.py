"""Every two operations of the table in tests/racing/operations.py, met in every order (the race matrix)."""

import pytest

from tests.racing import operations
from tests.racing.operations import OPERATIONS, PAIRS, QUIET
from tests.racing.pairs import Meeting, meet


def met(explored, meeting: Meeting) -> None:
    explored.require_good()
    if tuple(str(meeting).split(" x ")) in QUIET:
        explored.require_quiet()
    else:
        explored.require_meeting()


def test_every_operation_meets_every_other_and_itself():
    count = len(OPERATIONS)

    assert len({str(meeting) for meeting in PAIRS}) == len(PAIRS) == count * (count + 1) // 2
    named = {(first.name, second.name) for first in OPERATIONS for second in OPERATIONS}
    assert operations.CLOSER.keys() | QUIET.keys() <= named


@pytest.mark.parametrize("meeting", PAIRS, ids=str)
def test_a_pair_of_which_one_is_interrupted_once_ends_as_one_order_does(crew, owner, tell, meeting):
    explored = meet(meeting, crew, owner, preemptions=1, name=f"{meeting}, interrupted once")
    tell(explored)
    met(explored, meeting)


@pytest.mark.slow
@pytest.mark.parametrize("meeting", PAIRS, ids=str)
def test_every_schedule_of_a_pair_ends_as_one_order_does(crew, owner, tell, meeting):
    explored = meet(meeting, crew, owner)
    tell(explored)
    met(explored, meeting)
