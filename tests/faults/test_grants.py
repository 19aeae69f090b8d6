"""Each half of what makes a grant hold, alone."""

import pytest

from archive.authority import Action, Point, decide
from archive.operations import host
from archive.refusals import AuthorityRefused
from tests import cast


@pytest.fixture(params=["alone", "among others"])
def refused(request, garden):
    """Whether bob may not recall, asked as an operation asks, or as a batch asks about many."""
    bob = garden.caller("bob")

    def alone() -> bool:
        try:
            cast.asked(bob)
        except AuthorityRefused:
            return True
        return False

    def among_others() -> bool:
        asked = [bob.asks(action, about="0" * 64).asked for action in (Action.RECALL, Action.INSPECT_METADATA)]
        return not decide(asked, Point.A1)[0]

    return alone if request.param == "alone" else among_others


@pytest.fixture
def shelf(garden, alice, refused):
    """A namespace with something to recall, and bob who may."""
    cast.promoted(alice)
    assert not refused()
    return garden


def changed(superuser, change: str) -> None:
    superuser.execute("SET session_replication_role = replica")
    superuser.execute(f"UPDATE lychd_grant SET {change} WHERE subject = 'bob' AND action = 'recall'")


def test_a_grant_that_was_withdrawn_holds_no_more(shelf, refused):
    host.withdraw("bob", shelf.binding.namespace, [Action.RECALL])

    assert refused()


def test_a_grant_that_has_run_out_holds_no_more(shelf, refused, superuser):
    changed(superuser, "valid_until = clock_timestamp() - interval '1 second'")

    assert refused()


def test_a_grant_that_has_not_begun_does_not_hold_yet(shelf, refused, superuser):
    changed(superuser, "valid_from = clock_timestamp() + interval '1 hour'")

    assert refused()


def test_a_principal_that_is_switched_off_holds_nothing(shelf, refused):
    host.set_active("bob", active=False)

    assert refused()
