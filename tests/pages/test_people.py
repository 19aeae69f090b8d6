"""Who may do what: shown to whoever may grant, changed by a second POST, and never a way into another namespace."""

import re

import pytest
from django.test import Client

from archive import gates
from archive.authority import Action
from archive.models import Grant, Role, Token
from archive.models.columns import CLOCK
from archive.operations import host, management
from archive.refusals import AuthorityRefused, RecordAbsent
from tests import cast
from tests.pages.test_nothing_changes import Markup, rows

NS = f"/ns/{cast.GARDEN}/people"
CHANGES = {
    "grant": {"subject": "charlie", "role": "recaller"},
    "withdraw": {"subject": "bob", "role": "recaller"},
    "token": {"subject": "bob", "name": "laptop", "days": "30"},
    "token-end": {"prefix": ""},
}


@pytest.fixture
def manager(sign_in) -> Client:
    """Otto's browser: he operates, and so he grants."""
    return sign_in("otto")


@pytest.fixture
def prefix(garden) -> str:
    """A live token of bob."""
    return host.issue_token("bob", by="host:tests").token.prefix


def asked(what, prefix, **more):
    fields = {**CHANGES[what], **({"prefix": prefix} if what == "token-end" else {})}
    return {**fields, **more}


def held(subject):
    return set(Grant.current().filter(subject=subject, namespace_key=cast.GARDEN).values_list("action", flat=True))


def test_the_page_says_who_holds_what_and_comes_by_which_token(prefix, manager):
    page = manager.get(NS)
    told = page.content.decode()
    people = {one.subject: one for one in page.context["shown"].people}
    assert set(people) == {"alice", "bob", "ivy", "otto", "wanda"}
    assert people["alice"].roles == ("curator", "recaller", "writer")
    assert people["bob"].roles == ("recaller",)
    assert prefix in told
    digest = Token.objects.get(prefix=prefix).digest
    assert digest not in told


def test_actions_beyond_whole_roles_are_named(garden, manager):
    host.grant("charlie", garden.binding, [Action.REVIEW], by="host:tests")
    people = {one.subject: one for one in manager.get(NS).context["shown"].people}
    assert (people["charlie"].roles, people["charlie"].beyond_roles) == ((), ("review",))


@pytest.mark.parametrize("who", ["alice", "ivy", "charlie", "stranger"])
def test_whoever_may_not_grant_sees_nobody_and_changes_nothing(prefix, sign_in, owner, who):
    client = sign_in(who)
    before = rows(owner)
    answer = client.get(NS)
    assert answer.status_code == 403
    assert "wanda" not in answer.content.decode()
    for what in CHANGES:
        for confirmed in ({}, {"confirmed": "yes"}):
            assert client.post(f"{NS}/{what}", asked(what, prefix, **confirmed)).status_code == 403, what
    assert rows(owner) == before


@pytest.mark.parametrize("what", CHANGES)
def test_the_first_post_only_shows_and_the_second_one_changes(prefix, manager, owner, what):
    before = rows(owner)
    first = manager.post(f"{NS}/{what}", asked(what, prefix))
    told = first.content.decode()
    assert first.status_code == 200
    assert rows(owner) == before
    markup = Markup()
    markup.feed(told)
    assert markup.faults == []

    form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', told))
    second = manager.post(f"{NS}/{what}", form)
    assert second.status_code == (200 if what == "token" else 302)
    changed = {name for name, digest in rows(owner).items() if digest != before[name]}
    assert (
        changed
        == {
            "grant": {"lychd_grant"},
            "withdraw": {"lychd_grant"},
            "token": {"lychd_token"},
            "token-end": {"lychd_token"},
        }[what]
    )


def test_a_change_takes_post_alone(prefix, manager, owner):
    before = rows(owner)
    for what in CHANGES:
        answer = manager.get(f"{NS}/{what}", asked(what, prefix, confirmed="yes"))
        assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert rows(owner) == before


def test_a_role_is_given_for_some_days_and_names_who_gave_it(garden, manager):
    manager.post(f"{NS}/grant", asked("grant", "", days="7", confirmed="yes"))
    assert held("charlie") == set(Role.objects.get(name="recaller").actions)
    grants = Grant.objects.filter(subject="charlie")
    assert {grant.granted_by for grant in grants} == {"otto"}
    assert all(6 <= (grant.valid_until - grant.valid_from).days <= 7 for grant in grants)


def test_a_withdrawn_role_is_felt_at_once(garden, manager):
    manager.post(f"{NS}/withdraw", asked("withdraw", "", confirmed="yes"))
    assert held("bob") == set()


def test_a_token_is_shown_once_and_works(garden, manager):
    page = manager.post(f"{NS}/token", asked("token", "", confirmed="yes"))
    secret = page.context["secret"]
    assert secret in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    token = Token.objects.get(digest=host.digest_of_secret(secret))
    assert (token.principal.subject, token.name, token.created_by) == ("bob", "laptop", "otto")
    assert secret not in manager.get(NS).content.decode()


