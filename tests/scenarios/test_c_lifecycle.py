"""C. Lifecycle fences."""

from functools import partial

import psycopg
import pytest

from archive.lifecycle import State
from archive.models import LifecycleEvent, Note
from archive.operations.transition import archive, promote
from archive.refusals import LifecycleVersionConflict
from archive.transactions import DatabaseFault
from inspection import reads
from tests import cast
from tests.scenarios.counting import Counts
from tests.scenarios.together import held_elsewhere, together


@pytest.fixture
def earlier(alice):
    """Revision 1 of the roses, promoted at version 2."""
    return cast.promoted(alice, "Roses want morning sun.", revision="1")


@pytest.fixture
def later(alice, earlier):
    """Revision 2 of the same roses, a candidate."""
    return cast.admitted(alice, "Roses want evening shade, too.", revision="2")


def standing(*notes) -> list[tuple[str, int]]:
    rows = {note.id: note for note in Note.objects.filter(id__in=[one.id for one in notes])}
    return [(rows[one.id].state, rows[one.id].lifecycle_version) for one in notes]


def test_s030_a_promotion_is_one_step_and_one_event(alice, counts: Counts):
    note = cast.admitted(alice)
    counts.mark()

    moved = promote(alice, cast.step(note, State.PROMOTED))

    assert (moved.note.state, moved.note.lifecycle_version, moved.superseded) == ("promoted", 2, None)
    assert standing(note) == [("promoted", 2)]
    event = LifecycleEvent.objects.filter(note_id=note.id).latest("id")
    assert (event.from_state, event.to_state, event.from_version, event.to_version) == ("candidate", "promoted", 1, 2)
    assert (event.cause, event.caused_by_note_id, event.subject, event.policy_revision) == (
        "explicit",
        None,
        "alice",
        cast.POLICY,
    )
    counts.grew(archive_lifecycle_event=1, archive_posting=4, archive_corpus=1)


def test_s031_a_promotion_archives_the_revision_before_it(alice, earlier, later, owner, counts: Counts):
    moved = promote(alice, cast.step(later, State.PROMOTED))

    assert standing(later, earlier) == [("promoted", 2), ("archived", 3)]
    assert moved.superseded is not None
    assert (moved.superseded.id, moved.superseded.superseded_by) == (earlier.id, later.id)
    event = LifecycleEvent.objects.filter(note_id=earlier.id).latest("id")
    assert (event.from_state, event.to_state, event.to_version) == ("promoted", "archived", 3)
    assert (event.cause, event.caused_by_note_id) == ("superseded", later.id)
    writers = owner.execute(
        "SELECT DISTINCT xmin::text FROM archive_note UNION"
        " SELECT xmin::text FROM archive_lifecycle_event WHERE to_version + (note_id = %s)::int = 3",
        [later.id],
    ).fetchall()
    assert len(writers) == 1, "one transaction wrote both rows and both events"
    counts.grew(archive_lifecycle_event=2, archive_posting=1)


@pytest.mark.parametrize("failing", ["promoted", "archived"])
def test_s032_when_either_half_fails_neither_has_happened(alice, earlier, later, owner, counts: Counts, failing):
    owner.execute(
        "CREATE FUNCTION injected() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = 'XX999'; END $$"
    )
    owner.execute(
        "CREATE TRIGGER zz_injected BEFORE UPDATE ON archive_note FOR EACH ROW"
        f" WHEN (NEW.state = '{failing}') EXECUTE FUNCTION injected()"
    )
    try:
        with pytest.raises(DatabaseFault) as fault:
            promote(alice, cast.step(later, State.PROMOTED))
    finally:
        owner.execute("DROP FUNCTION injected CASCADE")

    assert fault.value.sqlstate == "XX999"
    assert standing(earlier, later) == [("promoted", 2), ("candidate", 1)]
    counts.unchanged()


def test_s033_a_decision_on_an_older_version_is_refused_and_told_no_version(alice, earlier, counts: Counts):
    with counts.refused(409, "lifecycle_version_conflict"):
        archive(alice, cast.step(earlier, State.ARCHIVED, expected=1))
    with pytest.raises(LifecycleVersionConflict) as no:
        archive(alice, cast.step(earlier, State.ARCHIVED, expected=1))
    told = [str(no.value), no.value.title, no.value.detail, repr(no.value.extra), repr(no.value.faults)]
    assert not any(letter.isdigit() for letter in "".join(told))


def test_s034_a_lost_answer_is_learnt_from_the_record(alice, ivy, counts: Counts):
    note = cast.admitted(alice)
    change = cast.step(note, State.PROMOTED)
    promote(alice, change)

    with counts.refused(409, "lifecycle_version_conflict"):
        promote(alice, change)
    record = reads.note_record(ivy, note.id)

    assert (record.state, record.lifecycle_version) == ("promoted", 2)


def test_s035_a_candidate_cannot_be_archived(alice, counts: Counts):
    note = cast.admitted(alice)
    with counts.refused(409, "illegal_transition"):
        archive(alice, cast.step(note, State.ARCHIVED))


def test_s036_what_was_archived_is_never_promoted_again(alice, counts: Counts):
    note = cast.archived(alice)
    assert note.lifecycle_version == 3
    with counts.refused(409, "illegal_transition"):
        promote(alice, cast.step(note, State.PROMOTED))


def test_s037_of_two_promotions_at_once_one_revision_is_left(alice, owner, counts: Counts):
    for turn in range(5):
        source = f"roses-{turn}"
        one, other = (cast.admitted(alice, f"Roses {revision}", source=source, revision=revision) for revision in "12")

        both = together(*[partial(promote, alice, cast.step(note, State.PROMOTED)) for note in (one, other)])

        assert [answer.note.state for answer in both] == ["promoted", "promoted"]
        assert sorted(standing(one, other)) == [("archived", 3), ("promoted", 2)]
        for note in (one, other):
            events = LifecycleEvent.objects.filter(note_id=note.id).order_by("id")
            steps = list(events.values_list("from_version", "to_version"))
            assert steps == [(n, n + 1) for n in range(len(steps))]
    # At no moment two: a unique index is checked row by row, not at the end.
    index = owner.execute(
        "SELECT i.indisunique, i.indimmediate, i.indisvalid, pg_get_expr(i.indpred, i.indrelid)"
        " FROM pg_index i WHERE i.indexrelid = 'note_one_promoted_per_source'::regclass"
    ).fetchone()
    assert index == (True, True, True, "(state = 'promoted'::text)")


def test_s040_a_write_beside_somebody_who_holds_the_namespace_is_refused_at_once(earlier, serving, counts: Counts):
    # Any wait for a lock would end in 55P03 instead.
    serving.execute("SET lock_timeout = 100")
    with held_elsewhere(cast.GARDEN), pytest.raises(psycopg.Error) as no:
        serving.execute("UPDATE archive_note SET superseded_by_id = NULL WHERE id = %s", [earlier.id])

    assert no.value.sqlstate == "LY005"
    counts.unchanged()


@pytest.mark.parametrize(
    "change",
    ["source_revision = '9'", f"text_digest = '{'0' * 64}'", "text = 'Roses want rain.'", "text = NULL"],
)
@pytest.mark.parametrize("role", ["serving", "owner"])
def test_s041_a_revision_is_never_rewritten(earlier, change, role, request, counts: Counts):
    connection = request.getfixturevalue(role)
    with pytest.raises(psycopg.Error) as no:
        connection.execute(f"UPDATE archive_note SET {change} WHERE id = %s", [earlier.id])
    assert no.value.sqlstate == "LY001"
    counts.unchanged()
