"""The whole way once: register, prepare, embed, recall by meaning, resolve."""

from archive.seals import verify
from semantic.operations.resolution import resolve
from tests import cast
from tests.semantic import acts


def test_a_note_is_embedded_found_by_meaning_and_resolved(meaning, alice, bob, otto, dora):
    note = cast.promoted(alice, "Roses want morning sun.")
    acts.registered(otto)

    row = acts.derived(dora, note)
    answer = acts.asked(bob, "roses in the sun", request_id="s1")

    assert (row.state, row.attempt, row.row_version) == ("complete", 1, 3)
    assert answer.receipt["coverage"] == {"promoted": 1, "complete": 1}
    assert [chosen["note_id"] for chosen in answer.receipt["selected"]] == [str(note.id)]
    assert verify(answer.receipt)
    assert [source.text for source in resolve(bob, "s1").sources] == ["Roses want morning sun."]
