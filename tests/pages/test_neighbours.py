"""What is near in meaning beside a candidate: by vectors that are there, or a sentence why there is none to compare."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from archive import authority
from archive.operations import host
from inspection import neighbours
from inspection.neighbours import WhyNot
from tests import cast
from tests.pages.paths import SECRET
from tests.pages.test_nothing_changes import rows
from tests.semantic import acts
from tests.semantic.conftest import counts, dora, meaning, script  # noqa: F401

DESK = f"/ns/{cast.GARDEN}/review"


@pytest.fixture
def seeing(garden):
    """Alice may inspect derivations as well as review."""
    host.grant("alice", garden.binding, host.actions_of(["inspect_derivation"]), by="host:tests")


@pytest.fixture
def beds(dora, otto, alice):  # noqa: F811
    """Five promoted notes with vectors and one without, and a candidate that would take the place of the first."""
    notes = [cast.promoted(alice, f"{SECRET} bed {number}", source=f"bed/{number}") for number in range(6)]
    acts.registered(otto)
    for note in notes[:5]:
        acts.derived(dora, note)
    cast.admitted(alice, f"{SECRET} bed 0, dug over", source="bed/0", revision="2")
    return notes


def found(client, query=""):
    return client.get(f"{DESK}{query}").context["meaning"]


@pytest.mark.usefixtures("seeing")
def test_the_nearest_to_the_promoted_revision_are_named_and_it_is_said_whose_vector_it_is(beds, curator, owner):
    before = rows(owner)
    answer = curator.get(DESK)
    told = answer.content.decode()
    near = answer.context["meaning"]
    assert near.why_not is None
    assert len(near.nearest) == neighbours.SHOWN
    assert {one.note_id for one in near.nearest} <= {note.id for note in beds[1:5]}
    assert sorted((one.cosine for one in near.nearest), reverse=True) == [one.cosine for one in near.nearest]
    assert (near.complete, near.promoted) == (5, 6)
    assert "5 of 6 promoted notes have a vector. A candidate has none." in told
    assert rows(owner) == before


@pytest.mark.usefixtures("seeing")
def test_they_are_the_nearest_by_whole_vectors(beds, curator, owner):
    true = owner.execute(
        "SELECT other.note_id, 1 - (other.vector <=> own.vector)"
        " FROM semantic_derivation own, semantic_derivation other"
        " WHERE own.note_id = %s AND other.id <> own.id AND other.state = 'complete' ORDER BY 2 DESC, 1 LIMIT 3",
        [beds[0].id],
    ).fetchall()
    assert [(one.note_id, one.cosine) for one in found(curator).nearest] == true


@pytest.mark.usefixtures("seeing")
def test_a_note_that_was_revoked_is_near_to_nothing_any_more(beds, alice, curator):
    gone = found(curator).nearest[0].note_id
    cast.revoke(alice, cast.step(next(note for note in beds if note.id == gone), cast.State.REVOKED))
    assert gone not in [one.note_id for one in found(curator).nearest]


@pytest.mark.usefixtures("seeing")
def test_a_promoted_revision_without_a_vector_is_said_to_have_none(beds, alice, curator):
    cast.admitted(alice, "bed 5, dug over", source="bed/5", revision="2")
    assert found(curator, "?source=bed/5").why_not is WhyNot.NOT_DERIVED


@pytest.mark.usefixtures("seeing")
def test_a_source_of_which_nothing_is_promoted_has_nothing_to_compare(beds, alice, curator):
    cast.admitted(alice, "A new bed", source="new")
    told = curator.get(f"{DESK}?source=new").content.decode()
    assert "a candidate has no vector, and nothing of its source is promoted" in told


@pytest.mark.usefixtures("seeing")
def test_among_too_many_it_is_compared_only_if_asked_for(beds, curator, monkeypatch):
    monkeypatch.setattr(neighbours, "MOST", 4)
    answer = curator.get(DESK)
    assert answer.context["meaning"].why_not is WhyNot.TOO_MANY
    assert "&amp;meaning=1" in answer.content.decode()
    assert found(curator, "?meaning=1").why_not is None


def test_while_derivation_is_off_it_is_said(nursery, curator):
    assert found(curator).why_not is WhyNot.OFF


@pytest.mark.usefixtures("seeing")
def test_a_generation_that_nobody_registered_is_said_to_be_unused(dora, alice, curator):  # noqa: F811
    cast.promoted(alice, source="roses", revision="1")
    cast.admitted(alice, "Roses want more.", source="roses", revision="2")
    assert found(curator).why_not is WhyNot.NOT_REGISTERED


@pytest.mark.usefixtures("seeing")
def test_what_is_near_in_meaning_costs_the_page_one_query_more(beds, curator, django_assert_num_queries):
    curator.get(DESK)
    with django_assert_num_queries(13):
        curator.get(DESK)


def test_whoever_may_not_inspect_derivations_is_told_nothing_of_them(beds, curator):
    with CaptureQueriesContext(connection) as asked:
        answer = curator.get(DESK)
    assert not [one["sql"] for one in asked if "semantic_" in one["sql"]], "asked before anything is read"
    assert answer.context["meaning"] == neighbours.Neighbours(WhyNot.NOT_ALLOWED)
    assert "promoted notes have a vector" not in answer.content.decode()


@pytest.mark.usefixtures("seeing")
def test_a_permission_that_ends_while_the_page_is_made_takes_the_neighbours_with_it(beds, garden, curator, monkeypatch):
    look = neighbours.Meaning.look

    def meanwhile(meaning, namespace, reviewed):  # noqa: F811
        look(meaning, namespace, reviewed)
        monkeypatch.setattr(neighbours.Meaning, "look", look)
        refuse_later.append(meaning.question.asked)

    refuse_later = []
    monkeypatch.setattr(neighbours.Meaning, "look", meanwhile)
    decide = authority.decide

    def decided(questions, point):
        answers = decide(questions, point)
        return [yes and question not in refuse_later for question, yes in zip(questions, answers, strict=True)]

    monkeypatch.setattr("archive.operations.desk.authority.decide", decided)

    assert found(curator).why_not is WhyNot.NOT_ALLOWED
    assert refuse_later
