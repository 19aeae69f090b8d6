"""Lists, records, review and the three decisions on the command line, with every kind of answer."""

from uuid import uuid4

import pytest

from archive.lifecycle import State
from tests import cast
from tests.cast import GARDEN

IN_GARDEN = ("--namespace", GARDEN)


def test_a_list_shows_records_and_no_text(lychd, alice):
    note = cast.admitted(alice, "Roses want morning sun.")
    ran = lychd("notes", "--as", "alice", *IN_GARDEN)
    assert ran.code == 0
    assert str(note.id) in ran.out
    assert "morning" not in ran.out

    document = lychd("notes", "--as", "alice", *IN_GARDEN, "--json").document
    assert document == {"items": [note.as_json()], "next_cursor": None}


def test_a_list_goes_on_at_its_cursor(lychd, alice):
    notes = [cast.admitted(alice, source=f"bed-{number}") for number in range(3)]
    first = lychd("notes", "--as", "alice", *IN_GARDEN, "--limit", 2, "--json").document
    rest = lychd(
        "notes", "--as", "alice", *IN_GARDEN, "--limit", 2, "--cursor", first["next_cursor"], "--json"
    ).document
    assert [one["id"] for one in first["items"] + rest["items"]] == [str(note.id) for note in notes]
    assert rest["next_cursor"] is None


def test_a_list_is_narrowed_by_state_and_source(lychd, alice):
    cast.admitted(alice, source="roses")
    wanted = cast.promoted(alice, source="tulips")
    found = lychd("notes", "--as", "alice", *IN_GARDEN, "--state", "promoted", "--source", "tulips", "--json").document
    assert [one["id"] for one in found["items"]] == [str(wanted.id)]


def test_a_writer_lists_what_it_took_in(lychd, alice, wanda):
    cast.admitted(alice, source="hers")
    own = cast.admitted(wanda, source="mine")
    assert lychd("notes", "--as", "wanda", *IN_GARDEN).code == 2
    found = lychd("notes", "--mine", "--as", "wanda", *IN_GARDEN, "--json").document
    assert [one["id"] for one in found["items"]] == [str(own.id)]
    assert lychd("notes", "--mine", "--state", "candidate", "--as", "wanda", *IN_GARDEN).code == 64


def test_a_record_is_shown_without_text(lychd, alice):
    note = cast.admitted(alice)
    ran = lychd("note", note.id, "--as", "alice", *IN_GARDEN)
    assert ran.code == 0
    assert note.text_digest in ran.out
    assert lychd("note", note.id, "--as", "alice", *IN_GARDEN, "--json").document == {"note": note.as_json()}


def test_review_shows_the_text_beside_the_promoted_one(lychd, alice):
    cast.promoted(alice, "Water in the evening.", revision="1")
    note = cast.admitted(alice, "Water in the morning.", revision="2")
    ran = lychd("review", note.id, "--as", "alice", *IN_GARDEN)
    assert ran.code == 0
    assert ran.out.index("Water in the morning.") < ran.out.index("Water in the evening.")
    assert f"lychd promote {note.id} --version 1" in ran.out

    document = lychd("review", note.id, "--as", "alice", *IN_GARDEN, "--json").document
    assert document["text"] == "Water in the morning."
    assert document["promoted"]["text"] == "Water in the evening."


def test_review_spells_out_what_a_terminal_would_obey_or_hide(lychd, alice):
    note = cast.admitted(alice, "pay\u200b \u202eevil\u202c \x1b[2J\x07\r now")
    ran = lychd("review", note.id, "--as", "alice", *IN_GARDEN)
    assert "pay<U+200B> <U+202E>evil<U+202C> <U+001B>[2J<U+0007><U+000D> now" in ran.out
    assert not set("\u200b\u202e\x1b\x07\r") & set(ran.out)
    assert lychd("review", note.id, "--as", "alice", *IN_GARDEN, "--json").out.isascii()


