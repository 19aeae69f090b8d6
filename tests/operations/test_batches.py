"""Batches: slices of bounded work, one answer an item, all or nothing where that is asked for (0.10)."""

from collections.abc import Iterator
from contextlib import nullcontext
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from archive import batches, gates, limits
from archive.authority import Action
from archive.lifecycle import Reason, State
from archive.models import IntakeRequest, LifecycleEvent, Note
from archive.operations import host
from archive.operations import intake as intake_module
from archive.operations import transition as transition_module
from archive.operations.intake import Outcome, intake, intake_many
from archive.operations.transition import transition_many
from archive.refusals import BatchRolledBack, Refusal
from archive.requests import Intake, Transition
from tests import cast
from tests.scenarios.counting import Counts, refused
from tests.scenarios.together import held_elsewhere

CREATED = {"archive_source": 1, "archive_note": 1, "archive_lifecycle_event": 1, "archive_intake_request": 1}


def items(count: int, *, start: int = 0, text: str = "Note {}.") -> list[Intake]:
    return [Intake(f"r{n}", f"s{n}", "1", text.format(n)) for n in range(start, start + count)]


def told(answers) -> list[str]:
    return [answer.result.outcome.value if answer.result else answer.refusal.code for answer in answers]


def codes(answers) -> list[str | None]:
    return [answer.refusal and answer.refusal.code for answer in answers]


class Script:
    """A script of answers, one a check point, each a function of the place of a question."""

    def __init__(self, scripted, monkeypatch, *points) -> None:
        self.calls = 0
        self.points = points
        monkeypatch.setattr(scripted, "decide_many", lambda _, questions: self.answer(questions))

    def answer(self, questions):
        point = self.points[min(self.calls, len(self.points) - 1)]
        self.calls += 1
        return [point(place) for place in range(len(questions))]


def yes(place: int) -> bool:
    return True


def no(place: int) -> bool:
    return False


def all_but(*places: int):
    return lambda place: place not in places


@pytest.fixture
def slices() -> Iterator[list[str]]:
    """Every gate that this thread passes."""
    passed: list[str] = []
    gates.occupy(passed.append)
    yield passed
    gates.occupy(None)


# --- the cut into slices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], []),
        ([1], [1]),
        ([1] * 50, [50]),
        ([1] * 51, [50, 1]),
        ([1] * 120, [50, 50, 20]),
        ([limits.SLICE_WORDS], [1]),
        ([limits.SLICE_WORDS + 1], [1]),
        ([limits.SLICE_WORDS, 1], [1, 1]),
        ([limits.SLICE_WORDS - 1, 1, 1], [2, 1]),
        ([limits.SLICE_WORDS + 1, limits.SLICE_WORDS + 1], [1, 1]),
        ([8_000] * 5, [2, 2, 1]),
    ],
)
def test_a_batch_is_cut_at_fifty_items_or_a_slice_of_words(words, expected):
    cut = list(batches.slices(words, lambda weight: weight))
    assert [len(run) for run in cut] == expected
    assert [one for run in cut for one in run] == words


def test_each_slice_has_a_hold_of_its_own(wanda, slices, counts: Counts):
    answers = intake_many(wanda, items(120))
    assert told(answers) == ["created"] * 120
    assert slices.count("commit") == 3
    assert len(set(Note.objects.values_list("created_at", flat=True))) == 3, "one moment a slice"
    counts.grew(archive_namespace=1, **dict.fromkeys(CREATED, 120))


def test_long_notes_make_short_slices(wanda, slices):
    long = "word " * 3_276
    assert told(intake_many(wanda, items(10, text=long + "{}"))) == ["created"] * 10
    assert slices.count("commit") == 3


