"""The three decisions: on the version that was shown, by whoever may, and nothing happens otherwise."""

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from archive.lifecycle import Reason, State
from archive.models import LifecycleEvent, Note
from archive.operations import host
from tests import cast
from tests.pages.paths import SECRET

NS = f"/ns/{cast.GARDEN}"


def decide(client, note, step, **form):
    return client.post(f"{NS}/notes/{note.id}/{step}", {"expected_version": note.lifecycle_version, **form})


def stands(note):
    return tuple(Note.objects.values_list("state", "lifecycle_version").get(id=note.id))


def message(answer):
    return " ".join(str(one) for one in get_messages(answer.wsgi_request))


def test_promoting_leads_back_to_the_note_and_names_what_was_archived(nursery, curator):
    answer = decide(curator, nursery.candidate, "promote")
    assert answer.status_code == 302
    assert answer["Location"] == f"{NS}/notes/{nursery.candidate.id}"
    assert stands(nursery.candidate) == ("promoted", 2)
    assert stands(nursery.promoted) == ("archived", 3)
    page = curator.get(answer["Location"]).content.decode()
    assert "roses, revision 2, is promoted now, at version 2. Revision 1 was archived with it, at version 3." in page
    assert "is promoted now" not in curator.get(answer["Location"]).content.decode()


def test_archiving_keeps_the_text_and_the_reason(nursery, curator):
    decide(curator, nursery.promoted, "archive", reason="outdated")
    assert stands(nursery.promoted) == ("archived", 3)
    assert LifecycleEvent.objects.get(note_id=nursery.promoted.id, to_version=3).reason == Reason.OUTDATED
    assert SECRET in Note.objects.get(id=nursery.promoted.id).text


@pytest.mark.parametrize("state", ["candidate", "promoted", "archived"])
def test_revoking_asks_once_more_and_leaves_a_tombstone(nursery, curator, state):
    note = getattr(nursery, state)
    asked = curator.get(f"{NS}/notes/{note.id}/revocation?version={note.lifecycle_version}")
    page = asked.content.decode()
    assert f"{note.char_count} characters" in page
    assert f'action="{NS}/notes/{note.id}/revoke"' in page
    assert SECRET not in page
    assert stands(note) == (state, note.lifecycle_version)

    answer = decide(curator, note, "revoke", reason="personal_data")
    assert stands(note) == ("revoked", note.lifecycle_version + 1)
    assert Note.objects.get(id=note.id).text is None
    assert "is revoked now" in message(answer)
    assert "tombstone" in curator.get(answer["Location"]).content.decode()


@pytest.mark.parametrize("step", ["promote", "archive", "revoke"])
def test_a_note_that_moved_answers_409_with_where_it_stands_and_nothing_happens(nursery, alice, curator, step):
    note = nursery.candidate
    cast.promote(alice, cast.step(note, State.PROMOTED))
    events = LifecycleEvent.objects.count()
    answer = decide(curator, note, step)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "The note has moved since you read it" in page
    assert "at version 2" in page
    assert f'href="{NS}/notes/{note.id}"' in page
    assert SECRET not in page
    assert stands(note) == ("promoted", 2)
    assert LifecycleEvent.objects.count() == events


def test_a_note_revoked_meanwhile_is_named_as_a_tombstone(nursery, alice, curator):
    cast.revoke(alice, cast.step(nursery.candidate, State.REVOKED))
    answer = decide(curator, nursery.candidate, "promote")
    assert answer.status_code == 409
    assert "only its tombstone is left" in answer.content.decode()


def test_a_decider_who_may_not_review_learns_of_a_conflict_no_more_than_that(nursery, garden, sign_in):
    host.grant("bob", garden.binding, host.actions_of(["promote"]), by="host:tests")
    answer = sign_in("bob").post(f"{NS}/notes/{nursery.candidate.id}/promote", {"expected_version": 7})
    assert answer.status_code == 409
    assert "Where it stands now" not in answer.content.decode()


