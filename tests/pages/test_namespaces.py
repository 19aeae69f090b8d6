"""However many namespaces there are, each is found, and none of them makes a page slower."""

import re
from collections.abc import Sequence
from typing import ClassVar

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from archive import authority, gates, limits
from archive.authority import Action, AuthorityQuestion, Caller, Point
from archive.models import ConfiguredBinding, Grant, Principal
from archive.models.columns import CLOCK
from archive.operations import host, management
from inspection.admin.scope import Scope
from inspection.namespaces import PAGES_ASKED, choose
from tests import cast

MANY = 150
LAST = f"ns-{MANY - 1:03}"
NOTES = "/admin/archive/note/"


class OnlyGarden:
    """An authorizer that knows of no grant: ivy may everything in the gardens that it lists."""

    allowed: ClassVar[set[str]] = set()

    def decide_many(self, questions: Sequence[AuthorityQuestion]) -> Sequence[bool]:
        return [question.subject == "ivy" and question.namespace in self.allowed for question in questions]


@pytest.fixture
def elsewhere(settings):
    """The authorizer above in the place of the grants, which are all gone."""
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "authorizer": f"{__name__}.OnlyGarden"}
    OnlyGarden.allowed = set()
    return OnlyGarden


def spread(count, *, subjects=("ivy",), roles=("inspector", "operator")):
    """Serve so many namespaces, with roles in all of them for these subjects."""
    keys = [f"ns-{number:03}" for number in range(count)]
    served = set(ConfiguredBinding.objects.values_list("namespace_key", flat=True))
    ConfiguredBinding.objects.bulk_create(
        ConfiguredBinding(namespace_key=key, owner=cast.OWNER, policy_revision=cast.POLICY, configured_by="host:tests")
        for key in keys
        if key not in served
    )
    grants = [
        Grant(
            subject=subject,
            namespace_key=key,
            owner=cast.OWNER,
            purpose=authority.PURPOSE_OF[action].value,
            policy_revision=cast.POLICY,
            action=action.value,
            granted_by="host:tests",
        )
        for key in keys
        if key not in served
        for subject in subjects
        for action in host.actions_of(roles)
    ]
    Grant.objects.bulk_create(grants, batch_size=2_000)
    return keys


@pytest.fixture
def many(garden):
    """A hundred and fifty namespaces; a note and a receipt are in the last one, and in the garden."""
    keys = spread(
        MANY, subjects=("ivy", "alice", "bob"), roles=("inspector", "operator", "curator", "writer", "recaller")
    )
    note = cast.promoted(Caller.in_namespace("alice", LAST), "Quinces want patience.", source="quinces")
    receipt = cast.asked(Caller.in_namespace("bob", LAST), "quinces", request_id="q-quinces")
    assert receipt.receipt["outcome"] == "selected"
    return keys, note


def told(answer):
    return answer.content.decode()


def keys_of(answer):
    return [key for key, _ in answer.context["ways"]]


def next_of(answer, address):
    link = re.search(r'rel="next" href="([^"]*)"', told(answer))
    return None if link is None else address + link[1].replace("&amp;", "&")


def test_the_page_of_namespaces_is_walked_to_its_end(many, inspector):
    keys, _ = many
    found, address = [], "/namespaces?to=review"
    while address is not None:
        answer = inspector.get(address)
        found += keys_of(answer)
        assert "review" in told(answer)
        address = next_of(answer, "/namespaces")
    assert found == [cast.GARDEN, *keys]


def test_a_namespace_is_found_by_the_beginning_of_its_key(many, inspector):
    assert keys_of(inspector.get(f"/namespaces?starting={LAST}")) == [LAST]
    assert keys_of(inspector.get("/namespaces?starting=ns-14")) == [f"ns-14{digit}" for digit in range(10)]
    assert "No namespace of yours begins so" in told(inspector.get("/namespaces?starting=orchard"))


@pytest.mark.parametrize("query", ["to=nowhere", "starting=a%20b", "after=%00", "starting=a&starting=b", "page=2"])
def test_an_address_that_asks_wrongly_is_refused(garden, inspector, query):
    assert inspector.get(f"/namespaces?{query}").status_code == 400


def test_what_is_not_granted_is_not_there(many, sign_in):
    Grant.objects.filter(subject="ivy", namespace_key="ns-007").update(revoked_at=CLOCK)
    ConfiguredBinding.objects.filter(namespace_key="ns-008").update(disabled_at=CLOCK)
    assert keys_of(sign_in("ivy").get("/namespaces?starting=ns-00")) == [f"ns-00{digit}" for digit in "01234569"]
    assert sign_in("charlie").get("/namespaces").status_code == 403
    Principal.objects.filter(subject="bob").update(active=False)
    assert choose("bob").keys == ()


