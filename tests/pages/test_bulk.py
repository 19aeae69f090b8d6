"""Many decisions at once: looked at first, each on the version that was seen, each with its own answer."""

import pytest

from archive.lifecycle import State
from archive.models import LifecycleEvent, Note
from tests import cast
from tests.pages.paths import SECRET

NS = f"/ns/{cast.GARDEN}"


def told(answer):
    return answer.content.decode()


def form(notes, step="promote", *, ticked=None, **more):
    fields = {f"seen-{note.id}": note.lifecycle_version for note in notes}
    return {"step": step, "note": [str(note.id) for note in (notes if ticked is None else ticked)], **fields, **more}


def look(client, *given, **more):
    return client.post(f"{NS}/review/preview", form(*given, **more))


def confirm(client, *given, **more):
    return client.post(f"{NS}/transitions", form(*given, **more))


def states(notes):
    return [Note.objects.get(id=note.id).state for note in notes]


@pytest.fixture
def beds(alice):
    return [cast.admitted(alice, f"{SECRET} {number}.", source=f"bed/{number}") for number in range(5)]


def test_the_list_of_candidates_prints_the_version_of_each(beds, curator):
    page = told(curator.get(f"{NS}/notes?state=candidate"))
    for note in beds:
        assert f'name="seen-{note.id}" value="1"' in page
    assert f'action="{NS}/review/preview"' in page
    assert "seen-" not in told(curator.get(f"{NS}/notes"))


def test_the_preview_changes_nothing_and_shows_no_text(beds, curator):
    events = LifecycleEvent.objects.count()
    answer = look(curator, beds)
    assert answer.status_code == 200
    assert LifecycleEvent.objects.count() == events
    assert "5 of 5 stand as you saw them" in told(answer)
    assert told(answer).count(" checked") == 5
    assert SECRET not in told(answer)


def test_what_moved_is_named_first_and_not_ticked(beds, alice, curator):
    cast.promote(alice, cast.step(beds[3], State.PROMOTED))
    cast.revoke(alice, cast.step(beds[4], State.REVOKED))
    answer = look(curator, beds)
    page = told(answer)
    assert page.count(" checked") == 3
    assert "3 of 5 stand as you saw them" in page
    assert [row.note_id for row in answer.context["rows"]][:2] == [beds[3].id, beds[4].id]
    assert page.count("moved: it can no longer go there") == 2


def test_to_revoke_a_moved_note_it_has_to_be_ticked_anew_on_the_version_of_today(beds, alice, curator):
    cast.promote(alice, cast.step(beds[0], State.PROMOTED))
    page = told(look(curator, beds, "revoke"))
    assert "moved since you saw it" in page
    assert f'name="seen-{beds[0].id}" value="2"' in page
    assert page.count(" checked") == 4
    assert "for good" in page


def test_all_of_a_page_leads_to_the_preview_alone(beds, curator):
    answer = curator.post(f"{NS}/review/preview", form(beds, ticked=[], all="yes"))
    assert "5 of 5" in told(answer)
    assert states(beds) == ["candidate"] * 5


def test_each_row_has_its_own_answer(beds, alice, curator):
    cast.promote(alice, cast.step(beds[1], State.PROMOTED))
    cast.revoke(alice, cast.step(beds[2], State.REVOKED))
    answer = confirm(curator, beds)
    page = told(answer)
    assert answer.status_code == 200
    assert "3 done, 2 refused" in page
    assert page.count("lifecycle_version_conflict") == 2
    assert states(beds) == ["promoted", "promoted", "revoked", "promoted", "promoted"]


def test_one_reason_for_all(beds, curator):
    confirm(curator, beds[:2], "revoke", reason="duplicate")
    assert states(beds) == ["revoked", "revoked", "candidate", "candidate", "candidate"]
    assert set(LifecycleEvent.objects.filter(to_state="revoked").values_list("reason", flat=True)) == {"duplicate"}


def test_only_what_is_ticked_is_decided(beds, curator):
    confirm(curator, beds, ticked=beds[:1])
    assert states(beds) == ["promoted"] + ["candidate"] * 4


def test_what_hides_characters_or_is_ones_own_is_left_to_a_page_of_its_own(transactional_db, sign_in):
    garden = cast.plant(second_person=True)
    own = cast.admitted(garden.caller("alice"))
    hiding = cast.admitted(garden.caller("wanda"), "Pay\u200b up.", source="bills")
    page = told(look(sign_in("alice"), [own, hiding]))
    assert "somebody else has to promote it" in page
    assert "hidden characters (1): review it by itself" in page
    assert " checked" not in page
    assert 'name="note"' not in page


@pytest.mark.parametrize("who", ["ivy", "bob", "charlie", "stranger"])
def test_without_authority_nothing_is_shown_and_nothing_happens(beds, sign_in, who):
    client = sign_in(who)
    for send in (look, confirm):
        answer = send(client, beds)
        assert answer.status_code == 403
        assert "bed/" not in told(answer)
    assert states(beds) == ["candidate"] * 5


@pytest.mark.parametrize(
    "change",
    [
        {"step": "archive"},
        {"step": ""},
        {"reason": "whim"},
        {"note": []},
        {"note": ["00000000-0000-4000-8000-000000000000"]},
        {"note": ["x"]},
        {"seen-x": "1"},
        {"other": "1"},
    ],
)
def test_a_form_that_asks_wrongly_is_refused(beds, curator, change):
    for address in ("review/preview", "transitions"):
        assert curator.post(f"{NS}/{address}", {**form(beds), **change}).status_code == 400
    assert states(beds) == ["candidate"] * 5


@pytest.mark.parametrize("version", ["0", "-1", "x", "", "99999999999", "4294967296", "1.0"])
def test_a_version_that_no_page_shows_is_refused(beds, curator, version):
    assert curator.post(f"{NS}/transitions", {**form(beds), f"seen-{beds[0].id}": version}).status_code == 400
    assert states(beds) == ["candidate"] * 5


def test_a_note_that_is_not_there_is_named_as_such(beds, curator):
    nobody = "00000000-0000-4000-8000-000000000000"
    given = {**form(beds), "note": [nobody, str(beds[0].id)], f"seen-{nobody}": "1"}
    assert "there is no such note" in told(curator.post(f"{NS}/review/preview", given))
    assert "record_absent" in told(curator.post(f"{NS}/transitions", given))