def test_the_revocation_of_a_version_that_is_no_more_is_not_even_asked(nursery, curator):
    for version in ("9", "", "x"):
        answer = curator.get(f"{NS}/notes/{nursery.promoted.id}/revocation?version={version}")
        assert answer.status_code == 409
        assert "expected_version" not in answer.content.decode()


@pytest.mark.parametrize(
    ("state", "step"),
    [
        ("candidate", "archive"),
        ("promoted", "promote"),
        ("archived", "promote"),
        ("archived", "archive"),
        ("revoked", "promote"),
        ("revoked", "archive"),
        ("revoked", "revoke"),
    ],
)
def test_an_illegal_step_is_refused_as_a_conflict(nursery, curator, state, step):
    note = getattr(nursery, state)
    answer = decide(curator, note, step)
    assert answer.status_code == 409
    assert "A note in this state cannot go there" in answer.content.decode()
    assert stands(note) == (state, note.lifecycle_version)


@pytest.mark.parametrize("who", ["ivy", "bob", "charlie", "stranger"])
@pytest.mark.parametrize("step", ["promote", "archive", "revoke"])
def test_without_authority_nothing_happens(nursery, sign_in, who, step):
    answer = decide(sign_in(who), nursery.candidate, step)
    assert answer.status_code == 403
    assert stands(nursery.candidate) == ("candidate", 1)


def test_a_second_person_is_required_at_the_operation_too(transactional_db, sign_in):
    note = cast.admitted(cast.plant(second_person=True).caller("alice"))
    answer = decide(sign_in("alice"), note, "promote")
    assert answer.status_code == 409
    assert "Somebody else has to promote this note" in answer.content.decode()


def test_without_signing_in_a_decision_leads_to_the_note_and_not_to_itself(nursery):
    answer = decide(Client(), nursery.candidate, "promote")
    assert answer["Location"] == f"/sign-in?next={NS}/notes/{nursery.candidate.id}"
    assert stands(nursery.candidate) == ("candidate", 1)


def test_a_form_without_its_token_is_refused_with_a_page_of_ours(nursery, sign_in):
    client = sign_in("alice", enforce_csrf_checks=True)
    answer = decide(client, nursery.candidate, "promote")
    assert answer.status_code == 403
    assert "security token does not match" in answer.content.decode()
    assert stands(nursery.candidate) == ("candidate", 1)

    token = client.get(f"{NS}/notes/{nursery.candidate.id}").context["csrf_token"]
    assert decide(client, nursery.candidate, "promote", csrfmiddlewaretoken=token).status_code == 302


@pytest.mark.parametrize(
    "form",
    [
        {"expected_version": ""},
        {"expected_version": "1.0"},
        {"expected_version": "-1"},
        {"expected_version": "0"},
        {"expected_version": "٣"},
        {"expected_version": "9" * 40},
        {"expected_version": "4294967296"},
        {"expected_version": ["1", "1"]},
        {"expected_version": "1", "reason": "because"},
        {"expected_version": "1", "reason": "\x00"},
        {"expected_version": "1", "text": "roses"},
        {"expected_version": "1", "raison_d’être": "roses"},
        {"expected_version": "1", "to_state": "revoked"},
    ],
)
def test_a_form_that_says_something_else_is_refused(nursery, curator, form):
    answer = curator.post(f"{NS}/notes/{nursery.candidate.id}/promote", form)
    assert answer.status_code == 400
    assert stands(nursery.candidate) == ("candidate", 1)


def test_no_message_carries_text(nursery, curator):
    for note, step in ((nursery.candidate, "promote"), (nursery.archived, "revoke")):
        assert SECRET not in message(decide(curator, note, step))


def test_a_decision_costs_so_many_queries(nursery, curator, django_assert_num_queries):
    curator.get(NS)
    with django_assert_num_queries(17):
        decide(curator, nursery.candidate, "promote")
