"""The box that takes any identifier: it leads where its bearer may look, and nowhere else."""

import pytest

from archive import gates
from archive.models import Grant, IntakeRequest, Recall
from archive.models.columns import CLOCK
from tests import cast
from tests.looking import looked_at
from tests.pages.paths import SECRET
from tests.pages.test_admin import FORBIDDEN
from tests.pages.test_nothing_changes import rows

NS = f"/ns/{cast.GARDEN}"
FIND = f"{NS}/find"


def looked(client, term):
    return client.post(FIND, {"identifier": term})


@pytest.fixture
def named(nursery):
    """An identifier of each kind, and where it leads."""
    note, recall = nursery.archived, Recall.objects.get(request_id=nursery.request_id)
    intake = IntakeRequest.objects.get(note_id=note.id)
    there = f"{NS}/notes/{note.id}"
    receipt = f"{NS}/receipts/{nursery.request_id}"
    return {
        "note": (str(note.id), there),
        "note in capitals": (str(note.id).upper(), there),
        "note's beginning": (str(note.id)[:13], there),
        "text digest": (note.text_digest, there),
        "text digest's beginning": (note.text_digest[:8], there),
        "source": ("ferns", f"{NS}/notes?source=ferns"),
        "intake": (intake.request_id, there),
        "tombstone": (str(nursery.revoked.id), f"{NS}/notes/{nursery.revoked.id}"),
        "recall": (nursery.request_id, receipt),
        "receipt": (str(recall.id), receipt),
        "receipt digest's beginning": (recall.receipt_digest[:12], receipt),
        "padded": (f"  {note.id}\n", there),
    }


def test_each_identifier_leads_to_what_bears_it(named, inspector):
    for kind, (term, address) in named.items():
        answer = looked(inspector, term)
        assert answer.status_code == 302, kind
        assert answer["Location"] == address, kind


def test_several_bearers_are_shown_to_choose_from(alice, bob, inspector):
    cast.promoted(alice, source="shared-name", request_id="shared-name")
    answer = looked(inspector, "shared-name")
    assert answer.status_code == 200
    assert [one.kind for one, _ in answer.context["ways"]] == ["source", "intake"]


@pytest.mark.parametrize("term", ["nothing-of-that-name", "ffffffff", "0" * 7, "00000000-0000-0000-0000-000000000000"])
def test_what_is_not_there_is_said_not_to_be(nursery, inspector, term):
    answer = looked(inspector, term)
    assert answer.status_code == 200
    assert "Nothing bears this" in answer.content.decode()


@pytest.mark.parametrize("term", ["", "a text with spaces", "x" * 129, "a\x00b", "%"])
def test_a_text_is_no_identifier_and_is_not_repeated(nursery, inspector, term):
    answer = looked(inspector, term)
    assert answer.status_code == 400
    if term.strip():
        assert f"<code>{term}</code>" not in answer.content.decode()


def test_what_may_not_be_inspected_is_not_found(named, curator, sign_in):
    """A curator inspects no receipts; whoever inspects nothing is refused, whatever exists."""
    assert looked(curator, named["note"][0]).status_code == 302
    for kind in ("recall", "receipt", "receipt digest's beginning"):
        assert "Nothing bears this" in looked(curator, named[kind][0]).content.decode(), kind
    for who in ("charlie", "bob", "stranger"):
        for term in (named["note"][0], "nothing"):
            assert looked(sign_in(who), term).status_code == 403


def test_nothing_of_another_namespace_is_found(nursery, inspector):
    other = cast.plant("orchard")
    pear = cast.promoted(other.caller("alice"), "Pears want a wall.", source="pears")
    for term in (str(pear.id), "pears", pear.text_digest[:10]):
        assert "Nothing bears this" in looked(inspector, term).content.decode()


def test_a_grant_that_ends_meanwhile_takes_the_answer_with_it(named, inspector):
    def park(name):
        if name == "find.A2":
            Grant.objects.filter(subject="ivy").update(revoked_at=CLOCK)

    gates.occupy(park)
    try:
        assert looked(inspector, named["note"][0]).status_code == 403
    finally:
        gates.occupy(None)


def test_looking_is_read_only_and_selects_no_text(named, inspector, owner):
    before = rows(owner)
    for kind, (term, _) in {**named, "nothing": ("ffffffff", "")}.items():
        with looked_at() as asked:
            answer = looked(inspector, term)
        assert all(one.looked_only for one in asked if "archive_" in one.sql or "semantic_" in one.sql), kind
        assert any(one.looked_only for one in asked), kind
        assert not [one.sql for one in asked if FORBIDDEN.search(one.sql)], kind
        assert len(asked) <= 20, kind
        assert SECRET not in answer.content.decode()
    assert rows(owner) == before


def test_the_box_stands_in_the_head_of_every_page_of_a_namespace(nursery, inspector):
    for address in (NS, f"{NS}/notes", f"{NS}/receipts", FIND):
        assert f'action="{FIND}"' in inspector.get(address).content.decode()