def test_the_bounds_of_a_batch(alice, counts: Counts):
    for wrong in ([], items(limits.BATCH_INTAKE_MAX + 1)):
        with counts.refused(400, "invalid_request"):
            intake_many(alice, wrong)
    with counts.refused(400, "invalid_request"):
        intake_many(alice, items(51), atomic=True)
    with counts.refused(400, "invalid_request"):
        intake_many(alice, items(3, text="w " * 8_000 + "{}"), atomic=True)
    note = cast.admitted(alice)
    step = cast.step(note, State.PROMOTED)
    for steps, atomic in (([], False), ([step] * (limits.BATCH_TRANSITION_MAX + 1), False), ([step] * 51, True)):
        with counts.refused(400, "invalid_request"):
            transition_many(alice, steps, atomic=atomic)
    assert told(intake_many(alice, items(50), atomic=True)) == ["created"] * 50


def test_the_largest_batch_is_taken(wanda, counts: Counts):
    answers = intake_many(wanda, items(limits.BATCH_INTAKE_MAX))
    assert told(answers) == ["created"] * limits.BATCH_INTAKE_MAX
    assert [answer.given().note.source_key for answer in answers] == [f"s{n}" for n in range(limits.BATCH_INTAKE_MAX)]


# --- each item for itself --------------------------------------------------------------------------------------------


def test_each_item_meets_what_it_would_have_met_alone(alice, counts: Counts):
    intake(alice, Intake("known", "k", "1", "Known."))
    cast.revoked(alice, "Gone.", source="gone", revision="1")
    mixed = [
        Intake("known", "k", "1", "Known."),
        Intake("known", "k", "1", "Known, changed."),
        Intake("other", "k", "1", "Known."),
        Intake("third", "k", "1", "Known, changed."),
        Intake("r", "gone", "1", "Gone."),
        Intake("fresh", "f", "1", "Fresh."),
        Intake("again", "k", "2", "Known, revised."),
    ]
    counts.mark()

    answers = intake_many(alice, mixed)

    assert told(answers) == [
        "replayed",
        "request_conflict",
        "existing",
        "source_revision_conflict",
        "source_revision_revoked",
        "created",
        "created",
    ]
    counts.grew(archive_source=1, archive_note=2, archive_lifecycle_event=2, archive_intake_request=3)
    alone = [_alone(alice, one) for one in mixed]
    assert alone == ["replayed", "request_conflict", "replayed", *told(answers)[3:5], "replayed", "replayed"]


def _alone(caller, wanted) -> str:
    try:
        return intake(caller, wanted).outcome.value
    except Refusal as refusal:
        return refusal.code


def test_duplicates_inside_one_batch_see_each_other_in_order(wanda, counts: Counts):
    answers = intake_many(
        wanda,
        [
            Intake("r1", "s", "1", "One."),
            Intake("r1", "s", "1", "One."),
            Intake("r1", "s", "1", "Two."),
            Intake("r2", "s", "1", "One."),
            Intake("r3", "s", "1", "Two."),
            Intake("r3", "s", "2", "Two."),
        ],
    )
    assert told(answers) == [
        "created",
        "replayed",
        "request_conflict",
        "existing",
        "source_revision_conflict",
        "created",
    ]
    assert len({answer.result.note.id for answer in answers if answer.result}) == 2
    counts.grew(
        archive_namespace=1, archive_source=1, archive_note=2, archive_lifecycle_event=2, archive_intake_request=3
    )


def test_a_batch_that_is_sent_again_replays_item_by_item(wanda, counts: Counts):
    first = intake_many(wanda, items(60))
    counts.mark()
    again = intake_many(wanda, items(60))
    assert told(again) == ["replayed"] * 60
    assert [one.given().note.id for one in again] == [one.given().note.id for one in first]
    counts.unchanged()
    longer = intake_many(wanda, items(70))
    assert told(longer) == ["replayed"] * 60 + ["created"] * 10


def test_a_batch_and_its_items_have_the_same_identities(wanda):
    (answer,) = intake_many(wanda, items(1))
    assert intake(wanda, items(1)[0]).outcome is Outcome.REPLAYED
    assert intake(wanda, items(1)[0]).note.id == answer.given().note.id
    request = IntakeRequest.objects.get()
    assert (request.request_id, request.created_note) == ("r0", True)


