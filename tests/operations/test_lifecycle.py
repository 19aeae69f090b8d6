"""The lifecycle, all of it: each of the sixteen pairs of states, through the operations and past them."""

import itertools
from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest

from archive import lifecycle
from archive.lifecycle import NOTE_EDGES, Reason, State
from archive.models import LifecycleEvent, Note
from archive.operations.transition import archive, promote, revoke, transition_many
from archive.records import NoteRecord
from archive.requests import Transition
from tests import cast
from tests.scenarios.counting import Counts, refused

# Specification 5.7, written down again.
LEGAL = {
    ("candidate", "promoted"),
    ("promoted", "archived"),
    ("candidate", "revoked"),
    ("promoted", "revoked"),
    ("archived", "revoked"),
}
PAIRS = list(itertools.product(State, State))
REACH: dict[State, Callable[..., NoteRecord]] = {
    State.CANDIDATE: cast.admitted,
    State.PROMOTED: cast.promoted,
    State.ARCHIVED: cast.archived,
    State.REVOKED: cast.revoked,
}
ACT = {State.PROMOTED: promote, State.ARCHIVED: archive, State.REVOKED: revoke}


def names(pair: tuple[State, State]) -> str:
    return f"{pair[0]} to {pair[1]}"


def test_the_table_is_the_specifications():
    assert {(start.value, end.value) for start, end in NOTE_EDGES} == LEGAL
    for start, end in PAIRS:
        assert lifecycle.is_legal(start, end) is ((start.value, end.value) in LEGAL)
    assert [state.value for state in State] == ["candidate", "promoted", "archived", "revoked"]


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair[1] is not State.CANDIDATE], ids=names)
@pytest.mark.parametrize("door", ["one", "many"])
def test_each_step_through_an_operation_is_taken_or_refused(alice, counts: Counts, pair, door):
    start, end = pair
    note = REACH[start](alice)
    counts.mark()

    def step() -> NoteRecord:
        if door == "one":
            return ACT[end](alice, cast.step(note, end)).note
        return transition_many(alice, [cast.step(note, end)])[0].given().note

    if (start.value, end.value) not in LEGAL:
        with counts.refused(409, "illegal_transition"):
            step()
        return
    moved = step()

    assert (moved.state, moved.lifecycle_version) == (end.value, note.lifecycle_version + 1)
    row = Note.objects.get(id=note.id)
    assert (row.state, row.lifecycle_version) == (end.value, note.lifecycle_version + 1)
    assert (row.text is None) is (end is State.REVOKED)
    assert row.state_changed_at == getattr(row, f"{end.value}_at")
    event = LifecycleEvent.objects.filter(note=row).latest("to_version")
    assert (event.from_state, event.to_state) == (start.value, end.value)
    assert (event.from_version, event.to_version) == (note.lifecycle_version, note.lifecycle_version + 1)
    assert event.created_at == row.state_changed_at
    assert counts.look()["archive_lifecycle_event"][0] == counts.last["archive_lifecycle_event"][0] + 1


@pytest.mark.parametrize("pair", PAIRS, ids=names)
@pytest.mark.parametrize("role", ["serving", "owner"])
def test_each_step_in_raw_sql_is_taken_or_refused_by_the_database(alice, request, counts: Counts, pair, role):
    start, end = pair
    connection = request.getfixturevalue(role)
    note = REACH[start](alice)
    version = note.lifecycle_version + 1
    counts.mark()

    def step() -> None:
        with connection.transaction():
            connection.execute("SELECT 1 FROM archive_namespace FOR UPDATE")
            connection.execute(
                "UPDATE archive_note SET state = %s, lifecycle_version = %s,"
                " text = CASE WHEN %s THEN NULL ELSE text END WHERE id = %s",
                [end.value, version, end is State.REVOKED, note.id],
            )
            connection.execute(
                "INSERT INTO archive_lifecycle_event (namespace_id, note_id, from_state, to_state, from_version,"
                " to_version, cause, subject, created_at)"
                " SELECT namespace_id, id, %s, %s, %s, %s, 'explicit', 'sql', clock_timestamp()"
                " FROM archive_note WHERE id = %s",
                [start.value, end.value, version - 1, version, note.id],
            )

    if (start.value, end.value) in LEGAL:
        step()
        assert Note.objects.get(id=note.id).state == end.value
        return
    with pytest.raises(psycopg.Error) as no:
        step()
    assert no.value.sqlstate == "LY003"
    counts.unchanged()


