"""What a namespace is served under today, for whoever may know it."""

import pytest

from archive.operations import host
from tests import cast

PAGE = f"/ns/{cast.GARDEN}/configuration"


def test_the_binding_and_the_rules_are_told(garden, inspector):
    told = inspector.get(PAGE).content.decode().replace("<wbr>", "")
    for value in (cast.OWNER, cast.POLICY, garden.binding.digest, "postgres-bm25@1", "not asked for"):
        assert value in told
    assert "lychd namespace configure garden --owner OWNER" in told


def test_a_second_person_and_what_is_configured_next_are_told_and_nothing_of_what_is_retained(nursery, inspector):
    moved = host.configure_namespace(
        cast.GARDEN, owner="heirs", policy_revision=cast.POLICY, by="host:tests", second_person=True
    )
    host.grant("ivy", moved, host.actions_of(["inspector"]), by="host:tests")
    answer = inspector.get(PAGE)
    assert answer.status_code == 200
    assert "heirs" in answer.content.decode()
    assert cast.OWNER not in answer.content.decode()
    assert "nobody promotes what they took in themselves" in answer.content.decode()


@pytest.mark.parametrize("who", ["alice", "bob", "charlie", "stranger"])
def test_whoever_may_not_discover_it_is_refused(nursery, sign_in, who):
    assert sign_in(who).get(PAGE).status_code == 403
