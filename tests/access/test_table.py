"""Each cell of the table, taken through its own door: what is met, what is shown, and that a no leaves no trace.

R-L-014, 015, 031, 037, 038; RELIABILITY 2.7: a refusal has a status and a code of the closed list, is equal to the byte
to any other of its kind but for the correlation id, has read nothing of the archive, and changed no row of any table.
"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.access import doors, table
from tests.access.ground import SECRET, Ground
from tests.access.table import ENTRANCES, Entrance

REFUSED = ("-", "?", "namespace_not_served")
"""These come before the first read of the archive."""


TELLING = ("anonymous", "charlie", "inspector", "root")
"""The roles by which the lists of the admin are judged every day; `make test-slow` takes them as every other, too."""


def _cell(entrance: Entrance, role: str) -> object:
    marks = [pytest.mark.slow] if entrance.door == "admin" and role not in TELLING else []
    return pytest.param(entrance, role, marks=marks, id=f"{entrance}-{role}")


@pytest.mark.parametrize(("entrance", "role"), [_cell(one, role) for one in ENTRANCES for role in table.ROLES.values()])
def test_a_role_meets_what_the_table_says(here: Ground, entrance: Entrance, role: str) -> None:
    keeps_a_session = entrance.address in ("sign-out", "ns/<key:ns>/notes/<uuid:note_id>/later")
    tables = ("archive_", "lychd_", "semantic_") if keeps_a_session else ()
    before = here.digest(*tables)
    archive = [name for name in before if name.startswith(("archive_", "semantic_"))]
    done = []
    for state in table.STATES if entrance.in_namespace else ("own",):
        expected = entrance.expected(role, state)
        if expected == "+" and not entrance.reads:
            done.append(state)
            continue
        here.sent.clear()
        with CaptureQueriesContext(connection) as asked:
            met = doors.take(entrance, role, here, here.places[state])
        assert met.outcome == expected, f"{role} in {state}: {met.shown}"
        if expected == "+":
            continue
        assert SECRET not in met.shown, state
        assert "Tulips" not in met.shown, state
        # One refusal of a kind is every refusal of that kind; a page names who is signed in, and no more.
        kind = (entrance.door, met.outcome, "" if entrance.door != "page" else str(role == "anonymous"))
        assert met.alike == here.bodies.setdefault(kind, met.alike), state
        if expected in REFUSED and entrance.signs[role] != "~":
            touched = [one["sql"] for one in asked if any(name in one["sql"] for name in archive)]
            assert touched == [], state
        assert here.sent == [], state
    assert here.digest(*tables) == before, "a refusal or a read changed a row"

    for state in done:
        met = doors.take(entrance, role, here, here.fresh(state) if entrance.in_namespace else here.places[state])
        assert met.outcome == "+", f"{role} in {state}: {met.shown}"


def test_the_table_has_every_role_and_state_and_somebody_allowed_at_each_entrance() -> None:
    for entrance in ENTRANCES:
        assert set(entrance.signs) == set(table.ROLES.values())
        allowed = {role for role in entrance.signs if entrance.signs[role] == "+"}
        if entrance.in_namespace:
            assert allowed, entrance
            # Whatever a superuser, a stale grant or a grant elsewhere is worth: nothing (R-L-014).
            assert allowed <= set(table.GRANTED), entrance
            assert not any(char.isspace() for char in entrance.changed + entrance.absent)
