"""The page of a source, and how an archived text is taken in again."""

import json
import re

import pytest

from archive import limits
from archive.models import Note
from tests import cast
from tests.pages.paths import SECRET

NS = f"/ns/{cast.GARDEN}"


def told(answer):
    return answer.content.decode()


def source(client, query):
    return client.get(f"{NS}/source?{query}")


def test_the_revisions_of_a_source_stand_in_order_without_text(nursery, curator):
    answer = source(curator, "key=roses")
    assert [note.source_revision for note in answer.context["page"].items] == ["1", "2"]
    assert SECRET not in told(answer)
    assert f'href="{NS}/source?key=roses"' in told(curator.get(f"{NS}/notes/{nursery.candidate.id}"))


def test_any_two_revisions_are_compared(nursery, curator):
    there, back = source(curator, "key=roses&from=1&to=2"), source(curator, "key=roses&from=2&to=1")
    assert re.search(r"<del>.*?sun.*?</del><ins>.*?shade.*?</ins>", told(there))
    assert re.search(r"<del>.*?shade.*?</del><ins>.*?sun.*?</ins>", told(back))
    assert "equal, to the letter" in told(source(curator, "key=roses&from=1&to=1"))


def test_an_inspector_sees_the_revisions_and_no_change(nursery, inspector):
    assert source(inspector, "key=roses").status_code == 200
    answer = source(inspector, "key=roses&from=1&to=2")
    assert answer.status_code == 200
    assert SECRET not in told(answer)
    assert "takes the action <code>review</code>" in told(answer)


def test_a_tombstone_is_listed_and_not_compared(nursery, curator):
    assert "revoked" in told(source(curator, "key=thistles"))
    assert source(curator, "key=thistles&from=1&to=1").status_code == 409


@pytest.mark.parametrize("query", ["key=nothing/here", "key=roses&from=1&to=9"])
def test_what_is_not_there_is_a_page_of_its_own(nursery, curator, query):
    assert source(curator, query).status_code == 404


@pytest.mark.parametrize(
    "query",
    ["", "key=", "key=a%20b", "key=roses&from=1", "key=roses&to=1", "key=roses&key=ferns", "key=roses&x=1", "key=%00"],
)
def test_an_address_that_asks_wrongly_is_refused(nursery, curator, query):
    assert source(curator, query).status_code == 400


@pytest.mark.parametrize("who", ["bob", "wanda", "charlie", "stranger"])
def test_without_a_grant_to_inspect_nothing_is_shown(nursery, sign_in, who):
    answer = source(sign_in(who), "key=roses")
    assert answer.status_code == 403
    assert "roses" not in told(answer)


def test_the_longest_names_are_shown_whole(alice, curator):
    longest = "k" * limits.IDENTIFIER_MAX
    cast.admitted(alice, source=longest, revision=longest)
    cast.admitted(alice, "Other.", source=longest, revision="2")
    assert longest in told(source(curator, f"key={longest}&from={longest}&to=2"))


def again(client, note, **change):
    page = told(client.get(f"{NS}/notes/{note.id}"))
    form = {"request_id": re.search(r'name="request_id" value="([^"]*)"', page)[1]}
    form |= {"source_revision": re.search(r'name="source_revision"[^>]* value="([^"]*)"', page)[1]}
    form |= {"source_key": note.source_key, "kind": note.kind, "text": json.dumps(Note.objects.get(id=note.id).text)}
    return {**form, **change}


def test_an_archived_text_is_taken_in_again_to_the_letter_as_a_candidate(alice, curator):
    text = "\nFerns\r\nwant \u200bshade.\n"
    note = cast.archived(alice, text, source="ferns")
    form = again(curator, note)
    assert form["source_revision"] == "1-again"
    answer = curator.post(f"{NS}/intakes", form)
    new = Note.objects.get(source_revision="1-again")
    assert answer["Location"] == f"{NS}/notes/{new.id}"
    assert (new.state, new.text, new.lifecycle_version) == ("candidate", text, 1)
    assert Note.objects.get(id=note.id).state == "archived"
    curator.post(f"{NS}/intakes", form)
    assert Note.objects.count() == 2, "sent twice, taken in once"


def test_it_is_offered_for_archived_notes_alone_and_to_whoever_may_take_in(nursery, curator, inspector):
    assert "Take it in again" in told(curator.get(f"{NS}/notes/{nursery.archived.id}"))
    assert "Take it in again" not in told(inspector.get(f"{NS}/notes/{nursery.archived.id}"))
    for note in (nursery.candidate, nursery.promoted, nursery.revoked):
        assert "Take it in again" not in told(curator.get(f"{NS}/notes/{note.id}"))


def test_a_revision_that_is_there_with_another_text_is_refused(alice, curator):
    note = cast.archived(alice, source="ferns")
    cast.admitted(alice, "Something else.", source="ferns", revision="2")
    assert curator.post(f"{NS}/intakes", again(curator, note, source_revision="2")).status_code == 409


@pytest.mark.parametrize(
    "change",
    [
        {"text": "plain"},
        {"text": "1"},
        {"text": '""'},
        {"text": "[" * 9_000},
        {"source_revision": "a b"},
        {"x": "1"},
        {"é": "1"},
        {"request_id": ""},
    ],
)
def test_a_form_that_asks_wrongly_takes_nothing_in(alice, curator, change):
    note = cast.archived(alice, source="ferns")
    assert curator.post(f"{NS}/intakes", again(curator, note, **change)).status_code == 400
    assert Note.objects.count() == 1


@pytest.mark.parametrize("who", ["ivy", "bob", "charlie", "stranger"])
def test_without_the_right_to_take_in_nothing_is_taken_in(alice, curator, sign_in, who):
    note = cast.archived(alice, source="ferns")
    assert sign_in(who).post(f"{NS}/intakes", again(curator, note)).status_code == 403
    assert Note.objects.count() == 1