def test_the_three_decisions(lychd, alice):
    note = cast.admitted(alice)
    promoted = lychd("promote", note.id, "--version", 1, "--as", "alice", *IN_GARDEN)
    assert (promoted.code, "promoted, version 2" in promoted.out) == (0, True)
    archived = lychd("archive", note.id, "--version", 2, "--reason", "outdated", "--as", "alice", *IN_GARDEN, "--json")
    assert archived.document["note"]["state"] == State.ARCHIVED
    revoked = lychd("revoke", note.id, "--version", 3, "--reason", "unsafe", "--as", "alice", *IN_GARDEN, "--json")
    assert revoked.document["note"]["lifecycle_version"] == 4
    assert revoked.document["superseded"] is None


def test_a_promotion_names_what_it_took_the_place_of(lychd, alice):
    first = cast.promoted(alice, revision="1")
    second = cast.admitted(alice, revision="2")
    document = lychd("promote", second.id, "--version", 1, "--as", "alice", *IN_GARDEN, "--json").document
    assert document["superseded"]["id"] == str(first.id)


@pytest.mark.parametrize(
    ("subject", "version", "code", "exit_code"),
    [
        ("alice", 7, "lifecycle_version_conflict", 3),
        ("bob", 1, "authority_refused", 2),
        ("nobody", 1, "authority_refused", 2),
    ],
)
def test_a_refused_decision_changes_nothing_and_says_the_next_step(lychd, alice, subject, version, code, exit_code):
    note = cast.admitted(alice)
    ran = lychd("promote", note.id, "--version", version, "--as", subject, *IN_GARDEN, "--json")
    assert ran.code == exit_code
    assert ran.document["code"] == code
    assert ran.document["detail"]

    spoken = lychd("promote", note.id, "--version", version, "--as", subject, *IN_GARDEN)
    assert spoken.out == ""
    assert code in spoken.err
    assert ran.document["detail"] in spoken.err
    assert lychd("note", note.id, "--as", "alice", *IN_GARDEN, "--json").document["note"]["lifecycle_version"] == 1


def test_an_illegal_step_is_a_conflict(lychd, alice):
    note = cast.admitted(alice)
    assert lychd("archive", note.id, "--version", 1, "--as", "alice", *IN_GARDEN).code == 3


def test_a_note_that_is_not_there_is_refused(lychd, alice):
    cast.admitted(alice)
    ran = lychd("note", uuid4(), "--as", "alice", *IN_GARDEN, "--json")
    assert (ran.code, ran.document["code"]) == (2, "record_absent")


def test_an_archive_that_is_off_is_unavailable(lychd, garden, settings):
    settings.LYCHD_ARCHIVE = None
    ran = lychd("notes", "--as", "alice", *IN_GARDEN, "--json")
    assert (ran.code, ran.document["code"]) == (4, "profile_off")


def test_events_of_a_note_and_of_the_namespace(lychd, alice):
    note = cast.revoked(alice)
    ran = lychd("events", note.id, "--as", "alice", *IN_GARDEN, "--json")
    assert [(one["from_state"], one["to_state"]) for one in ran.document["items"]] == [
        (None, "candidate"),
        ("candidate", "promoted"),
        ("promoted", "revoked"),
    ]
    page = lychd("events", "--limit", 2, "--as", "alice", *IN_GARDEN, "--json").document
    rest = lychd("events", "--cursor", page["next_cursor"], "--as", "alice", *IN_GARDEN, "--json").document
    assert page["items"] + rest["items"] == ran.document["items"]
    assert "revoked" in lychd("events", "--as", "alice", *IN_GARDEN).out


def test_who_and_where_come_from_the_environment(lychd, alice, monkeypatch):
    assert lychd("notes").code == 64
    monkeypatch.setenv("LYCHD_AS", "alice")
    monkeypatch.setenv("LYCHD_NAMESPACE", GARDEN)
    assert lychd("notes").code == 0


def test_the_only_namespace_needs_no_naming_and_two_do(lychd, alice):
    assert lychd("notes", "--as", "alice").code == 0
    cast.plant("orchard")
    ran = lychd("notes", "--as", "alice")
    assert ran.code == 64
    assert f"There are: {GARDEN}, orchard." in ran.err
