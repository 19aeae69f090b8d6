"""B. Tombstones."""

import json

import psycopg
import pytest
from psycopg import errors

from archive.lifecycle import State
from archive.operations import transition
from archive.operations.intake import Outcome, intake
from archive.operations.transition import revoke
from archive.requests import Intake
from inspection import reads
from tests import cast
from tests.scenarios.counting import Counts

# Words that stand nowhere else in the database.
T = "Quincunx hedges outlive the zephyrine gardener."
WORDS = ("quincunx", "zephyrine", "outlive")


@pytest.fixture
def tombstone(alice):
    """Source (s, 1), taken in under r1, promoted, revoked."""
    intake(alice, Intake("r1", "s", "1", T))
    return cast.revoked(alice, T, source="s", revision="1", request_id="r1-again")


def test_s020_a_revoked_revision_cannot_be_taken_in_again(alice, tombstone, counts: Counts):
    with counts.refused(409, "source_revision_revoked"):
        intake(alice, Intake("r3", "s", "1", T))


def test_s020_nor_with_other_bytes(alice, tombstone, counts: Counts):
    with counts.refused(409, "source_revision_revoked"):
        intake(alice, Intake("r3", "s", "1", "Something else."))


def test_s021_another_revision_of_the_source_can(alice, tombstone, counts: Counts):
    answer = intake(alice, Intake("r4", "s", "2", T))

    assert answer.outcome is Outcome.CREATED
    assert (answer.note.state, answer.note.source_revision) == ("candidate", "2")
    assert answer.note.id != tombstone.id
    counts.grew(archive_note=1, archive_lifecycle_event=1, archive_intake_request=1)


def test_s022_a_tombstone_keeps_its_identity_and_not_a_word(alice, owner, counts: Counts):
    promoted = cast.promoted(alice, T, source="s", revision="1")
    number = owner.execute("SELECT note_number FROM archive_note WHERE id = %s", [promoted.id]).fetchone()
    assert owner.execute("SELECT count(*) FROM archive_posting WHERE note_number = %s", number).fetchone() == (6,)
    owner.execute("ANALYZE")

    revoke(alice, cast.step(promoted, State.REVOKED))

    owner.execute("ANALYZE")
    row = owner.execute("SELECT row_to_json(n) FROM archive_note n WHERE id = %s", [promoted.id]).fetchone()[0]
    assert row["text"] is None
    assert row["state"] == "revoked"
    assert {name: row[name] for name in ("text_digest", "source_revision", "char_count", "byte_count")} == {
        "text_digest": promoted.text_digest,
        "source_revision": "1",
        "char_count": len(T),
        "byte_count": len(T),
    }
    assert owner.execute("SELECT source_key FROM archive_source WHERE id = %s", [row["source_id"]]).fetchone() == ("s",)
    assert row["created_at"] < row["promoted_at"] < row["revoked_at"] == row["state_changed_at"]
    assert owner.execute("SELECT count(*) FROM archive_posting WHERE note_number = %s", number).fetchone() == (0,)
    assert owner.execute("SELECT notes, total_length FROM archive_corpus").fetchall() == [(0, 0)]
    for word in WORDS:
        assert mentions(owner, word) == [], word


ORIGIN = "letters/quincunx-hedges-outlive-the-zephyrine-gardener"


def test_an_origin_leaves_with_the_text_and_the_revision_is_still_known(alice, owner, counts: Counts):
    """It takes 2,048 letters and hyphens, in which a text can be said."""
    wanted = Intake("r1", "s", "1", "Roses.", asserted_origin=ORIGIN)
    promoted = cast.step(intake(alice, wanted).note, State.PROMOTED)
    note = transition.promote(alice, promoted).note
    assert (note.asserted_origin, ORIGIN in repr(note), ORIGIN in repr(wanted)) == (ORIGIN, False, False)
    owner.execute("ANALYZE archive_note")
    assert mentions(owner, "quincunx") == ["archive_note"]

    gone = revoke(alice, cast.step(note, State.REVOKED)).note

    assert gone.asserted_origin is None
    assert mentions(owner, "quincunx") == []
    assert reads.note_record(alice, gone.id).as_json()["asserted_origin"] is None
    # What it was is known by its digest: the same request is replayed, another one meets the tombstone.
    counts.mark()
    assert intake(alice, wanted).outcome is Outcome.REPLAYED
    with counts.refused(409, "source_revision_revoked"):
        intake(alice, Intake("r2", "s", "1", "Roses.", asserted_origin=ORIGIN))
    with counts.refused(409, "request_conflict"):
        intake(alice, Intake("r1", "s", "1", "Roses."))


def mentions(owner: "psycopg.Connection", word: str) -> list[str]:
    """Every place in tables and statistics where a word is still visible."""
    found = [
        f"statistics of {table}.{column}"
        for table, column in owner.execute(
            "SELECT tablename, attname FROM pg_stats s WHERE schemaname = 'public' AND s::text ILIKE %s", [f"%{word}%"]
        )
    ]
    tables = [name for (name,) in owner.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    for table in tables:
        rows = owner.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text ILIKE %s', [f"%{word}%"]).fetchone()
        if rows != (0,):
            found.append(table)
    return found


def test_s022_the_search_for_words_would_find_one(alice, owner):
    cast.promoted(alice, T, source="s", revision="1")
    assert sorted(mentions(owner, "quincunx")) == ["archive_note", "archive_posting"]


def test_s023_the_first_request_replays_to_the_tombstone(alice, tombstone, counts: Counts):
    answer = intake(alice, Intake("r1", "s", "1", T))

    assert answer.outcome is Outcome.REPLAYED
    assert (answer.note.id, answer.note.state, answer.note.lifecycle_version) == (tombstone.id, "revoked", 3)
    assert not any(word in json.dumps(answer.note.as_json()).lower() for word in WORDS)
    assert not any(word in repr(answer).lower() for word in WORDS)
    counts.unchanged()


def test_s026_a_tombstone_cannot_be_deleted(tombstone, owner, serving, counts: Counts):
    with pytest.raises(psycopg.Error) as by_owner:
        owner.execute("DELETE FROM archive_note WHERE id = %s", [tombstone.id])
    with pytest.raises(errors.InsufficientPrivilege):
        serving.execute("DELETE FROM archive_note WHERE id = %s", [tombstone.id])
    assert by_owner.value.sqlstate == "LY004"
    counts.unchanged()
