"""A. Intake: replay and conflict."""

import json
from functools import partial

import pytest

from archive import limits
from archive.models import IntakeRequest, Note
from archive.operations.intake import Admitted, Outcome, intake
from archive.refusals import SourceRevisionConflict
from archive.requests import Intake
from lychd.celery import app
from tests.scenarios.counting import Counts
from tests.scenarios.together import together

T = "Roses want morning sun."
FIRST = {"archive_namespace": 1, "archive_source": 1, "archive_note": 1, "archive_lifecycle_event": 1}


def r1(text: str = T, **more) -> Intake:
    return Intake("r1", "s", "1", text, **more)


def r2(text: str = T, **more) -> Intake:
    return Intake("r2", "s", "1", text, **more)


def test_s001_a_first_intake_makes_a_candidate_at_version_1(wanda, counts: Counts):
    answer = intake(wanda, r1())

    assert answer.outcome is Outcome.CREATED
    assert (answer.note.state, answer.note.lifecycle_version) == ("candidate", 1)
    assert T not in repr(answer)
    assert T not in json.dumps(answer.note.as_json())
    counts.grew(**FIRST, archive_intake_request=1)


def test_s002_the_same_intake_again_is_a_replay_that_writes_nothing(wanda, counts: Counts):
    first = intake(wanda, r1())
    counts.mark()

    again = intake(wanda, r1())

    assert again.outcome is Outcome.REPLAYED
    assert again.note == first.note
    counts.unchanged()


def test_s003_one_more_space_under_the_same_identity_is_a_conflict(wanda, counts: Counts):
    intake(wanda, r1())

    with counts.refused(409, "request_conflict"):
        intake(wanda, r1(T + " "))


def test_s004_other_bytes_under_one_source_revision_are_a_conflict(wanda, counts: Counts):
    intake(wanda, r1())

    with counts.refused(409, "source_revision_conflict"):
        intake(wanda, r2(T + " "))


@pytest.mark.parametrize(
    "difference", [{"asserted_origin": "letters/1"}, {"kind": "letter"}, {"retention_class": "short"}]
)
def test_s004_the_same_bytes_with_other_material_are_a_conflict_too(wanda, counts: Counts, difference):
    intake(wanda, r1())

    with counts.refused(409, "source_revision_conflict"):
        intake(wanda, r2(**difference))


def test_s005_a_second_identity_may_name_the_same_revision(wanda, counts: Counts):
    first = intake(wanda, r1())
    counts.mark()

    second = intake(wanda, r2())

    assert second.outcome is Outcome.EXISTING
    assert second.note.id == first.note.id
    counts.grew(archive_intake_request=1)
    assert (IntakeRequest.objects.count(), Note.objects.count()) == (2, 1)
    assert list(IntakeRequest.objects.order_by("id").values_list("created_note", flat=True)) == [True, False]


def test_s007_equal_text_under_two_sources_stays_two_notes(wanda, counts: Counts):
    one = intake(wanda, Intake("r1", "s", "1", T)).note
    counts.mark()

    other = intake(wanda, Intake("r2", "s2", "1", T)).note

    counts.grew(archive_source=1, archive_note=1, archive_lifecycle_event=1, archive_intake_request=1)
    assert one.id != other.id
    assert one.text_digest == other.text_digest
    for mine, its in ((one, other), (other, one)):
        assert str(its.id) not in json.dumps(mine.as_json())


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("a" * (limits.NOTE_TEXT_MAX_CHARS + 1), 413, "text_too_large"),
        ("\U0001f339" * limits.NOTE_TEXT_MAX_CHARS + "a", 413, "text_too_large"),
        ("", 400, "invalid_request"),
        (" \t\n", 400, "invalid_request"),
        ("\u00a0\u2003\u200b\u2060\ufeff", 400, "invalid_request"),
        ("roses\x00thorns", 400, "invalid_request"),
        ("roses\ud800", 400, "invalid_request"),
    ],
    ids=["characters", "bytes", "empty", "blanks", "invisible", "NUL", "surrogate"],
)
def test_s009_a_text_beyond_the_bounds_leaves_no_namespace(wanda, counts: Counts, text, status, code):
    with counts.refused(status, code):
        intake(wanda, Intake("r1", "s", "1", text))
    assert counts.last["archive_namespace"][0] == 0


def test_s009_the_longest_text_of_the_widest_characters_is_taken(wanda, counts: Counts):
    text = "\U0001f339" * limits.NOTE_TEXT_MAX_CHARS

    note = intake(wanda, Intake("r1", "s", "1", text)).note

    assert (note.char_count, note.byte_count) == (limits.NOTE_TEXT_MAX_CHARS, limits.NOTE_TEXT_MAX_BYTES)
    counts.grew(**FIRST, archive_intake_request=1)


def test_s010_a_field_that_nobody_knows_is_not_taken(wanda, counts: Counts):
    with pytest.raises(TypeError, match="state"):
        Intake("r1", "s", "1", T, state="promoted")  # type: ignore[call-arg]
    counts.unchanged()


def test_s011_two_identical_first_intakes_at_once_leave_one_note(wanda, counts: Counts):
    both = together(lambda: intake(wanda, r1()), lambda: intake(wanda, r1()))

    assert sorted(answer.outcome for answer in both) == [Outcome.CREATED, Outcome.REPLAYED]
    assert len({answer.note.id for answer in both}) == 1
    counts.grew(**FIRST, archive_intake_request=1)


def test_s011_holds_for_many_at_once(wanda, counts: Counts):
    for turn in range(5):
        wanted = Intake(f"r{turn}", f"s{turn}", "1", T)
        answers = together(*[partial(intake, wanda, wanted)] * 4)
        assert [answer.outcome for answer in answers].count(Outcome.CREATED) == 1
        assert len({answer.note.id for answer in answers}) == 1
    assert (Note.objects.count(), IntakeRequest.objects.count()) == (5, 5)


def test_s012_two_texts_for_one_revision_at_once_leave_one(wanda, counts: Counts):
    for turn in range(5):
        source = f"s{turn}"
        two = [Intake(f"{source}-{text}", source, "1", text) for text in ("T1", "T2")]
        both = together(*[partial(intake, wanda, one) for one in two])
        assert {type(answer) for answer in both} == {Admitted, SourceRevisionConflict}
        assert Note.objects.filter(source__source_key=source).count() == 1
    counts.grew(
        archive_namespace=1, archive_source=5, archive_note=5, archive_lifecycle_event=5, archive_intake_request=5
    )


def test_s014_an_intake_sends_nothing_and_embeds_nothing(wanda, counts: Counts, messages):
    known = set(app.tasks)

    intake(wanda, r1())

    assert messages == []
    assert set(app.tasks) == known
    counts.grew(**FIRST, archive_intake_request=1)
    assert not [name for name, (count, _) in counts.last.items() if name.startswith("semantic_") and count]
