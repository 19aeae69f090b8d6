"""Under another authorizer nobody needs a grant row: what is served says where to look, and the authorizer who may."""

from collections.abc import Sequence

import pytest

from archive.authority import Action, AuthorityQuestion
from archive.models import Grant
from archive.operations import host
from archive.refusals import AuthorityRefused
from inspection import discovery
from inspection.namespaces import choose
from tests import cast


class Keeper:
    """Lets zoe do everything in two namespaces, and nobody anything else."""

    def decide_many(self, questions: Sequence[AuthorityQuestion]) -> Sequence[bool]:
        return [one.subject == "zoe" and one.namespace in ("orchard", "zoo") for one in questions]


@pytest.fixture
def zoe(garden, sign_in, settings):
    for key in ("orchard", "zoo", *(f"plot-{number:03}" for number in range(120))):
        host.configure_namespace(key, owner=cast.OWNER, policy_revision=cast.POLICY, by="host:tests")
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "authorizer": "tests.pages.test_another_authorizer.Keeper"}
    client = sign_in("zoe")
    assert not Grant.objects.filter(subject="zoe").exists()
    return client


def test_discovery_finds_what_is_served_and_allowed_beyond_the_first_page(zoe):
    told = discovery.configuration("zoe")["bindings"]
    assert [one["namespace"] for one in told] == ["orchard", "zoo"]
    assert choose("zoe", limit=100).keys == ("orchard", "zoo")


@pytest.mark.parametrize("address", ["/", "/ns/zoo", "/admin/", "/admin/archive/note/", "/ns/orchard/settings"])
def test_its_pages_open(zoe, address):
    answer = zoe.get(address, follow=True)
    assert answer.status_code == 200
    assert "plot-" not in answer.content.decode()


def test_grant_rows_say_nothing_there(zoe, sign_in):
    """Alice holds grants in the garden, which this authorizer does not know."""
    assert choose("alice", limit=100).keys == ()
    with pytest.raises(AuthorityRefused):
        discovery.configuration("alice")
    for address in ("/", "/admin/"):
        assert sign_in("alice").get(address, follow=True).status_code == 403


def test_a_namespace_that_is_not_served_is_not_asked_about(zoe):
    host.disable_namespace("zoo", by="host:tests")
    assert choose("zoe", limit=100).keys == ("orchard",)


def test_the_choice_is_made_by_every_action(zoe, settings, monkeypatch):
    monkeypatch.setattr(Keeper, "decide_many", lambda self, asked: [one.action == Action.FLAG for one in asked])
    assert len(choose("zoe", limit=100).keys) == 100
