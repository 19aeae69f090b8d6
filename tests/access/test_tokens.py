"""A token opens the namespaces that it names, whatever its subject is granted elsewhere (0.17, S-368)."""

from dataclasses import replace
from typing import Final

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from archive.operations import host
from tests.access import doors, table
from tests.access.ground import Ground
from tests.access.table import ENTRANCES, Entrance

INSIDE: Final = [one for one in ENTRANCES if one.door == "api" and one.in_namespace]
ELSEWHERE: Final = "somewhere-else"


def coming_by(ground: Ground, role: str, namespaces: list[str]) -> Ground:
    """The same ground, on which a role comes by a token for these namespaces."""
    issued = host.issue_token(role, by="host:tests", namespaces=namespaces)
    ground.owner.execute("UPDATE lychd_token SET last_used_at = clock_timestamp() WHERE id = %s", [issued.token.id])
    return replace(ground, secrets={**ground.secrets, role: issued.secret})


@pytest.mark.parametrize("entrance", INSIDE, ids=str)
def test_no_address_of_the_api_opens_to_a_token_for_elsewhere(here: Ground, entrance: Entrance) -> None:
    role = next(role for role in table.GRANTED if entrance.signs[role] == "+")
    foreign = coming_by(here, role, [ELSEWHERE])
    seen = []
    for state in table.STATES:
        with CaptureQueriesContext(connection) as asked:
            met = doors.take(entrance, role, foreign, here.places[state])
        assert met.outcome == "-", f"{state}: {met.shown}"
        assert not [one["sql"] for one in asked if "archive_" in one["sql"] or "semantic_" in one["sql"]], state
        seen.append((met.alike, len(asked)))
    # Nothing is looked for, so nothing tells what there is.
    assert len(set(seen)) == 1
    assert seen[0][0] == doors.take(entrance, "charlie", here, here.places["own"]).alike


@pytest.mark.parametrize("entrance", [one for one in INSIDE if one.reads], ids=str)
def test_a_token_for_this_namespace_opens_what_its_subject_may(here: Ground, entrance: Entrance) -> None:
    role = next(role for role in table.GRANTED if entrance.signs[role] == "+")
    place = here.places["own"]
    assert doors.take(entrance, role, coming_by(here, role, [ELSEWHERE, place.key]), place).outcome == "+"
    # It is no grant: whoever may not, may not with it.
    stranger = coming_by(here, "charlie", [place.key])
    assert doors.take(entrance, "charlie", stranger, place).outcome == "-"
