"""The playground: what a recall would find, a reason for each note that it would not, and no trace of the look."""

import re
from uuid import uuid4

import pytest

from archive import lexical
from archive.lifecycle import State
from archive.models import Recall
from archive.operations import host
from inspection import playground
from inspection.playground import Vectors, Why
from semantic.operations.generations import register, retire
from semantic.operations.preparation import prepare
from semantic.presets import STAND_IN
from tests import cast
from tests.pages.paths import SECRET

NS = f"/ns/{cast.GARDEN}"


def told(answer):
    return answer.content.decode()


def ask(client, query="roses", **more):
    return client.post(f"{NS}/search", {"query": query, **more})


def why(client, expected, query="roses", **more):
    """What became of the one note that was expected."""
    (line,) = ask(client, query, expected=str(expected), **more).context["told"].expected
    return line.why


@pytest.mark.parametrize("name", ["nosuch", "é"])
def test_a_field_that_nobody_asked_for_is_refused(nursery, curator, name):
    answer = ask(curator, **{name: "1"})
    assert answer.status_code == 400
    assert "no such field" in told(answer)


def test_what_a_recall_finds_is_found_in_the_same_order_and_with_the_same_score(alice, bob, curator):
    for number in range(6):
        cast.promoted(alice, "roses " * (number + 1) + "want sun", source=f"bed/{number}")
    receipt = cast.asked(bob, "roses sun", top_k=3).receipt
    lines = ask(curator, "roses sun", top_k="3", asker="bob").context["told"].ranked
    found = [line for line in lines if line.why is Why.FOUND]
    assert [str(line.note_id) for line in found] == [one["note_id"] for one in receipt["selected"]]
    assert [line.why for line in lines[3:]] == [Why.OUTSIDE_TOP_K] * 3


def test_a_look_leaves_no_receipt_and_shows_no_text(nursery, curator):
    before = Recall.objects.count()
    page = told(ask(curator, expected="roses"))
    assert Recall.objects.count() == before
    assert "leaves no receipt" in page
    assert SECRET not in page


def test_a_candidate_an_archived_and_a_revoked_note_are_named_as_such(nursery, curator):
    assert why(curator, nursery.candidate.id) is Why.CANDIDATE
    assert why(curator, nursery.archived.id, "ferns") is Why.ARCHIVED
    assert why(curator, nursery.revoked.id, "thistles") is Why.REVOKED
    assert why(curator, nursery.promoted.id) is Why.FOUND


def test_a_source_is_explained_by_all_its_revisions(nursery, curator):
    lines = ask(curator, expected="roses").context["told"].expected
    assert [(line.source_revision, line.why) for line in lines] == [("1", Why.FOUND), ("2", Why.CANDIDATE)]


def test_a_note_without_a_shared_word(nursery, curator):
    assert why(curator, nursery.promoted.id, "zeppelin") is Why.NO_SHARED_WORD


def test_a_note_that_shares_only_words_over_the_cut_off(alice, curator, monkeypatch):
    for ranks in (lexical, playground):
        monkeypatch.setattr(ranks, "CUT_OFF_NOTES", 0)
    common = [cast.promoted(alice, f"roses number{n}", source=f"bed/{n}") for n in range(4)]
    cast.promoted(alice, "roses and tulips", source="rare")
    assert why(curator, common[0].id, "roses tulips") is Why.ONLY_COMMON_WORDS
    assert why(curator, common[0].id, "roses") is Why.FOUND


def test_a_note_below_the_least_score(nursery, curator):
    assert why(curator, nursery.promoted.id, min_rank="99") is Why.BELOW_THRESHOLD


def test_a_note_outside_the_first_k_however_far_down(alice, curator):
    notes = [cast.promoted(alice, f"roses {'word ' * n}", source=f"bed/{n:02}") for n in range(52)]
    assert why(curator, notes[0].id, top_k="1") is Why.FOUND
    assert why(curator, notes[1].id, top_k="1") is Why.OUTSIDE_TOP_K
    assert why(curator, notes[51].id, top_k="1") is Why.OUTSIDE_TOP_K


def test_a_note_over_the_budget(nursery, curator):
    assert why(curator, nursery.promoted.id, char_budget="1") is Why.OVER_BUDGET