# --- all or nothing --------------------------------------------------------------------------------------------------


def test_an_atomic_batch_with_one_refusal_writes_nothing_and_names_each_item(wanda, counts: Counts):
    intake(wanda, Intake("known", "k", "1", "Known."))
    with counts.refused(409, "batch_rolled_back"):
        intake_many(
            wanda, [*items(2), Intake("known", "k", "1", "Changed."), Intake("r9", "s9", "1", "x")], atomic=True
        )
    with pytest.raises(BatchRolledBack) as no_answer:
        intake_many(wanda, [*items(1), Intake("known", "k", "1", "Changed.")], atomic=True)
    assert no_answer.value.extra == {
        "items": [{"status": 409, "code": "batch_rolled_back"}, {"status": 409, "code": "request_conflict"}]
    }


def test_an_atomic_first_batch_that_is_refused_leaves_no_namespace(wanda, counts: Counts):
    with counts.refused(409, "batch_rolled_back"):
        intake_many(wanda, [Intake("r1", "s", "1", "One."), Intake("r1", "s", "1", "Two.")], atomic=True)
    assert counts.last["archive_namespace"][0] == 0


def test_an_atomic_batch_without_a_refusal_is_one_transaction(wanda, slices, counts: Counts):
    assert told(intake_many(wanda, items(50), atomic=True)) == ["created"] * 50
    assert slices.count("commit") == 1
    assert told(intake_many(wanda, items(50), atomic=True)) == ["replayed"] * 50


def test_atomic_transitions_are_all_or_nothing(alice, counts: Counts):
    notes = [cast.admitted(alice, source=f"s{n}") for n in range(3)]
    steps = [cast.step(note, State.PROMOTED) for note in notes]
    stale = cast.step(notes[1], State.PROMOTED, expected=9)
    with counts.refused(409, "batch_rolled_back"):
        transition_many(alice, [steps[0], stale, steps[2]], atomic=True)
    with pytest.raises(BatchRolledBack) as no_answer:
        transition_many(alice, [steps[0], stale], atomic=True)
    assert [one["code"] for one in no_answer.value.extra["items"]] == [
        "batch_rolled_back",
        "lifecycle_version_conflict",
    ]
    assert codes(transition_many(alice, steps, atomic=True)) == [None] * 3


# --- authority -------------------------------------------------------------------------------------------------------


def test_authority_is_asked_once_a_point_and_once_a_slice_under_the_hold(wanda, scripted):
    intake_many(wanda, items(120))
    assert scripted.calls == 1 + 3 + 1
    assert len(scripted.asked) == 120 * 3


def test_who_is_refused_everything_is_refused_plainly(wanda, scripted, counts: Counts):
    scripted.script = [False]
    with counts.refused(403, "authority_refused"):
        intake_many(wanda, items(3))
    assert counts.last["archive_namespace"][0] == 0


def test_an_item_that_is_refused_before_is_refused_alone(wanda, scripted, monkeypatch, counts: Counts):
    Script(scripted, monkeypatch, all_but(1), yes, yes)
    answers = intake_many(wanda, items(3))
    assert told(answers) == ["created", "authority_refused", "created"]
    counts.grew(archive_namespace=1, **dict.fromkeys(CREATED, 2))


def test_a_second_slice_that_is_refused_under_the_hold_leaves_the_first_standing(
    wanda, scripted, monkeypatch, counts: Counts
):
    Script(scripted, monkeypatch, yes, yes, no, yes)
    answers = intake_many(wanda, items(60))
    assert told(answers) == ["created"] * 50 + ["authority_refused"] * 10
    counts.grew(archive_namespace=1, **dict.fromkeys(CREATED, 50))


