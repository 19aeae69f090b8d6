"""Three acts at once, in every order in which at most twice somebody stands back who could have gone on."""

from itertools import permutations

import pytest

from tests.racing.exploration import explore
from tests.semantic.scenes import (
    CLAIM,
    COMPLETE,
    DERIVED,
    PUBLISH,
    RECALL_WORDS,
    RECALLED,
    RESOLVE,
    RESOLVE_WORDS,
    RETIRE,
    RETRY,
    REVOKE,
    Judge,
    Meeting,
    endings,
)

PREEMPTIONS = 2

GONE = ("derivation_invalidated", "attempt_fenced", "complete")
CLAIMED_AT_ONCE = {
    words
    for others in (
        ("complete", "complete"),
        ("complete", "derivation_not_claimable"),
        ("derivation_not_claimable",) * 2,
    )
    for words in permutations(("complete", *others))
}

TRIPLES = [
    Meeting((CLAIM, CLAIM, CLAIM), endings(*CLAIMED_AT_ONCE)),
    Meeting(
        (COMPLETE, RETRY, REVOKE),
        endings(
            *((word, "found prepared", "revoked") for word in GONE),
            *((word, found, "revoked") for word in ("complete",) for found in ("found complete", "found invalidated")),
            ("derivation_invalidated", "found invalidated", "revoked"),
            *(("attempt_fenced", word, "revoked") for word in ("found invalidated", "found held", *GONE)),
        ),
    ),
    Meeting(
        (PUBLISH, PUBLISH, RETIRE),
        endings(
            *(
                (*words, "retired")
                for other in ("joined 1", "replayed 1")
                for words in permutations(("published 1", other))
            ),
            ("generation_retired", "generation_retired", "retired"),
        ),
        DERIVED,
    ),
    Meeting(
        (RETIRE, COMPLETE, PUBLISH),
        endings(
            *(
                ("retired", word, seen)
                for word in ("generation_retired", "attempt_fenced", "complete")
                for seen in ("generation_retired", "published 0")
            ),
            ("retired", "complete", "published 1"),
        ),
    ),
    Meeting(
        (REVOKE, PUBLISH, RESOLVE),
        endings(
            *(
                ("revoked", seen, told)
                for seen in ("published 0", "published 1")
                for told in ("resolved", "selection_stale")
            )
        ),
        RECALLED,
    ),
    Meeting(
        (REVOKE, RECALL_WORDS, RESOLVE_WORDS),
        endings(
            *(
                ("revoked", seen, told)
                for seen in ("published 0", "published 1")
                for told in ("resolved", "selection_stale")
            )
        ),
        RECALLED,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("meeting", TRIPLES, ids=str)
def test_every_schedule_of_three_ends_as_one_of_the_few_ways_that_may_be(crew, owner, settings, meeting):
    judge = Judge(meeting, crew, owner, settings)

    explored = explore(crew, str(meeting), judge.stage, judge.judge, preemptions=PREEMPTIONS)

    explored.require_good()
    explored.require_meeting()
    assert explored.finals == meeting.endings
