"""Principals, grants and tokens: the host's own acts, each row naming the host, each secret shown once."""

import json

import pytest
from django.contrib.auth import get_user_model

from archive.models import Grant, Token
from archive.operations.host import digest_of_secret, host_actor
from tests import cast
from tests.cast import GARDEN


def test_a_principal_is_added_linked_disabled_and_enabled(lychd):
    get_user_model().objects.create_user("ada")
    assert lychd("principal", "add", "ada", "--user", "ada", "--json").document["principal"]["user"] == "ada"
    assert lychd("principal", "disable", "ada", "--json").document["principal"]["active"] is False
    assert "no" in lychd("principal", "list").out
    assert lychd("principal", "enable", "ada", "--json").document["principal"]["active"] is True
    assert [one["subject"] for one in lychd("principal", "list", "--json").document["items"]] == ["ada"]


def test_a_principal_that_cannot_be_is_refused(lychd):
    assert lychd("principal", "add", "a b").code == 2
    assert lychd("principal", "add", "ada", "--user", "nobody").code == 2
    assert lychd("principal", "disable", "nobody", "--json").document["code"] == "record_absent"


def test_a_disabled_principal_is_refused_everything(lychd, alice):
    cast.admitted(alice)
    assert lychd("principal", "disable", "alice").code == 0
    assert lychd("notes", "--as", "alice", "--namespace", GARDEN).code == 2


def test_grants_are_given_listed_and_withdrawn(lychd, garden):
    given = lychd("grant", "give", "charlie", "writer", "recall", "--json")
    assert given.document["given"] == ["flag", "intake", "list_own_intakes", "recall"]
    assert lychd("grant", "give", "charlie", "writer", "--json").document["given"] == []
    assert set(Grant.objects.filter(subject="charlie").values_list("granted_by", flat=True)) == {host_actor()}

    listed = lychd("grant", "list", "--subject", "charlie", "--json").document["items"]
    assert [one["action"] for one in listed] == ["flag", "intake", "list_own_intakes", "recall"]
    assert "charlie" in lychd("grant", "list", "--namespace", GARDEN).out

    assert lychd("grant", "withdraw", "charlie", "writer", "--json").document["withdrawn"] == 3
    assert [one["action"] for one in lychd("grant", "list", "--subject", "charlie", "--json").document["items"]] == [
        "recall"
    ]


def test_a_grant_may_end(lychd, garden):
    lychd("grant", "give", "charlie", "recall", "--until", "2199-01-01T00:00:00+02:00")
    (grant,) = lychd("grant", "list", "--subject", "charlie", "--json").document["items"]
    assert grant["valid_until"] == "2198-12-31T22:00:00.000000Z"
    assert lychd("grant", "give", "charlie", "recall", "--until", "2001-01-01T00:00:00Z").code == 2


@pytest.mark.parametrize("arguments", [("charlie", "king"), ("nobody", "writer")], ids=" ".join)
def test_a_grant_of_or_to_nothing_is_refused(lychd, garden, arguments):
    assert lychd("grant", "give", *arguments, "--json").document["code"] == "invalid_request"


def test_a_grant_in_a_namespace_that_is_not_served_is_refused(lychd, garden):
    ran = lychd("grant", "give", "charlie", "writer", "--namespace", "desert", "--json")
    assert (ran.code, ran.document["code"]) == (2, "namespace_not_served")


def test_a_token_is_shown_once(lychd, garden):
    made = lychd("token", "create", "bob", "--name", "desk", "--days", 3, "--json").document
    token = Token.objects.get()
    assert digest_of_secret(made["secret"]) == token.digest
    assert token.created_by == host_actor()

    listed = lychd("token", "list", "--json")
    assert [one["prefix"] for one in listed.document["items"]] == [made["token"]["prefix"]]
    assert made["secret"] not in listed.out + lychd("token", "list").out


def test_a_token_on_the_screen_comes_first_and_alone(lychd, garden):
    lines = lychd("token", "create", "bob").out.splitlines()
    assert lines[0].startswith("lychd_")
    assert Token.objects.get().digest == digest_of_secret(lines[0])


def test_a_token_is_for_the_namespaces_that_it_names(lychd, garden):
    def made(*words):
        return lychd("token", "create", "bob", *words, "--json")

    assert made().document["token"]["namespaces"] == [GARDEN]
    cast.plant("shed")
    assert made().code == 64
    first = made("--namespace", "shed", "--namespace", GARDEN, "--namespace", "shed").document["token"]
    assert first["namespaces"] == [GARDEN, "shed"]
    assert lychd("token", "rotate", first["prefix"], "--json").document["token"]["namespaces"] == [GARDEN, "shed"]
    ran = made("--namespace", "desert")
    assert (ran.code, ran.document["code"]) == (2, "namespace_not_served")
    assert made("--all-namespaces").document["token"]["namespaces"] == ["*"]
    assert Token.objects.filter(namespaces=None).count() == 1
    assert "every namespace" in lychd("token", "create", "bob", "--all-namespaces").out
    listed = lychd("token", "list").out
    assert "garden, shed" in listed
    assert " * " in listed


def test_a_token_is_rotated_and_revoked(lychd, garden):
    first = lychd("token", "create", "bob", "--json").document
    second = lychd("token", "rotate", first["token"]["prefix"], "--overlap", 60, "--json").document
    assert second["secret"] != first["secret"]
    old, new = Token.objects.order_by("id")
    assert old.expires_at < new.expires_at

    revoked = lychd("token", "revoke", second["token"]["prefix"], "--json").document
    assert revoked["token"]["revoked_at"] is not None
    assert lychd("token", "revoke", second["token"]["prefix"]).code == 2


def test_tokens_have_an_owner_and_a_bounded_life(lychd, garden):
    assert lychd("token", "create", "nobody").code == 2
    assert lychd("token", "create", "bob", "--days", 366).code == 2
    assert Token.objects.count() == 0


def test_no_option_takes_a_secret(lychd):
    for words in (["token", "create"], ["init"], ["principal", "add"]):
        said = lychd(*words, "--help").out
        assert "--password " not in said
        assert "--secret" not in said


def test_lists_of_nothing_say_what_to_do(lychd):
    for words in (["principal", "list"], ["token", "list"], ["grant", "list"], ["namespace", "list"]):
        ran = lychd(*words)
        assert (ran.code, len(ran.out.splitlines())) == (0, 1)
        assert json.loads(lychd(*words, "--json").out) == {"items": []}