def test_a_token_that_opens_a_foreign_namespace_too_is_the_hosts_affair(prefix, manager, otto):
    other = host.configure_namespace("orchard", owner="neighbour", policy_revision="p", by="host:tests")
    host.grant("bob", other, host.actions_of(["recaller"]), by="host:tests")
    before = Token.objects.count()
    told = manager.get(NS).content.decode()
    assert "lychd token create bob" in told
    for what in ("token", "token-end"):
        assert manager.post(f"{NS}/{what}", asked(what, prefix, confirmed="yes")).status_code == 403
    assert Token.objects.count() == before
    assert Token.objects.filter(prefix=prefix, revoked_at__isnull=True).exists()

    host.grant("otto", other, host.actions_of(["operator"]), by="host:tests")
    assert management.issue(otto, "bob").secret


def test_nobody_gets_a_token_for_a_subject_without_a_grant_here(garden, otto):
    other = host.configure_namespace("orchard", owner="neighbour", policy_revision="p", by="host:tests")
    host.grant("charlie", other, host.actions_of(["recaller"]), by="host:tests")
    with pytest.raises(AuthorityRefused):
        management.issue(otto, "charlie")
    theirs = host.issue_token("charlie", by="host:tests").token
    with pytest.raises(RecordAbsent):
        management.end_token(otto, theirs.prefix)


@pytest.mark.parametrize(
    ("act", "action"),
    [
        (lambda otto: management.people(otto), Action.GRANT),
        (lambda otto: management.give(otto, "charlie", ["recaller"]), Action.GRANT),
        (lambda otto: management.withdraw(otto, "bob", ["recaller"]), Action.GRANT),
        (lambda otto: management.issue(otto, "bob"), Action.GRANT),
    ],
    ids=["people", "give", "withdraw", "issue"],
)
def test_each_act_is_asked_about_before_and_after(garden, otto, scripted, act, action):
    act(otto)
    assert scripted.asked[0].action == scripted.asked[-1].action == action
    assert scripted.asked[0].object_digest == scripted.asked[-1].object_digest
    scripted.calls, scripted.script = 0, [False]
    with pytest.raises(AuthorityRefused):
        act(otto)


def test_a_permission_that_ends_meanwhile_withholds_the_secret(garden, otto):
    def park(name):
        if name == "grant.A2":
            Grant.objects.filter(subject="otto").update(revoked_at=CLOCK)

    gates.occupy(park)
    try:
        with pytest.raises(AuthorityRefused):
            management.issue(otto, "bob")
    finally:
        gates.occupy(None)


def test_a_refusal_changes_nothing(garden, owner):
    before = rows(owner)
    bob = garden.caller("bob")
    for act in (
        lambda: management.give(bob, "bob", ["operator"]),
        lambda: management.withdraw(bob, "alice", ["curator"]),
        lambda: management.issue(bob, "alice"),
    ):
        with pytest.raises(AuthorityRefused):
            act()
    assert rows(owner) == before


@pytest.mark.parametrize(
    ("what", "wrong"),
    [
        ("grant", {"subject": "a b"}),
        ("grant", {"role": "emperor"}),
        ("grant", {"days": "0"}),
        ("grant", {"days": "-1"}),
        ("grant", {"subject": "nobody"}),
        ("grant", {"more": "x"}),
        ("token", {"days": "999"}),
        ("token", {"name": "x" * 129}),
    ],
)
def test_a_wrong_form_is_refused_by_name(prefix, manager, owner, what, wrong):
    before = rows(owner)
    assert manager.post(f"{NS}/{what}", asked(what, prefix, **wrong, confirmed="yes")).status_code == 400
    assert rows(owner) == before


def test_many_subjects_are_walked_by_the_next_link(garden, manager, django_assert_max_num_queries):
    for number in range(60):
        host.map_principal(f"agent-{number:02}")
        host.grant(f"agent-{number:02}", garden.binding, [Action.FLAG], by="host:tests")
    with django_assert_max_num_queries(30):
        first = manager.get(NS)
    assert len(first.context["shown"].people) == 50
    link = first.content.decode().split('rel="next" href="')[1].split('"')[0]
    assert {one.subject for one in manager.get(NS + link).context["shown"].people} >= {"otto", "wanda"}


def test_a_field_that_nobody_asked_for_is_refused(prefix, manager, owner):
    before = rows(owner)
    for what in CHANGES:
        for name in ("nosuch", "é"):
            answer = manager.post(f"{NS}/{what}", asked(what, prefix, confirmed="yes", **{name: "1"}))
            assert answer.status_code == 400, (what, name)
            assert "no such field" in answer.content.decode()
    assert rows(owner) == before
