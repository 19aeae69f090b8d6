"""Requests: each bound, one below and one beyond it, in six scripts; and strings that are meant to hurt."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from archive import limits
from archive.lifecycle import State
from archive.models import Note
from archive.operations.intake import intake_many
from archive.operations.migration import migrate
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.operations.transition import transition_many
from archive.refusals import InvalidRequest, Refusal, TextTooLarge
from archive.requests import Intake, LexicalRecall, Transition, is_blank, well_formed
from tests import cast
from tests.scenarios.counting import refused

SCRIPTS = {"Latin": "a", "Greek": "ω", "Arabic": "ع", "Devanagari": "क", "Han": "漢", "beyond the first plane": "🌹"}
NAUGHTY = Path(__file__).resolve().parents[3] / "shared" / "data" / "blns" / "strings.jsonl"


def pointers(no: "pytest.ExceptionInfo[InvalidRequest]") -> list[str]:
    return [fault.pointer for fault in no.value.faults]


# --- texts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("count", [1, limits.NOTE_TEXT_MAX_CHARS - 1, limits.NOTE_TEXT_MAX_CHARS])
def test_a_text_up_to_the_bound_is_taken_as_it_is(letter, count):
    wanted = Intake("r1", "s", "1", letter * count)
    assert wanted.material("garden")["char_count"] == count
    assert wanted.material("garden")["byte_count"] == count * len(letter.encode())


@pytest.mark.parametrize("letter", SCRIPTS.values(), ids=SCRIPTS)
def test_one_character_more_is_too_much(letter):
    with pytest.raises(TextTooLarge) as no:
        Intake("r1", "s", "1", letter * (limits.NOTE_TEXT_MAX_CHARS + 1))
    assert (no.value.status, [fault.pointer for fault in no.value.faults]) == (413, ["/text"])
    assert letter * 2 not in str(no.value.faults)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_bound_in_bytes_is_a_bound_of_its_own(monkeypatch, over):
    # Four bytes are the most a character takes, so today the bound in characters is met first or at once.
    assert limits.NOTE_TEXT_MAX_BYTES == 4 * limits.NOTE_TEXT_MAX_CHARS
    monkeypatch.setattr(limits, "NOTE_TEXT_MAX_BYTES", 30)
    text = "漢" * 9 + "a" * (3 + over)
    if over > 0:
        with pytest.raises(TextTooLarge):
            Intake("r1", "s", "1", text)
    else:
        assert Intake("r1", "s", "1", text).byte_count == 30 + over


BLANK = [
    "",
    " ",
    "\t\r\n\x0b\x0c",
    "\u00a0\u1680\u2003\u202f\u3000",
    "\u200b\u200d\u2060\ufeff\u00ad",
    "\x01\x1f\x7f",
    "\u2028",
]


@pytest.mark.parametrize("text", BLANK, ids=repr)
def test_a_text_that_shows_nothing_is_refused(text):
    assert is_blank(text)
    with pytest.raises(InvalidRequest) as no:
        Intake("r1", "s", "1", text)
    assert pointers(no) == ["/text"]


@pytest.mark.parametrize("text", ["\u0301", ".", "\ue000", "\u2800", " a ", "\ufffd"], ids=repr)
def test_a_text_that_shows_something_is_not(text):
    assert not is_blank(text)
    assert Intake("r1", "s", "1", text).text == text


@pytest.mark.parametrize("text", ["a\x00", "\x00", "a\ud800b", "\udfff"], ids=repr)
def test_a_text_that_no_database_holds_is_refused(text):
    with pytest.raises(InvalidRequest) as no:
        Intake("r1", "s", "1", text)
    assert pointers(no) == ["/text"]


# --- names -----------------------------------------------------------------------------------------------------------

KEY = "a" + "-._:9Z" * 21 + "b"
ILL = [
    "",
    "-a",
    ".a",
    "_a",
    ":a",
    "a b",
    "a\n",
    "ä",
    "a\x00",
    "a\u200b",
    "a\ud800",
    "a%20",
    "a@b",
    "a\\b",
    "a?b",
    "a#b",
]


@pytest.mark.parametrize("size", [1, limits.IDENTIFIER_MAX - 1, limits.IDENTIFIER_MAX])
def test_names_up_to_the_bound_are_taken(size):
    name = KEY[:size]
    wanted = Intake(name, name, name, "Roses.", asserted_origin=name, kind=name[:64], retention_class=name[:64])
    assert wanted.request_id == name
    assert LexicalRecall(name, "roses").request_id == name
    assert well_formed("/namespace", name) == name


@pytest.mark.parametrize("name", [*ILL, KEY + "c"], ids=repr)
def test_every_name_that_is_ill_formed_is_named(name):
    with pytest.raises(InvalidRequest) as no:
        Intake(name, name, name, "Roses.", asserted_origin=name + "?", kind=name, retention_class=name)
    assert pointers(no) == [
        "/request_id",
        "/source_key",
        "/source_revision",
        "/kind",
        "/retention/class",
        "/asserted_origin",
    ]
    with pytest.raises(InvalidRequest):
        LexicalRecall(name, "roses")
    with pytest.raises(InvalidRequest):
        well_formed("/namespace", name)


def test_what_stands_in_an_address_has_no_slash_and_a_source_key_may():
    assert Intake("r1", "letters/1", "1/2", "Roses.", asserted_origin="a/b").source_key == "letters/1"
    for act in (lambda: Intake("r/1", "s", "1", "Roses."), lambda: LexicalRecall("q/1", "roses")):
        with pytest.raises(InvalidRequest) as no:
            act()
        assert pointers(no) == ["/request_id"]


@pytest.mark.parametrize(
    ("field", "pointer", "bound"),
    [
        ("kind", "/kind", limits.KIND_MAX),
        ("retention_class", "/retention/class", limits.KIND_MAX),
        ("asserted_origin", "/asserted_origin", limits.REFERENCE_MAX),
    ],
)
def test_each_of_these_has_a_bound_of_its_own(field, pointer, bound):
    for size in (bound - 1, bound):
        Intake("r1", "s", "1", "Roses.", **{field: "k" * size})
    with pytest.raises(InvalidRequest) as no:
        Intake("r1", "s", "1", "Roses.", **{field: "k" * (bound + 1)})
    assert pointers(no) == [pointer]


@pytest.mark.parametrize("mark", ["\u0301", "\u0f73", "\u0e38", "\uff9e", "\uff9f", "\U00010efb"])
def test_marks_stand_in_a_row_up_to_a_bound(mark):
    """However they decompose, and whatever stands between two rows."""
    row = "a" + mark * limits.MARKS_IN_A_ROW_MAX
    assert Intake("r1", "s", "1", row * 9).text == row * 9
    with pytest.raises(InvalidRequest) as no:
        Intake("r1", "s", "1", row + mark)
    assert pointers(no) == ["/text"]


@pytest.mark.parametrize("letter", ["\U00031350", "\U000105ff", "\u0378", "\u0903", "\u20dd", "\uac00", "\u1e69"])
def test_what_is_no_mark_stands_in_a_row_as_long_as_it_likes(letter):
    """Unassigned code points and new letters too, whatever this Python knows of them."""
    assert Intake("r1", "s", "1", letter * 9_000).text == letter * 9_000


def test_the_marks_are_all_that_the_server_sorts(owner):
    """Asked of the server itself, over every code point: which does a mark of a higher class not stay before?"""
    sorted_by_it = {
        number
        for (number,) in owner.execute(
            "SELECT n FROM generate_series(1, 1114111) n WHERE NOT n BETWEEN 55296 AND 57343"
            " AND (n = 837 OR normalize(chr(837) || chr(n), NFKD) <> chr(837) || normalize(chr(n), NFKD))"
        )
    }
    listed = {
        code
        for first, _, last in (one.partition("-") for one in limits.MARKS.split())
        for code in range(int(first, 16), int(last or first, 16) + 1)
    }
    assert len(sorted_by_it) > 900
    assert sorted_by_it - listed == set()
    # Beside them only what may become a mark in its block.
    assert all(0x1AB0 <= code <= 0x1AFF or 0x10EFA <= code <= 0x10EFF for code in listed - sorted_by_it)


@pytest.mark.parametrize("mark", ["\uff9e", "\u3099"])
def test_a_row_that_grows_by_compatibility_is_bounded_too(alice, mark):
    row = ("\u0334" * (limits.MARKS_IN_A_ROW_MAX - 1) + mark) * 2
    with pytest.raises(InvalidRequest):
        Intake("r1", "s", "1", "a" + mark * 8192 + row)


def test_the_worst_rows_of_marks_that_are_taken_can_be_promoted_in_time(alice):
    half = limits.MARKS_IN_A_ROW_MAX // 2
    worst = ("a" + "\u0344" * half + "\u0f73" * half) * 252
    assert cast.promoted(alice, worst).state == "promoted"


@pytest.mark.parametrize("field", ["retain_until", "observed_at"])
def test_a_time_needs_an_offset(field):
    Intake("r1", "s", "1", "Roses.", **{field: datetime(2026, 1, 1, tzinfo=UTC)})
    with pytest.raises(InvalidRequest) as no:
        Intake("r1", "s", "1", "Roses.", **{field: datetime(2026, 1, 1)})  # noqa: DTZ001
    assert pointers(no) == [{"retain_until": "/retention/retain_until", "observed_at": "/observed_at"}[field]]


@pytest.mark.parametrize("field", ["retain_until", "observed_at"])
@pytest.mark.parametrize("hours", [-23, -16, 16, 23])
def test_a_time_is_the_moment_that_it_names_whatever_its_offset(alice, field, hours):
    """PostgreSQL itself takes no offset of sixteen hours or more."""
    there = datetime(2026, 1, 2, 12, tzinfo=timezone(timedelta(hours=hours, minutes=41 if hours > 0 else -41)))
    note = cast.admitted(alice, **{field: there})
    assert getattr(note, field) == getattr(Note.objects.get(id=note.id), field) == there


@pytest.mark.parametrize("field", ["retain_until", "observed_at"])
def test_a_time_has_a_form_in_utc(field):
    with pytest.raises(InvalidRequest):
        Intake("r1", "s", "1", "Roses.", **{field: datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))})


# --- queries, budgets, versions, reasons -----------------------------------------------------------------------------


@pytest.mark.parametrize("letter", SCRIPTS.values(), ids=SCRIPTS)
def test_a_query_is_bounded_in_characters_whatever_its_script(letter):
    for size in (1, limits.QUERY_MAX_CHARS - 1, limits.QUERY_MAX_CHARS):
        assert len(LexicalRecall("q1", letter * size).query) == size
    for size in (0, limits.QUERY_MAX_CHARS + 1):
        with pytest.raises(InvalidRequest) as no:
            LexicalRecall("q1", letter * size)
        assert pointers(no) == ["/query"]


@pytest.mark.parametrize(
    ("field", "lowest", "highest"),
    [
        ("top_k", limits.TOP_K_MIN, limits.TOP_K_MAX),
        ("char_budget", limits.CHAR_BUDGET_MIN, limits.CHAR_BUDGET_MAX),
    ],
)
def test_a_budget_has_a_floor_and_a_ceiling(field, lowest, highest):
    for value in (lowest, lowest + 1, highest - 1, highest):
        assert getattr(LexicalRecall("q1", "roses", **{field: value}), field) == value
    for value in (-1, lowest - 1, highest + 1, 2**31, 10**400):
        with pytest.raises(InvalidRequest) as no:
            LexicalRecall("q1", "roses", **{field: value})
        assert pointers(no) == [f"/{field}"]


@pytest.mark.parametrize("rank", [-1e-300, float("nan"), float("inf"), float("-inf")])
def test_a_least_rank_is_finite_and_not_negative(rank):
    with pytest.raises(InvalidRequest) as no:
        LexicalRecall("q1", "roses", min_rank=rank)
    assert pointers(no) == ["/min_rank"]


def test_everything_wrong_with_a_recall_is_named_at_once():
    with pytest.raises(InvalidRequest) as no:
        LexicalRecall("", "\x00", top_k=0, char_budget=0, min_rank=-1)
    assert pointers(no) == ["/request_id", "/query", "/top_k", "/char_budget", "/min_rank"]


@pytest.mark.parametrize(("version", "right"), [(-1, False), (0, False), (1, True), (2**31 - 1, True), (2**31, False)])
def test_an_expected_version_is_one_that_a_note_can_have(version, right):
    from uuid import UUID

    if right:
        assert Transition(UUID(int=1), State.PROMOTED, version).expected_version == version
        return
    with pytest.raises(InvalidRequest) as no:
        Transition(UUID(int=1), State.PROMOTED, version)
    assert pointers(no) == ["/expected_version"]


@pytest.mark.parametrize("reason", ["", "x" * (limits.MIGRATION_REASON_MAX + 1), "a\x00", "\ud800"], ids=repr)
def test_the_reason_of_a_migration_is_text_within_its_bound(alice, otto, reason):
    cast.admitted(alice)
    with refused(400, "invalid_request"):
        migrate(otto, reason=reason)
    for size in (1, limits.MIGRATION_REASON_MAX):
        assert migrate(otto, reason="漢" * size).migration_id is None


def test_neither_a_text_nor_a_query_is_in_what_a_request_says_of_itself():
    assert "Zephyrine" not in repr(Intake("r1", "s", "1", "Zephyrine roses."))
    assert "Zephyrine" not in repr(LexicalRecall("q1", "Zephyrine roses."))


# --- strings meant to hurt -------------------------------------------------------------------------------------------


def naughty() -> list[str]:
    if not NAUGHTY.exists():
        return []
    # Not splitlines, for which some of the strings hold ends of lines.
    return [json.loads(line)["text"] for line in NAUGHTY.read_text(encoding="utf-8").split("\n") if line]


def test_strings_meant_to_hurt_come_back_byte_for_byte_or_are_refused_by_name(garden, alice, bob):
    strings = naughty()
    if not strings:
        pytest.skip("the collection of naughty strings is not beside this checkout")
    refusals = {}
    wanted = []
    for place, text in enumerate(strings):
        try:
            wanted.append(Intake(f"r-{place}", f"blns-{place}", "1", text))
        except Refusal as refusal:
            refusals[text] = refusal.code
    taken = [
        answer.given().note
        for start in range(0, len(wanted), 250)
        for answer in intake_many(alice, wanted[start : start + 250])
    ]
    steps = [cast.step(note, State.PROMOTED) for note in taken]
    for start in range(0, len(steps), 200):
        assert all(answer.result for answer in transition_many(alice, steps[start : start + 200]))

    found = 0
    for one, note in zip(wanted, taken, strict=True):
        assert (note.char_count, note.byte_count) == (len(one.text), len(one.text.encode()))
        request_id = one.request_id.replace("r", "q")
        answer = recall(bob, LexicalRecall(request_id, one.text[: limits.QUERY_MAX_CHARS], top_k=limits.TOP_K_MAX))
        texts = {source.note_id: source.text for source in resolve(bob, request_id).sources}
        assert len(texts) == len(answer.receipt["selected"])
        for other, held in zip(taken, wanted, strict=True):
            if other.id in texts:
                assert texts[other.id].encode() == held.text.encode()
        found += note.id in texts

    assert len(wanted) + sum(text in refusals for text in strings) == len(strings)
    assert set(refusals.values()) == {"invalid_request"}, "an empty or invisible one, none too long"
    assert found > len(strings) // 3


def test_each_string_meant_to_hurt_is_a_name_or_is_refused_as_one():
    if not naughty():
        pytest.skip("the collection of naughty strings is not beside this checkout")
    for text in naughty():
        named = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}", text) is not None
        if named:
            wanted = Intake(text, text, text, "Roses.", kind=text, asserted_origin=text)
            assert (wanted.request_id, wanted.source_key, wanted.kind) == (text, text, text)
        else:
            with pytest.raises(InvalidRequest) as no:
                Intake(text, text, text, "Roses.", kind=text)
            assert no.value.faults