@pytest.mark.parametrize("to", ["home", "review", "notes", "search", "receipts", "events", "people", "configuration"])
def test_a_chosen_namespace_opens_where_one_was(many, sign_in, to):
    client = sign_in("ivy")
    ((key, way),) = client.get(f"/namespaces?to={to}&starting={LAST}").context["ways"]
    assert client.get(way).status_code == 200
    assert f'href="/namespaces?to={to}"' in told(client.get(way))
    assert key == LAST


def test_the_last_namespace_is_shown_by_the_admin(many, inspector):
    _, note = many
    for query in ({"q": str(note.id)}, {"q": "quinces"}, {"namespace": LAST}, {"q": "quinces", "namespace": LAST}):
        page = inspector.get(NOTES, query)
        assert [row.pk for row in page.context["cl"].result_list] == [note.id], query
    assert inspector.get(f"{NOTES}{note.id}/change/").status_code == 200
    assert list(inspector.get(NOTES, {"q": "quinces", "namespace": "ns-001"}).context["cl"].result_list) == []
    assert inspector.get(NOTES, {"namespace": "orchard"}).status_code == 403
    configured = inspector.get("/admin/archive/configuredbinding/", {"q": LAST}).context["cl"].result_list
    assert [row.namespace_key for row in configured] == [LAST]
    ((_, way),) = inspector.get(f"/namespaces?to=archive_note&starting={LAST}").context["ways"]
    assert [row.pk for row in inspector.get(way).context["cl"].result_list] == [note.id]


def test_the_configuration_is_read_to_its_end_by_its_cursor(many, inspector):
    keys, _ = many
    found, cursor = [], ""
    while cursor is not None:
        answer = inspector.get("/api/v1/configuration", {"limit": 40, **({"cursor": cursor} if cursor else {})})
        body = answer.json()
        found += [one["namespace"] for one in body["bindings"]]
        cursor = body["next_cursor"]
    assert found == [cast.GARDEN, *keys]
    assert inspector.get("/api/v1/configuration", {"cursor": "wrong"}).status_code == 400


def test_a_command_names_some_of_them_and_says_that_there_are_more(many):
    from argparse import Namespace

    from lychd.commands import acting
    from lychd.commands.telling import UsageError

    with pytest.raises(UsageError, match=r"ns-000.* and more"):
        acting.caller(Namespace(subject="ivy", namespace=None))


@pytest.mark.parametrize(
    "address",
    [
        f"/ns/{cast.GARDEN}",
        f"/ns/{cast.GARDEN}/people",
        f"/ns/{cast.GARDEN}/review",
        f"/ns/{cast.GARDEN}/search",
        f"/ns/{cast.GARDEN}/configuration",
        f"/ns/{cast.GARDEN}/generations",
        "/namespaces",
        "/api/v1/configuration?limit=2",
        "/admin/",
        NOTES,
        f"{NOTES}?q=roses",
        "/admin/archive/grant/",
        "/admin/archive/principal/",
    ],
)
def test_statements_do_not_grow_with_namespaces(alice, sign_in, address):
    roles = ("inspector", "operator", "curator")
    client: Client = sign_in("ivy")
    host.grant("ivy", alice.binding, host.actions_of(roles), by="host:tests")
    cast.promoted(alice)

    def cost():
        with CaptureQueriesContext(connection) as asked:
            assert client.get(address).status_code == 200
        return len(asked)

    spread(3, roles=roles)
    client.get(address)
    few = cost()
    spread(300, roles=roles)
    assert cost() == few


def test_the_walk_over_grants_allows_what_the_authorizer_allows(garden):
    """Of every kind of grant that there is, in its own namespace."""
    now = ConfiguredBinding.objects.get(namespace_key=cast.GARDEN).configured_at
    kinds = {
        "current": {},
        "ended": {"valid_until": now.replace(year=now.year - 1)},
        "begins-later": {"valid_from": now.replace(year=now.year + 1)},
        "ends-later": {"valid_until": now.replace(year=now.year + 1)},
        "of-another-policy": {"policy_revision": "policy-0"},
        "of-another-owner": {"owner": "nobody"},
        "of-another-action": {"action": Action.RECALL.value},
    }
    for key, other in kinds.items():
        host.configure_namespace(key, owner=cast.OWNER, policy_revision=cast.POLICY, by="host:tests")
        action = Action(other.get("action", Action.DISCOVER_CONFIGURATION.value))
        given = {
            "subject": "charlie",
            "namespace_key": key,
            "owner": cast.OWNER,
            "purpose": authority.PURPOSE_OF[action].value,
            "policy_revision": cast.POLICY,
            "action": action.value,
            "granted_by": "host:tests",
        }
        Grant.objects.create(**{**given, **other})
    callers = [Caller.in_namespace("charlie", key) for key in sorted(kinds)]
    for action in (Action.DISCOVER_CONFIGURATION, Action.INSPECT_METADATA, Action.RECALL):
        answers = authority.decide([caller.asks(action, about="0" * 64).asked for caller in callers], Point.A0)
        allowed = tuple(caller.namespace for caller, yes in zip(callers, answers, strict=True) if yes)
        assert choose("charlie", action).keys == allowed
        granted = ConfiguredBinding.granted("charlie", action.value).values_list("namespace_key", flat=True)
        assert tuple(sorted(granted)) == allowed
    assert set(choose("charlie").keys) == kinds.keys() - {"ended", "begins-later"}


