"""Borders that no other test crosses on its own."""

import pytest

from archive.lifecycle import State
from archive.models import Namespace
from archive.operations.intake import intake_many
from archive.operations.review import review
from archive.operations.transition import promote, transition_many
from archive.refusals import AuthorityRefused, BatchRolledBack, IntegrityFailure, RecordAbsent
from inspection import reads
from inspection.cursors import PageRequest
from tests import cast


def test_a_note_of_another_namespace_cannot_be_decided_here(garden, alice):
    meadow = cast.plant("meadow")
    cast.admitted(alice)
    elsewhere = cast.admitted(meadow.caller("alice"), "Clover feeds bees.", source="clover")

    with pytest.raises(RecordAbsent):
        promote(alice, cast.step(elsewhere, State.PROMOTED))


def test_an_atomic_batch_with_one_refusal_moves_nothing(garden, alice, ivy):
    first, second = cast.admitted(alice, source="roses"), cast.admitted(alice, source="tulips")

    with pytest.raises(BatchRolledBack):
        transition_many(
            alice,
            [cast.step(first, State.PROMOTED), cast.step(second, State.PROMOTED, expected=7)],
            atomic=True,
        )

    assert reads.note_record(ivy, first.id).state == "candidate"


def test_a_batch_that_is_refused_under_the_hold_makes_no_namespace(alice, scripted):
    scripted.script = [True, False]

    with pytest.raises(AuthorityRefused):
        intake_many(alice, [cast.wanted(source="roses"), cast.wanted(source="tulips")])

    assert not Namespace.objects.exists()


def test_a_text_that_was_written_over_is_not_shown_for_review(alice, superuser):
    note = cast.admitted(alice)
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE archive_note SET text = 'Roses want morning sin.' WHERE id = %s", [note.id])

    with pytest.raises(IntegrityFailure):
        review(alice, note.id)


def test_own_intakes_are_ones_own(alice, wanda):
    cast.admitted(alice, source="roses")
    cast.admitted(wanda, source="tulips")

    listed = reads.list_own_intakes(wanda, PageRequest()).items

    assert [note.source_key for note in listed] == ["tulips"]
