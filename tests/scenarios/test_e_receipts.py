"""E. Receipts and resolution."""

import base64
import json

import psycopg
import pytest
from psycopg import errors

from archive.lifecycle import State
from archive.models import Recall
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.operations.transition import archive, promote, revoke
from archive.publication import Publication
from archive.refusals import SelectionStale
from archive.requests import LexicalRecall
from tests import cast
from tests.scenarios.counting import Counts

QUERY = "how does wisteria climb"
Q1 = LexicalRecall("q1", QUERY)


@pytest.fixture
def pair(alice):
    """Two promoted notes that the query finds."""
    return (
        cast.promoted(alice, "Wisteria climbs along wires.", source="wisteria"),
        cast.promoted(alice, "Clematis can climb, does it slowly.", source="clematis"),
    )


@pytest.fixture
def q1(bob, pair):
    """Bob's recall of both."""
    answer = recall(bob, Q1)
    assert len(answer.receipt["selected"]) == 2
    return answer


def test_s060_a_receipt_holds_neither_the_query_nor_a_word_of_a_note(q1, pair, owner):
    (dump,) = owner.execute("SELECT r::text || row_to_json(r)::text FROM archive_recall r").fetchone()

    for text in (QUERY, "Wisteria climbs along wires.", "Clematis can climb, does it slowly.", "climb", "slowly"):
        for form in shapes(text):
            assert form.lower() not in dump.lower(), form


def shapes(text: str) -> list[str]:
    """The text itself, in hexadecimal, and in base64 at each of the three alignments."""
    raw = text.encode()
    aligned = [base64.b64encode(b"." * shift + raw).decode()[4 if shift else 0 : -4] for shift in range(3)]
    return [text, raw.hex(), *(form for form in aligned if len(form) >= 4)]


def test_s061_the_same_request_gives_the_first_receipt_for_ever(alice, bob, q1, counts: Counts):
    better = cast.promoted(alice, "How does wisteria climb: wisteria does climb.", source="better")
    counts.mark()

    again = recall(bob, Q1)

    assert again.outcome is Publication.REPLAYED
    assert again.receipt == q1.receipt
    counts.unchanged()
    fresh = cast.asked(bob, QUERY)
    assert fresh.receipt["selected"][0]["note_id"] == str(better.id), "a new request does see the better match"


@pytest.mark.parametrize(
    "other",
    [{"top_k": 6}, {"query": QUERY + " "}, {"char_budget": 100}, {"min_rank": 0.5}],
    ids=str,
)
def test_s062_another_request_under_one_identity_is_a_conflict(bob, q1, counts: Counts, other):
    with counts.refused(409, "request_conflict"):
        recall(bob, LexicalRecall(**{"request_id": "q1", "query": QUERY, **other}))


def test_s062_so_is_another_subject(alice, q1, counts: Counts):
    with counts.refused(409, "request_conflict"):
        recall(alice, Q1)


def test_s064_a_resolution_gives_every_text_attributed_and_as_data(bob, q1, pair, counts: Counts):
    resolved = resolve(bob, "q1")

    texts = {"wisteria": "Wisteria climbs along wires.", "clematis": "Clematis can climb, does it slowly."}
    notes = {str(note.id): note for note in pair}
    told = [source.as_json() for source in resolved.sources]
    assert [one["rank"] for one in told] == [1, 2]
    assert {one["note_id"] for one in told} == set(notes)
    for one in told:
        note = notes[one["note_id"]]
        assert one == {
            "rank": one["rank"],
            "note_id": str(note.id),
            "source_key": note.source_key,
            "source_revision": "1",
            "text_digest": note.text_digest,
            "lifecycle_version": 2,
            "classification": "public",
            "data": {"text": texts[note.source_key]},
        }
        outside = json.dumps({key: value for key, value in one.items() if key != "data"})
        assert texts[note.source_key] not in outside
    assert str(resolved.receipt_id) == q1.receipt["receipt_id"]
    counts.unchanged()


@pytest.mark.parametrize(("decide", "state"), [(archive, State.ARCHIVED), (revoke, State.REVOKED)])
def test_s065_one_note_withdrawn_refuses_the_whole(alice, bob, q1, pair, counts: Counts, decide, state):
    decide(alice, cast.step(pair[0], state))

    with counts.refused(409, "selection_stale"):
        resolve(bob, "q1")
    with pytest.raises(SelectionStale) as no:
        resolve(bob, "q1")
    assert "limb" not in repr((no.value.args, no.value.faults, no.value.extra, no.value.detail))


def test_s066_a_superseded_note_refuses_and_its_successor_is_not_offered(alice, bob, q1, pair, counts: Counts):
    newer = cast.admitted(alice, "Wisteria climbs along oak.", source="wisteria", revision="2")
    promote(alice, cast.step(newer, State.PROMOTED))

    with counts.refused(409, "selection_stale"):
        resolve(bob, "q1")
    with pytest.raises(SelectionStale) as no:
        resolve(bob, "q1")
    assert str(newer.id) not in repr((no.value.args, no.value.faults, no.value.extra, no.value.detail))


def test_s067_an_empty_receipt_resolves_to_no_sources(bob, pair, counts: Counts):
    cast.asked(bob, "nasturtium", request_id="q0")
    counts.mark()

    assert resolve(bob, "q0").sources == ()
    counts.unchanged()


def test_s069_a_receipt_is_neither_changed_nor_deleted(q1, owner, serving, counts: Counts):
    for connection in (owner, serving):
        with pytest.raises(psycopg.Error) as no:
            connection.execute("UPDATE archive_recall SET subject = 'alice'")
        assert no.value.sqlstate == "LY010"
    with pytest.raises(psycopg.Error) as no:
        owner.execute("DELETE FROM archive_recall")
    assert no.value.sqlstate == "LY004"
    with pytest.raises(errors.InsufficientPrivilege):
        serving.execute("DELETE FROM archive_recall")
    counts.unchanged()


def test_s070_a_receipt_resolves_for_nobody_but_its_subject(alice, q1, counts: Counts):
    with counts.refused(409, "receipt_binding_mismatch"):
        resolve(alice, "q1")
    assert Recall.objects.get().subject == "bob"
