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
    "grant": {"subject": "wanda", "role": "recaller"},
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
    return host.issue_token("bob", by="host:tests", namespaces=None).token.prefix


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
    assert held("wanda") >= set(Role.objects.get(name="recaller").actions)
    grants = Grant.objects.filter(subject="wanda", valid_until__isnull=False)
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
    assert token.namespaces == [cast.GARDEN]
    assert secret not in manager.get(NS).content.decode()


@pytest.fixture
def orchard(garden):
    """A neighbour's namespace, in which bob recalls and otto is nobody."""
    other = host.configure_namespace("orchard", owner="neighbour", policy_revision="p", by="host:tests")
    host.grant("bob", other, host.actions_of(["recaller"]), by="host:tests")
    return other


def test_a_token_for_a_foreign_namespace_too_is_not_ended_here_nor_is_that_one_told(orchard, manager, otto):
    both = host.issue_token("bob", by="host:tests", namespaces=["orchard", cast.GARDEN]).token
    theirs = host.issue_token("bob", by="host:tests", namespaces=["orchard"]).token
    told = manager.get(NS).content.decode()
    assert both.prefix in told
    assert theirs.prefix not in told
    assert "orchard" not in told
    assert f'name="prefix" value="{both.prefix}"><span><code>{both.prefix}…</code> <span class="quiet">for' in told
    assert "and others" in told
    for token, status in ((both, 403), (theirs, 404)):
        change = asked("token-end", token.prefix, confirmed="yes")
        assert manager.post(f"{NS}/token-end", change).status_code == status
    assert not Token.objects.filter(revoked_at__isnull=False).exists()

    host.grant("otto", orchard, host.actions_of(["operator"]), by="host:tests")
    assert "orchard" in manager.get(NS).content.decode()
    assert management.end_token(otto, both.prefix).revoked_at is not None


def test_a_token_of_the_host_for_every_namespace_is_ended_where_all_are_managed(orchard, prefix, manager, otto):
    assert "for every namespace" in manager.get(NS).content.decode()
    with pytest.raises(AuthorityRefused):
        management.end_token(otto, prefix)
    host.grant("otto", orchard, host.actions_of(["operator"]), by="host:tests")
    assert management.end_token(otto, prefix).revoked_at is not None


def test_a_token_is_issued_for_no_namespace_in_which_the_issuer_may_not_grant(orchard, manager, otto):
    for also_for in ("orchard", "nowhere", "orchard nowhere"):
        change = asked("token", "", also_for=also_for, confirmed="yes")
        assert manager.post(f"{NS}/token", change).status_code == 403, also_for
    assert Token.objects.count() == 0
    assert management.issue(otto, "bob").token.namespaces == [cast.GARDEN]

    host.grant("otto", orchard, host.actions_of(["operator"]), by="host:tests")
    page = manager.post(f"{NS}/token", asked("token", "", also_for=" orchard ", confirmed="yes"))
    assert page.context["token"].namespaces == [cast.GARDEN, "orchard"]
    assert "orchard" in page.content.decode()


def test_who_there_is_elsewhere_is_neither_told_nor_given(orchard, manager, owner):
    """Zoe acts in the orchard alone; nobody is called zacharias; to whoever grants here they are the same."""
    host.map_principal("zoe")
    host.grant("zoe", orchard, host.actions_of(["recaller"]), by="host:tests")
    before = rows(owner)
    answers = {}
    for who in ("zoe", "zacharias"):
        for what in ("grant", "withdraw", "token"):
            answer = manager.post(f"{NS}/{what}", asked(what, "", subject=who, confirmed="yes"), follow=True)
            body = re.sub(
                r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|value="[A-Za-z0-9]{64}"', "", answer.content.decode()
            )
            answers.setdefault(what, set()).add((answer.status_code, body.replace(who, "")))
    assert {what: len(found) for what, found in answers.items()} == {"grant": 1, "withdraw": 1, "token": 1}
    assert {status for status, _ in answers["grant"]} == {400}
    changed = {name for name, digest in rows(owner).items() if digest != before[name]}
    assert changed <= {"django_session"}


def test_nobody_gets_a_token_for_a_subject_without_a_grant_here(garden, otto):
    other = host.configure_namespace("orchard", owner="neighbour", policy_revision="p", by="host:tests")
    host.grant("charlie", other, host.actions_of(["recaller"]), by="host:tests")
    with pytest.raises(AuthorityRefused):
        management.issue(otto, "charlie")
    theirs = host.issue_token("charlie", by="host:tests", namespaces=None).token
    with pytest.raises(RecordAbsent):
        management.end_token(otto, theirs.prefix)


@pytest.mark.parametrize(
    ("act", "action"),
    [
        (lambda otto: management.people(otto), Action.GRANT),
        (lambda otto: management.give(otto, "wanda", ["recaller"]), Action.GRANT),
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
