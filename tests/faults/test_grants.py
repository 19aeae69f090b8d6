"""Each half of what makes a grant hold, alone."""

import pytest

from archive.authority import Action
from archive.operations import host
from archive.refusals import AuthorityRefused
from tests import cast


def refused(garden) -> bool:
    try:
        cast.asked(garden.caller("bob"))
    except AuthorityRefused:
        return True
    return False


@pytest.fixture
def shelf(garden, alice):
    """A namespace with something to recall, and bob who may."""
    cast.promoted(alice)
    assert not refused(garden)
    return garden


def changed(superuser, change: str) -> None:
    superuser.execute("SET session_replication_role = replica")
    superuser.execute(f"UPDATE lychd_grant SET {change} WHERE subject = 'bob' AND action = 'recall'")


def test_a_grant_that_was_withdrawn_holds_no_more(shelf):
    host.withdraw("bob", shelf.binding.namespace, [Action.RECALL])

    assert refused(shelf)


def test_a_grant_that_has_run_out_holds_no_more(shelf, superuser):
    changed(superuser, "valid_until = clock_timestamp() - interval '1 second'")

    assert refused(shelf)


def test_a_grant_that_has_not_begun_does_not_hold_yet(shelf, superuser):
    changed(superuser, "valid_from = clock_timestamp() + interval '1 hour'")

    assert refused(shelf)


def test_a_principal_that_is_switched_off_holds_nothing(shelf):
    bob = shelf.caller("bob")
    host.set_active("bob", active=False)

    with pytest.raises(AuthorityRefused):
        cast.asked(bob)
