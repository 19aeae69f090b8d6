"""The page of one note: exact text for whoever may review it, made safe to judge; its story; its tombstone."""

import html
import re
from uuid import uuid4

import pytest

from archive.lifecycle import Reason, State
from archive.operations import host
from tests import cast
from tests.pages.paths import SECRET

NS = f"/ns/{cast.GARDEN}"

HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> {{ request.user.password }} {% csrf_token %} &amp; "
    "</div></main> \x1b[31mred\x1b[0m end\u202egnp.exe\u202c zero\u200bwidth \ufeff"
)


def page_of(client, note):
    return client.get(f"{NS}/notes/{note.id}")


def shown(answer):
    """The text as a reader sees it: tags out, entities resolved."""
    block = answer.content.decode().split('dir="auto">', 1)[1].split("</div>", 1)[0]
    return html.unescape(re.sub(r"<[^>]*>", "", block))


def test_a_hostile_text_stays_text(alice, curator):
    note = cast.admitted(alice, HOSTILE, source="attack")
    answer = page_of(curator, note)
    page = answer.content.decode()
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert shown(answer) == (
        "<script>alert(1)</script> <img src=x onerror=alert(1)> {{ request.user.password }} {% csrf_token %} &amp; "
        "</div></main> ␛[31mred␛[0m endRLOgnp.exePDF zeroZWSPwidth BOM"
    )
    assert "6 hidden characters" in page


def test_a_plain_text_is_shown_exactly(alice, curator):
    text = "  Two  spaces,\n\n\ttab, ünïcödé, 猫, نص.\r\nEnd "
    answer = page_of(curator, cast.admitted(alice, text))
    assert shown(answer) == text
    assert "hidden character" not in answer.content.decode()


def test_a_candidate_stands_beside_the_promoted_revision(nursery, curator):
    answer = page_of(curator, nursery.candidate)
    page = answer.content.decode()
    assert f"{SECRET} roses want shade." in page
    assert f"{SECRET} roses want sun." in page
    assert 'revision <span class="key">1</span> is archived' in page


def test_a_promoted_note_stands_alone(nursery, curator):
    answer = page_of(curator, nursery.promoted)
    assert answer.context["promoted"] is None
    assert "Promoted today" not in answer.content.decode()


@pytest.mark.parametrize(
    ("state", "offered"),
    [
        ("candidate", {"promote", "revocation"}),
        ("promoted", {"archive", "revocation"}),
        ("archived", {"revocation"}),
        ("revoked", set()),
    ],
)
def test_each_state_offers_its_own_decisions(nursery, curator, state, offered):
    note = getattr(nursery, state)
    page = page_of(curator, note).content.decode()
    addresses = {
        name for name in ("promote", "archive", "revoke", "revocation") if f"{NS}/notes/{note.id}/{name}" in page
    }
    assert addresses == offered
    if offered - {"revocation"}:
        assert f'name="expected_version" value="{note.lifecycle_version}"' in page


def test_only_what_is_granted_is_offered(nursery, inspector, garden, sign_in):
    assert page_of(inspector, nursery.candidate).context["offered"].none
    host.grant("ivy", garden.binding, host.actions_of(["archive"]), by="host:tests")
    assert page_of(inspector, nursery.promoted).context["offered"].archive
    assert not page_of(inspector, nursery.promoted).context["offered"].revoke


def test_whoever_took_a_note_in_is_told_that_another_has_to_promote_it(transactional_db, sign_in):
    garden = cast.plant(second_person=True)
    note = cast.admitted(garden.caller("alice"))
    page = page_of(sign_in("alice"), note).content.decode()
    assert "asks for a second person" in page
    assert f"{note.id}/promote" not in page


def test_the_story_of_a_note_names_who_did_what_and_why(nursery, alice, curator):
    cast.archive(alice, cast.step(nursery.promoted, State.ARCHIVED, Reason.PERSONAL_DATA))
    page = page_of(curator, nursery.promoted).content.decode()
    story = page.split('id="timeline"')[1]
    assert [story.index(step) for step in ("Taken in", "Promoted", "Archived")] == sorted(
        story.index(step) for step in ("Taken in", "Promoted", "Archived")
    )
    assert "as <b>personal data</b>" in story


def test_a_superseded_note_leads_to_its_successor(nursery, alice, curator):
    cast.promote(alice, cast.step(nursery.candidate, State.PROMOTED))
    assert f"{NS}/notes/{nursery.candidate.id}" in page_of(curator, nursery.promoted).content.decode()


def test_a_tombstone_says_what_is_gone_and_what_stays(nursery, curator):
    answer = page_of(curator, nursery.revoked)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "Its text is gone" in page
    assert nursery.revoked.text_digest in page
    assert SECRET not in page
    assert '<form method="post" action="/ns/' not in page


def test_a_note_that_is_not_there_is_a_page_of_its_own(nursery, curator):
    answer = curator.get(f"{NS}/notes/{uuid4()}")
    assert answer.status_code == 404
    assert "No such record" in answer.content.decode()


def test_text_is_in_no_address_title_or_header(nursery, curator):
    answer = page_of(curator, nursery.candidate)
    page = answer.content.decode()
    assert SECRET not in page.split("</title>")[0]
    assert not any(SECRET in value for value in re.findall(r'(?:href|action|title|value)="([^"]*)"', page))
    assert not any(SECRET in value for value in answer.headers.values())


@pytest.mark.parametrize(("state", "queries"), [("candidate", 32), ("promoted", 32), ("archived", 33), ("revoked", 20)])
def test_the_page_of_a_note_costs_so_many_queries(nursery, curator, django_assert_num_queries, state, queries):
    curator.get(NS)
    with django_assert_num_queries(queries):
        page_of(curator, getattr(nursery, state))
