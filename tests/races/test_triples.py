"""Three that meet, with at most two of them made to stand back: nearly everything a third one can break (G2)."""

import pytest

from tests.racing import operations, world
from tests.racing.operations import named
from tests.racing.pairs import meet
from tests.racing.world import INTAKE, withdrawal

TRIPLES = [
    operations.together(
        (named("intake-new"), named("intake-new"), named("intake-new")),
        (INTAKE, INTAKE, INTAKE),
        "intake x intake x intake of one identity",
    ),
    operations.together(
        (named("promote"), named("promote"), named("revoke")),
        (world.PROMOTE_2, world.PROMOTE_3, world.REVOKE_1),
        "promote x promote x revoke of one source",
    ),
    # The last boundary: what was committed under the old policy is withheld once the permission is gone.
    operations.together(
        (named("binding migration"), named("intake-new"), named("grant withdrawal")),
        (world.MIGRATE, INTAKE, withdrawal(*operations.INTAKES)),
        "policy change x intake x final boundary",
    ),
    operations.together(
        (named("revoke"), named("recall"), named("resolve")),
        (world.REVOKE_1, world.RECALL, world.RESOLVE_ASKED),
        "revoke x recall x resolve",
    ),
    operations.together(
        (named("intake-new"), named("revoke"), named("intake-new")),
        (INTAKE, world.REVOKE_NEW, world.INTAKE_ALIKE),
        "intake x revoke x intake of it again",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("meeting", TRIPLES, ids=str)
def test_three_that_meet_end_as_one_order_of_them_does(crew, owner, tell, meeting):
    explored = meet(meeting, crew, owner, preemptions=2)
    tell(explored)
    explored.require_good()
    explored.require_meeting()