def test_a_note_of_another_namespace_is_named_only_to_whoever_may_inspect_that_one(nursery, curator):
    other = host.configure_namespace("orchard", owner=cast.OWNER, policy_revision=cast.POLICY, by="host:tests")
    for subject in ("wanda",):
        host.grant(subject, other, host.actions_of(["writer"]), by="host:tests")
    note = cast.admitted(cast.Garden(other).caller("wanda"), "Apples.", source="apples")
    hidden = told(ask(curator, expected=str(note.id)))
    assert "apples" not in hidden
    assert "orchard" not in hidden
    assert _plain(hidden, note.id) == _plain(told(ask(curator, expected=str(none := uuid4()))), none)
    host.grant("alice", other, host.actions_of(["inspect_metadata"]), by="host:tests")
    page = told(ask(curator, expected=str(note.id)))
    assert "in another namespace" in page
    assert "/ns/orchard/notes/" in page


def _plain(page, note_id):
    return re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", page.replace(str(note_id), ""))


def test_what_was_not_derived_and_what_was_for_a_retired_generation(nursery, garden, curator, settings):
    deriving = {
        "generation": "notes-1",
        "embed_profile": "model.embed@1",
        "embed_binding": STAND_IN,
        "attempt_seconds": 60,
    }
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": deriving}
    host.grant("otto", garden.binding, host.actions_of(["operator", "deriver"]), by="host:tests")
    otto = garden.caller("otto")
    assert ask(curator).context["told"].ranked[0].vectors is None
    register(otto)
    prepare(otto, nursery.promoted.id)
    # Whoever may not inspect derivations is not told whether there is one.
    assert ask(curator).context["told"].ranked[0].vectors is None
    host.grant("alice", garden.binding, host.actions_of(["inspect_derivation"]), by="host:tests")
    assert ask(curator).context["told"].ranked[0].vectors is Vectors.NOT_DERIVED
    retire(otto, "notes-1")
    assert ask(curator).context["told"].ranked[0].vectors is Vectors.STALE


def test_a_caller_that_may_not_recall_is_said_to_be_refused(nursery, garden, curator):
    assert "would be refused" not in told(ask(curator))
    host.grant("alice", garden.binding, host.actions_of(["grant"]), by="host:tests")
    assert "would be refused" in told(ask(curator, asker="charlie"))
    assert "would be refused" not in told(ask(curator, asker="bob"))


def test_whoever_only_reviews_is_not_told_what_others_may(nursery, curator):
    """The same page for somebody who may, somebody who may not, and nobody at all; of oneself it is said."""
    pages = [told(ask(curator, asker=asker)).replace(asker, "") for asker in ("bob", "charlie", "nobody")]
    plain = [re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", page) for page in pages]
    assert len(set(plain)) == 1
    assert "is told to whoever may grant" in plain[0]


@pytest.mark.parametrize("who", ["ivy", "bob", "wanda", "charlie", "stranger"])
def test_without_the_right_to_review_there_is_no_playground(nursery, sign_in, who):
    client = sign_in(who)
    for answer in (client.get(f"{NS}/search"), ask(client)):
        assert answer.status_code == 403
        assert "roses" not in told(answer)


def test_before_anything_was_taken_in_every_question_is_a_miss(garden, curator):
    assert "A miss" in told(ask(curator))
    assert curator.get(f"{NS}/search").status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"query": ""},
        {"query": "q" * 1_025},
        {"top_k": "0"},
        {"top_k": "x"},
        {"top_k": "21"},
        {"char_budget": "0"},
        {"min_rank": "nan"},
        {"min_rank": "x"},
        {"asker": "a b"},
        {"expected": "a b"},
        {"other": "1"},
        {"asker": ["bob", "bob"]},
    ],
)
def test_a_question_that_is_not_well_formed_is_refused(nursery, curator, change):
    assert curator.post(f"{NS}/search", {"query": "roses", **change}).status_code == 400


def test_a_question_in_an_address_is_refused(nursery, curator):
    assert curator.get(f"{NS}/search?query=roses").status_code == 400


def test_a_promoted_note_is_found_as_soon_as_it_is_promoted(nursery, alice, curator):
    cast.promote(alice, cast.step(nursery.candidate, State.PROMOTED))
    assert why(curator, nursery.candidate.id) is Why.FOUND
    assert why(curator, nursery.promoted.id) is Why.ARCHIVED