@pytest.mark.parametrize("start", list(State))
def test_an_absent_note_answers_first_then_the_version_then_the_edge(alice, counts: Counts, start):
    note = REACH[start](alice)
    with counts.refused(404, "record_absent"):
        archive(alice, Transition(uuid4(), State.ARCHIVED, 1))
    with counts.refused(409, "lifecycle_version_conflict"):
        archive(alice, cast.step(note, State.ARCHIVED, expected=note.lifecycle_version + 1))
    if start is not State.PROMOTED:
        with counts.refused(409, "illegal_transition"):
            archive(alice, cast.step(note, State.ARCHIVED))


@pytest.mark.parametrize("reason", [None, *Reason])
def test_a_reason_of_the_closed_list_is_kept_with_the_event(alice, reason):
    note = cast.promoted(alice)
    revoke(alice, cast.step(note, State.REVOKED, reason))
    event = LifecycleEvent.objects.get(note_id=note.id, to_state="revoked")
    assert event.reason == (None if reason is None else reason.value)


def test_a_superseding_promotion_gives_its_reason_to_itself_alone(alice):
    cast.promoted(alice, revision="1")
    newer = cast.admitted(alice, "newer", revision="2")
    promote(alice, cast.step(newer, State.PROMOTED, Reason.OUTDATED))
    told = list(LifecycleEvent.objects.order_by("id").values_list("to_state", "cause", "reason"))
    assert told[-2:] == [("archived", "superseded", None), ("promoted", "explicit", "outdated")]


def test_a_chain_of_revisions_keeps_one_promoted_and_names_each_successor(alice):
    chain = [cast.promoted(alice, f"Roses, revision {revision}.", revision=revision) for revision in "12345"]
    rows = list(Note.objects.order_by("created_at").values_list("state", "lifecycle_version", "superseded_by_id"))
    assert rows == [*[("archived", 3, note.id) for note in chain[1:]], ("promoted", 2, None)]
    texts = list(Note.objects.order_by("created_at").values_list("text", "text_digest"))
    assert texts == [(f"Roses, revision {n}.", note.text_digest) for n, note in enumerate(chain, start=1)]


def test_revoking_the_newest_revision_does_not_bring_an_older_one_back(alice, bob):
    older = cast.promoted(alice, "Roses, older.", revision="1")
    newer = cast.promoted(alice, "Roses, newer.", revision="2")
    revoke(alice, cast.step(newer, State.REVOKED))
    assert Note.objects.get(id=older.id).state == "archived"
    assert cast.asked(bob, "roses").receipt["outcome"] == "miss"


# --- a second person -------------------------------------------------------------------------------------------------


@pytest.fixture
def two_handed(transactional_db) -> cast.Garden:
    """A namespace that wants a second person for each promotion."""
    return cast.plant("orchard", second_person=True)


def test_who_took_a_note_in_cannot_promote_it_where_a_second_person_is_asked_for(two_handed):
    alice, wanda = two_handed.caller("alice"), two_handed.caller("wanda")
    own, foreign = cast.admitted(alice, source="a"), cast.admitted(wanda, source="b")

    with refused(409, "second_person_required"):
        promote(alice, cast.step(own, State.PROMOTED))
    assert promote(alice, cast.step(foreign, State.PROMOTED)).note.state == "promoted"
    later = cast.admitted(wanda, source="c")
    answers = transition_many(alice, [cast.step(own, State.PROMOTED), cast.step(later, State.PROMOTED)])
    assert [answer.refusal and answer.refusal.code for answer in answers] == ["second_person_required", None]


def test_a_second_person_is_asked_for_after_version_and_edge(two_handed):
    alice = two_handed.caller("alice")
    note = cast.admitted(alice)
    with refused(409, "lifecycle_version_conflict"):
        promote(alice, cast.step(note, State.PROMOTED, expected=2))
    assert revoke(alice, cast.step(note, State.REVOKED)).note.state == "revoked"
    with refused(409, "illegal_transition"):
        promote(alice, Transition(note.id, State.PROMOTED, 2))