def test_a_batch_refused_whole_under_the_hold_leaves_no_namespace(wanda, scripted, monkeypatch, counts: Counts):
    Script(scripted, monkeypatch, yes, no, yes)
    with counts.refused(403, "authority_refused"):
        intake_many(wanda, items(3))


def test_an_answer_withheld_after_the_commit_undoes_nothing(wanda, scripted, monkeypatch, counts: Counts):
    script = Script(scripted, monkeypatch, yes, yes, all_but(0))
    answers = intake_many(wanda, items(3))
    assert told(answers) == ["authority_refused", "created", "created"]
    counts.grew(archive_namespace=1, **dict.fromkeys(CREATED, 3))
    script.points, script.calls = (yes, yes, no), 0
    with refused(403, "authority_refused"):
        intake_many(wanda, items(5))
    assert Note.objects.count() == 5


def test_atomic_and_one_item_refused_by_authority_writes_nothing(wanda, scripted, monkeypatch, counts: Counts):
    for points in ((all_but(1), yes, yes), (yes, all_but(1), yes)):
        Script(scripted, monkeypatch, *points)
        with counts.refused(409, "batch_rolled_back"):
            intake_many(wanda, items(3), atomic=True)


def test_a_batch_of_several_actions_asks_for_each_its_own(alice, garden, counts: Counts):
    notes = [cast.admitted(alice, source=f"s{n}") for n in range(2)]
    host.withdraw("alice", cast.GARDEN, [Action.REVOKE])
    answers = transition_many(alice, [cast.step(notes[0], State.PROMOTED), cast.step(notes[1], State.REVOKED)])
    assert codes(answers) == [None, "authority_refused"]


def test_each_step_of_a_note_that_moves_twice_is_asked_about_as_it_will_stand(alice, scripted):
    """5.5: the object of a change is its note in the state from which it moves."""
    first = cast.promoted(alice, "The first text.", source="roses", revision="1")
    second = cast.admitted(alice, "The second text.", source="roses", revision="2")
    steps = [
        Transition(second.id, State.PROMOTED, expected_version=1),
        Transition(second.id, State.ARCHIVED, expected_version=2),
        Transition(first.id, State.REVOKED, expected_version=3),
    ]
    scripted.asked.clear()

    assert codes(transition_many(alice, steps)) == [None] * 3

    objects = [
        step.object_digest(text_digest=note.text_digest, from_state=state)
        for step, note, state in zip(
            steps, (second, second, first), (State.CANDIDATE, State.PROMOTED, State.ARCHIVED), strict=True
        )
    ]
    assert [question.object_digest for question in scripted.asked[3:]] == objects * 2


def test_a_step_that_moves_in_place_of_a_refused_one_was_asked_about_as_it_stood(alice, scripted, monkeypatch):
    note = cast.admitted(alice)
    steps = [Transition(note.id, state, expected_version=1) for state in (State.PROMOTED, State.REVOKED)]
    asked = []
    points = iter((yes, all_but(0), yes))

    def answers(_, questions):
        asked.extend(question.object_digest for question in questions)
        point = next(points)
        return [point(place) for place in range(len(questions))]

    monkeypatch.setattr(scripted, "decide_many", answers)

    assert codes(transition_many(alice, steps)) == ["authority_refused", None]
    moved = steps[1].object_digest(text_digest=note.text_digest, from_state=State.CANDIDATE)
    # At A1, and at A2 about what moved alone.
    assert asked[3:] == [moved, moved]


def test_how_long_notes_are_is_told_to_nobody_who_may_not_decide(alice, scripted, monkeypatch, counts: Counts):
    """A batch of all or nothing is refused for its words only after the question under the hold."""
    long = [cast.admitted(alice, "w " * 8_000 + str(n), source=f"s{n}") for n in range(8)]
    steps = [cast.step(note, State.PROMOTED) for note in long]
    with counts.refused(400, "invalid_request"):
        transition_many(alice, steps, atomic=True)
    Script(scripted, monkeypatch, yes, no)
    with counts.refused(403, "authority_refused"):
        transition_many(alice, steps, atomic=True)
    Script(scripted, monkeypatch, yes, all_but(2))
    with counts.refused(409, "batch_rolled_back"):
        transition_many(alice, steps, atomic=True)


