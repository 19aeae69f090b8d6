"""The admin: tables for looking alone, by grant and never by rank, without a word of any text."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from archive import gates
from archive.models import Grant, Note
from archive.models.columns import CLOCK
from archive.operations import host
from inspection.admin.site import Counted
from inspection.admin.tables import TABLES
from tests import cast
from tests.looking import looked_at
from tests.pages.paths import SECRET
from tests.pages.test_nothing_changes import POLICY, Markup, rows

FORBIDDEN = re.compile(r'"(text|vector|attempt_token|search_vector|digest)"|archive_posting')
"""Columns and tables that no page of the admin may select: a token's digest is the one that is called just so."""
LISTS = {table.name: f"admin:{table.model._meta.app_label}_{table.model._meta.model_name}" for table in TABLES}


def listed(name: str) -> str:
    return reverse(f"{LISTS[name]}_changelist")


def record(name: str, key: object) -> str:
    return reverse(f"{LISTS[name]}_change", args=[key])


@pytest.fixture
def keeper(sign_in):
    """Inspects everything and may grant besides."""
    client = sign_in("ivy")
    binding = cast.Caller.in_namespace("ivy", cast.GARDEN).binding
    host.grant("ivy", binding, host.actions_of(["operator"]), by="host:tests")
    host.issue_token("bob", by="host:tests", namespaces=None)
    return client


def addresses(nursery):
    yield reverse("admin:index")
    for table in TABLES:
        yield listed(table.name)
        for key in table.model.objects.values_list("pk", flat=True)[:3]:
            yield record(table.name, key)


def test_s141_tombstones_are_shown_and_no_text_and_no_way_to_save(nursery, sign_in, owner):
    """A staff user with a grant."""
    client = sign_in("ivy")
    page = client.get(listed("Notes"))
    assert page.status_code == 200
    told = page.content.decode()
    assert "revoked" in told
    assert "thistles" in told
    tomb = record("Notes", nursery.revoked.id)
    shown = client.get(tomb).content.decode()
    assert "revoked" in shown
    assert str(nursery.revoked.id) in shown
    for content in (told, shown):
        assert SECRET not in content
        assert not re.search(r'name="_(save|continue|addanother)"|deletelink|addlink', content)
    before = rows(owner)
    for address in (tomb, listed("Notes"), reverse("admin:index")):
        assert client.post(address, {"state": "promoted", "_save": "Save"}).status_code == 403, address
    for verb in ("add/", "x/delete/", "x/history/"):
        assert client.get(listed("Notes") + verb).status_code == 404
    assert rows(owner) == before


@pytest.mark.parametrize("who", ["stranger", "charlie", "wanda"])
def test_s142_staff_without_a_grant_meet_a_refusal_and_no_row(nursery, sign_in, django_user_model, who):
    client = sign_in(who)
    django_user_model.objects.filter(username=who).update(is_staff=True, is_superuser=True)
    for address in addresses(nursery):
        answer = client.get(address)
        told = answer.content.decode()
        assert answer.status_code == 403, address
        assert "lychd grant give SUBJECT ROLE --namespace KEY" in told
        assert not any(word in told for word in ("roses", "ferns", "thistles", "q-roses", SECRET))


def test_nobody_signed_in_is_led_to_the_sign_in_and_back(nursery):
    for address in addresses(nursery):
        assert Client().get(address)["Location"] == f"/sign-in?next={address}"


def test_every_page_is_read_only_selects_no_text_and_keeps_the_policy(nursery, keeper, owner):
    before = rows(owner)
    seen = 0
    for address in addresses(nursery):
        with looked_at() as asked:
            answer = keeper.get(address)
        told = answer.content.decode()
        assert answer.status_code == 200, address
        assert SECRET not in told, address
        assert all(one.looked_only for one in asked if "archive_" in one.sql or "semantic_" in one.sql), address
        assert any(one.looked_only for one in asked), address
        assert not [one.sql for one in asked if FORBIDDEN.search(one.sql)], address
        assert sorted(answer["Content-Security-Policy"].split("; ")) == POLICY
        assert "no-store" in answer["Cache-Control"]
        markup = Markup()
        markup.feed(told)
        assert markup.faults == [], address
        assert len(markup.ids) == len(set(markup.ids)), address
        seen += 1
    assert seen > 2 * len(TABLES)
    assert rows(owner) == before


def test_the_list_of_tokens_tells_of_namespaces_in_which_one_may_grant(nursery, keeper):
    other = host.configure_namespace("orchard", owner="neighbour", policy_revision="p", by="host:tests")
    both, theirs = (
        host.issue_token("bob", by="host:tests", namespaces=keys).token
        for keys in (["orchard", cast.GARDEN], ["orchard"])
    )
    told = keeper.get(listed("Tokens")).content.decode()
    assert both.prefix in told
    assert "every namespace" in told
    assert theirs.prefix not in told
    assert "orchard" not in told
    assert keeper.get(record("Tokens", theirs.pk)).status_code == 404
    assert "orchard" not in keeper.get(record("Tokens", both.pk)).content.decode()
    host.grant("ivy", other, host.actions_of(["operator"]), by="host:tests")
    assert "garden, orchard" in keeper.get(record("Tokens", both.pk)).content.decode()
    assert theirs.prefix in keeper.get(listed("Tokens")).content.decode()