def test_a_grant_in_one_namespace_of_several_takes_its_rows_with_it(many, inspector, alice):
    cast.promoted(alice)

    def park(name):
        if name == "admin.A2":
            Grant.objects.filter(subject="ivy", namespace_key=LAST).update(revoked_at=CLOCK)

    gates.occupy(park)
    try:
        answer = inspector.get(NOTES)
    finally:
        gates.occupy(None)
    assert answer.status_code == 403
    assert "quinces" not in told(answer)
    assert "roses" in told(inspector.get(NOTES))


def test_a_grant_of_the_time_between_two_check_points_shows_no_row(many, inspector, monkeypatch):
    """Both points find the same scope; what was read in between was in a wider one."""
    between = Grant.objects.filter(subject="ivy", namespace_key=LAST)
    held = list(between.values("subject", "namespace_key", "owner", "purpose", "policy_revision", "action"))
    between.update(revoked_at=CLOCK)
    of = Scope.of

    def give_after(subject, point, *further):
        found = of(subject, point, *further)
        if point is Point.A0:
            Grant.objects.bulk_create(Grant(**one, granted_by="host:tests") for one in held)
        return found

    def park(name):
        if name == "admin.A2":
            assert between.filter(revoked_at__isnull=True).update(revoked_at=CLOCK) == len(held)

    monkeypatch.setattr(Scope, "of", give_after)
    gates.occupy(park)
    try:
        answer = inspector.get(NOTES)
    finally:
        gates.occupy(None)
    assert answer.status_code == 403
    assert "quinces" not in told(answer)


def test_another_authorizer_says_what_there_is_to_choose(many, elsewhere):
    keys, _ = many
    Grant.objects.update(revoked_at=CLOCK)
    elsewhere.allowed = {cast.GARDEN, "ns-003", LAST}
    assert choose("ivy").keys == (cast.GARDEN, "ns-003", LAST)
    assert choose("ivy", starting="ns-").keys == ("ns-003", LAST)
    assert choose("ivy", limit=2) == choose("ivy", limit=2, after="")
    first = choose("ivy", limit=1)
    assert (first.keys, choose("ivy", limit=1, after=first.after).keys) == ((cast.GARDEN,), ("ns-003",))
    assert choose("bob").keys == ()
    assert len(keys) < PAGES_ASKED * limits.PAGE_SIZE_MAX


def test_another_authorizer_says_what_the_admin_shows(many, elsewhere, inspector):
    _, note = many
    elsewhere.allowed = {cast.GARDEN, LAST}
    page = inspector.get(NOTES)
    assert f"Of the first {limits.PAGE_SIZE_MAX} namespaces alone" in told(page)
    assert list(page.context["cl"].result_list) == []
    assert [row.pk for row in inspector.get(NOTES, {"namespace": LAST}).context["cl"].result_list] == [note.id]
    assert inspector.get(NOTES, {"namespace": "ns-003"}).status_code == 403


def test_a_token_for_too_many_namespaces_is_ended_by_the_host(many, monkeypatch):
    caller = Caller.in_namespace("ivy", LAST)
    prefix = host.issue_token("bob", by="host:tests", namespaces=None).token.prefix

    def managed():
        return {one.subject: [held.managed for held in one.tokens] for one in management.people(caller).people}

    # In the garden as well, where ivy may not grant.
    assert managed() == {"alice": [], "bob": [False], "ivy": []}
    Grant.objects.filter(namespace_key=cast.GARDEN).update(revoked_at=CLOCK)
    assert managed()["bob"] == [True]
    monkeypatch.setattr(management, "NAMESPACES_ASKED", MANY - 1)
    assert managed()["bob"] == [False]
    with pytest.raises(authority.AuthorityRefused):
        management.end_token(caller, prefix)
    assert management.issue(caller, "bob").token.namespaces == [LAST]