# --- time-outs -------------------------------------------------------------------------------------------------------


def test_a_slice_that_runs_out_of_time_says_so_for_its_items_and_the_rest_goes_on(
    wanda, settings, monkeypatch, counts: Counts
):
    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, "lock": 50}
    intake(wanda, Intake("first", "first", "1", "The namespace is there."))
    counts.mark()
    slice_of = intake_module._admit_slice

    def beside_a_hold(caller, run, *, atomic):
        # Somebody holds the namespace throughout the second slice, and at no other time.
        with held_elsewhere(cast.GARDEN) if run[0].position == 50 else nullcontext():
            return slice_of(caller, run, atomic=atomic)

    monkeypatch.setattr(intake_module, "_admit_slice", beside_a_hold)
    answers = intake_many(wanda, items(120))

    assert told(answers) == ["created"] * 50 + ["archive_timeout"] * 50 + ["created"] * 20
    counts.grew(**dict.fromkeys(CREATED, 70))
    monkeypatch.undo()
    assert told(intake_many(wanda, items(120))) == ["replayed"] * 50 + ["created"] * 50 + ["replayed"] * 20


def test_a_batch_of_one_slice_that_runs_out_of_time_is_refused_whole(wanda, settings, counts: Counts):
    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, "lock": 50}
    intake(wanda, Intake("first", "first", "1", "The namespace is there."))
    with held_elsewhere(cast.GARDEN), counts.refused(503, "archive_timeout"):
        intake_many(wanda, items(3))


def test_a_binding_that_changes_between_two_slices_refuses_what_is_left_and_no_more(wanda, monkeypatch, counts: Counts):
    slice_of = intake_module._admit_slice

    def reconfigured(caller, run, *, atomic):
        if run[0].position == 50:
            host.configure_namespace(cast.GARDEN, owner=cast.OWNER, policy_revision="policy-2", by="host:tests")
        return slice_of(caller, run, atomic=atomic)

    monkeypatch.setattr(intake_module, "_admit_slice", reconfigured)

    assert told(intake_many(wanda, items(60))) == ["created"] * 50 + ["binding_mismatch"] * 10


# --- transitions -----------------------------------------------------------------------------------------------------


def test_each_decision_has_its_own_answer_in_order(alice, counts: Counts):
    candidate, promoted, archived = (
        cast.admitted(alice, source="a"),
        cast.promoted(alice, source="b"),
        cast.archived(alice, source="c"),
    )
    answers = transition_many(
        alice,
        [
            cast.step(candidate, State.PROMOTED, Reason.OTHER),
            cast.step(promoted, State.ARCHIVED),
            cast.step(archived, State.PROMOTED),
            cast.step(archived, State.REVOKED, expected=1),
            Transition(uuid4(), State.REVOKED, 1),
            cast.step(archived, State.REVOKED, Reason.UNSAFE),
        ],
    )
    assert codes(answers) == [None, None, "illegal_transition", "lifecycle_version_conflict", "record_absent", None]
    assert [answer.result.note.state for answer in answers if answer.result] == ["promoted", "archived", "revoked"]
    assert list(LifecycleEvent.objects.order_by("-id").values_list("reason", flat=True)[:3]) != [None] * 3


def test_a_short_batch_of_long_notes_that_runs_out_of_time_tells_what_stands(alice, settings, monkeypatch):
    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, "lock": 50}
    notes = [cast.admitted(alice, "word " * 3_000, source=f"long-{n}") for n in range(7)]
    slice_of = transition_module._move_slice

    def beside_a_hold(caller, run, questions, answers, *, atomic):
        with held_elsewhere(cast.GARDEN) if answers else nullcontext():
            return slice_of(caller, run, questions, answers, atomic=atomic)

    monkeypatch.setattr(transition_module, "_move_slice", beside_a_hold)

    found = codes(transition_many(alice, [cast.step(note, State.PROMOTED) for note in notes]))

    assert set(found[:6]) == {None}
    assert found[6:] == ["archive_timeout"]