def test_every_model_of_the_archive_has_its_table():
    from django.apps import apps

    models = {
        model
        for name in ("archive", "semantic")
        for model in apps.get_app_config(name).get_models()
        if not model._meta.proxy
    }
    assert {table.model for table in TABLES} == models


def test_a_curator_sees_notes_and_neither_receipts_nor_grants(nursery, curator):
    assert curator.get(listed("Notes")).status_code == 200
    for name in ("Receipts", "Grants", "Tokens", "Principals", "Derivations"):
        assert curator.get(listed(name)).status_code == 403, name
    told = curator.get(reverse("admin:index")).content.decode()
    assert ">Notes</a>" in told
    assert ">Receipts</a>" not in told


def test_rows_of_another_namespace_are_not_there(nursery, inspector):
    other = cast.plant("orchard")
    Grant.objects.filter(subject="ivy", namespace_key="orchard").update(revoked_at=CLOCK)
    pear = cast.promoted(other.caller("alice"), "Pears want a wall.", source="pears")
    assert "pears" not in inspector.get(listed("Notes")).content.decode()
    assert "pears" not in inspector.get(listed("Notes"), {"q": str(pear.id)}).content.decode()
    assert inspector.get(record("Notes", pear.id)).status_code == 404
    assert "orchard" not in inspector.get(listed("Configured namespaces")).content.decode()


def test_a_namespace_retained_under_another_policy_shows_no_row(nursery, inspector, garden):
    moved = host.configure_namespace(cast.GARDEN, owner=cast.OWNER, policy_revision="policy-2", by="host:tests")
    host.grant("ivy", moved, host.actions_of(["inspector"]), by="host:tests")
    answer = inspector.get(listed("Notes"))
    assert answer.status_code == 200
    assert "roses" not in answer.content.decode()


def test_a_grant_that_ends_while_a_page_is_read_takes_the_page_with_it(nursery, inspector):
    def park(name):
        if name == "admin.A2":
            Grant.objects.filter(subject="ivy").update(revoked_at=CLOCK)

    gates.occupy(park)
    try:
        answer = inspector.get(listed("Notes"))
    finally:
        gates.occupy(None)
    assert answer.status_code == 403
    assert "roses" not in answer.content.decode()


@pytest.mark.parametrize(
    "query",
    ["text__startswith=X", "source__source_key=roses", "admitted_subject=alice", "_to_field=text", "e=1"],
)
def test_no_address_compares_a_column(nursery, inspector, query):
    assert inspector.get(f"{listed('Notes')}?{query}").status_code in {400, 404}
    assert inspector.get(f"{record('Notes', nursery.promoted.id)}?_to_field=text_digest").status_code == 400


@pytest.mark.parametrize("find", ["id", "source", "digest"])
def test_a_note_is_found_by_each_whole_identifier(nursery, inspector, find):
    note = nursery.archived
    term = {"id": str(note.id), "source": note.source_key, "digest": note.text_digest}[find]
    page = inspector.get(listed("Notes"), {"q": term})
    assert [row.pk for row in page.context["cl"].result_list] == [note.id]
    assert list(inspector.get(listed("Notes"), {"q": term[:-1]}).context["cl"].result_list) == []
    assert inspector.get(listed("Notes"), {"q": "\x00"}).status_code == 200


@pytest.mark.parametrize("table", [table for table in TABLES if table.states], ids=lambda table: table.name)
def test_a_list_is_narrowed_to_a_state(nursery, inspector, table):
    for state in table.states:
        rows = inspector.get(listed(table.name), {"state": state}).context["cl"].result_list
        assert {getattr(row, table.state_in) for row in rows} <= {state}
    if table.model is Note:
        assert {row.state for row in inspector.get(listed("Notes")).context["cl"].result_list} == set(table.states)


def test_a_receipt_is_shown_as_it_is_stored(nursery, inspector):
    page = inspector.get(listed("Receipts"), {"q": nursery.request_id})
    (row,) = page.context["cl"].result_list
    assert "receipt_digest" in inspector.get(record("Receipts", row.pk)).content.decode()


@pytest.mark.parametrize("name", LISTS)
def test_a_list_costs_the_same_however_much_there_is(alice, bob, keeper, name):
    def cost():
        with CaptureQueriesContext(connection) as asked:
            assert keeper.get(listed(name)).status_code == 200
        counting = [one["sql"] for one in asked if "COUNT(" in one["sql"]]
        assert all("LIMIT" in one for one in counting), counting
        return len(asked)

    cast.promoted(alice, source="bed/0")
    cast.asked(bob)
    keeper.get(listed(name))
    few = cost()
    for number in range(1, 12):
        cast.promoted(alice, source=f"bed/{number}")
        cast.asked(bob)
    assert cost() == few <= 16


def test_a_list_has_six_columns_at_most_and_is_counted_no_further_than_it_is_paged(nursery):
    assert max(len(table.columns) for table in TABLES) <= 6
    assert Counted(Note.objects.order_by("id"), 2).count == 4
