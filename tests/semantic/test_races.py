"""Every order in which two acts of derivation and recall by meaning can meet, one turn at a time."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.racing import Explored, explore
from tests.semantic.scenes import (
    ARCHIVE,
    CLAIM,
    COMPLETE,
    DERIVED,
    FAIL,
    PREFLIGHT,
    PROMOTE,
    PUBLISH,
    PUBLISH_OTHER,
    RECALLED,
    RESOLVE,
    RETIRE,
    RETRY,
    REVOKE,
    Judge,
    Meeting,
    endings,
)


def each_with(words: Iterable[str], ended: str) -> frozenset[tuple[str, ...]]:
    """Every one of these endings beside a change that was made."""
    return endings(*((word, ended) for word in words))


CLAIMED_TWICE = endings(
    ("complete", "complete"), ("complete", "derivation_not_claimable"), ("derivation_not_claimable", "complete")
)
# Before the claim, between claim and completion, after it.
INVALIDATED = ("derivation_invalidated", "attempt_fenced", "complete")

MEETINGS = [
    Meeting((CLAIM, CLAIM), CLAIMED_TWICE),
    Meeting((CLAIM, RETIRE), each_with(("generation_retired", "attempt_fenced", "complete"), "retired")),
    Meeting((CLAIM, REVOKE), each_with(INVALIDATED, "revoked")),
    Meeting((CLAIM, ARCHIVE), each_with(INVALIDATED, "archived")),
    Meeting((CLAIM, PROMOTE), each_with(INVALIDATED, "promoted")),
    Meeting((COMPLETE, REVOKE), each_with(INVALIDATED, "revoked")),
    Meeting((COMPLETE, RETIRE), each_with(("generation_retired", "attempt_fenced", "complete"), "retired")),
    Meeting(
        (COMPLETE, RETRY),
        endings(
            *(("complete", found) for found in ("found prepared", "found complete")),
            ("attempt_fenced", "complete"),
        ),
    ),
    Meeting(
        (FAIL, RETRY),
        endings(
            *(("embedding_timeout", found) for found in ("found prepared", "found failed", "complete")),
            # Looked while it ran, and let go of before the retry came to claim it.
            ("embedding_timeout", "derivation_not_claimable"),
        ),
    ),
    Meeting((PREFLIGHT, RETIRE), each_with(("lease_unavailable", "generation_retired"), "retired"), DERIVED, leases=0),
    Meeting(
        (PUBLISH, PUBLISH),
        endings(
            *(pair for word in ("joined 1", "replayed 1") for pair in (("published 1", word), (word, "published 1")))
        ),
        DERIVED,
    ),
    Meeting(
        (PUBLISH, PUBLISH_OTHER),
        endings(("published 1", "request_conflict"), ("request_conflict", "published 1")),
        DERIVED,
    ),
    Meeting((PUBLISH, RETIRE), each_with(("published 1", "generation_retired"), "retired"), DERIVED),
    Meeting((PUBLISH, PROMOTE), each_with(("published 1", "published 0"), "promoted"), DERIVED),
    Meeting((PUBLISH, REVOKE), each_with(("published 1", "published 0"), "revoked"), DERIVED),
    Meeting((PUBLISH, COMPLETE), each_with(("published 1", "published 0"), "complete")),
    Meeting((RESOLVE, REVOKE), each_with(("resolved", "selection_stale"), "revoked"), RECALLED),
    Meeting((RESOLVE, PROMOTE), each_with(("resolved", "selection_stale"), "promoted"), RECALLED),
    Meeting((RESOLVE, RETIRE), each_with(("resolved", "generation_retired"), "retired"), RECALLED),
]


def met(meeting: Meeting, crew: Any, owner: Any, settings: Any, **more: Any) -> Explored:
    """Walk every schedule of a meeting."""
    judge = Judge(meeting, crew, owner, settings)
    return explore(crew, str(meeting), judge.stage, judge.judge, **more)


@pytest.mark.parametrize("meeting", MEETINGS, ids=str)
def test_every_schedule_of_two_ends_as_one_of_the_few_ways_that_may_be(crew, owner, settings, meeting):
    explored = met(meeting, crew, owner, settings)

    explored.require_good()
    explored.require_meeting()
    # Everything that may be was seen to be, else the list would allow what never happens.
    assert explored.finals == meeting.endings