def test_one_note_may_take_two_steps_in_one_batch(alice, counts: Counts):
    note = cast.admitted(alice)
    counts.mark()
    answers = transition_many(
        alice,
        [
            cast.step(note, State.PROMOTED),
            cast.step(note, State.PROMOTED),
            cast.step(note, State.ARCHIVED, expected=2),
            cast.step(note, State.REVOKED, expected=3),
        ],
    )
    assert codes(answers) == [None, "lifecycle_version_conflict", None, None]
    assert [answer.result.note.lifecycle_version for answer in answers if answer.result] == [2, 3, 4]
    row = Note.objects.get(id=note.id)
    assert (row.state, row.lifecycle_version, row.text) == ("revoked", 4, None)
    counts.grew(archive_lifecycle_event=3, archive_corpus=1)


def test_revisions_of_one_source_supersede_each_other_within_a_batch(alice, bob):
    notes = [cast.admitted(alice, f"Roses {n}.", source="roses", revision=str(n)) for n in range(4)]
    answers = transition_many(alice, [cast.step(note, State.PROMOTED) for note in notes])
    assert codes(answers) == [None] * 4
    assert [answer.given().superseded and answer.given().superseded.id for answer in answers] == [
        None,
        *[note.id for note in notes[:3]],
    ]
    rows = Note.objects.order_by("source_revision").values_list("state", "lifecycle_version", "superseded_by_id")
    assert list(rows) == [*[("archived", 3, note.id) for note in notes[1:]], ("promoted", 2, None)]
    found = cast.asked(bob, "roses").receipt["selected"]
    assert [one["note_id"] for one in found] == [str(notes[3].id)]


def test_two_hundred_decisions_are_taken_in_four_slices(alice, slices, counts: Counts):
    notes = [answer.given().note for answer in intake_many(alice, items(200))]
    slices.clear()
    answers = transition_many(alice, [cast.step(note, State.PROMOTED) for note in notes])
    assert codes(answers) == [None] * 200
    assert slices.count("commit") == 4
    again = transition_many(alice, [cast.step(note, State.PROMOTED) for note in notes])
    assert codes(again) == ["lifecycle_version_conflict"] * 200


def test_transitions_where_nothing_was_ever_taken_in(alice, counts: Counts):
    with counts.refused(404, "namespace_absent"):
        transition_many(alice, [Transition(uuid4(), State.PROMOTED, 1)])


# --- work by sets ----------------------------------------------------------------------------------------------------


def statements(act) -> int:
    with CaptureQueriesContext(connection) as captured:
        act()
    return len(captured.captured_queries)


def test_an_intake_of_fifty_takes_no_more_statements_than_of_two(wanda):
    intake_many(wanda, items(1))
    counted = {
        size: statements(lambda size=size: intake_many(wanda, items(size, start=100 * size))) for size in (1, 2, 10, 50)
    }
    assert counted[2] == counted[10] == counted[50] == counted[1], counted
    again = {
        size: statements(lambda size=size: intake_many(wanda, items(size, start=100 * size))) for size in (1, 10, 50)
    }
    assert again[1] == again[10] == again[50] < counted[1], again


def test_fifty_decisions_take_no_more_statements_than_one(alice):
    notes = [answer.given().note for answer in intake_many(alice, items(61))]
    steps = [cast.step(note, State.PROMOTED) for note in notes]
    counted = {
        len(part): statements(lambda part=part: transition_many(alice, part))
        for part in (steps[:1], steps[1:11], steps[11:])
    }
    assert len(set(counted.values())) == 1, counted
