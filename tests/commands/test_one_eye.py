"""What a page marks as hidden or mistaken, a command spells out: one eye for both."""

import json
import sys

import pytest

from archive import seals
from archive import visible as eye
from lychd.commands.telling import indented, on_one_line, pairs, table, visible
from tests import cast

# Not what spells it out, and not what Python's output cannot write.
LETTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


def test_every_character_that_a_page_marks_is_spelled_out_and_no_other():
    differ = [
        f"U+{ord(letter):04X}"
        for letter in LETTERS
        if bool(eye.visible(letter).hidden) != (visible(letter) == f"<U+{ord(letter):04X}>")
    ]
    assert differ == []


@pytest.mark.parametrize(
    "letter", ["\u115f", "\u3164", "\u2800", "\ufe0f", "\u034f", "\U000e0100", "\u0378"], ids=ascii
)
def test_review_spells_out_what_looks_like_nothing_and_counts_it(lychd, alice, letter):
    note = cast.admitted(alice, f"pay{letter}now")
    ran = lychd("review", note.id, "--as", "alice")
    assert f"pay<U+{ord(letter):04X}>now" in ran.out
    assert letter not in ran.out
    assert "marked below: 1 hidden character\n" in ran.out


def test_review_names_a_letter_of_another_script(lychd, alice):
    note = cast.admitted(alice, "p\u0430ypal is not paypal")
    ran = lychd("review", note.id, "--as", "alice")
    assert "p\u0430<U+0430>ypal is not paypal" in ran.out
    assert "marked below: 1 look-alike letter\n" in ran.out


def test_review_of_a_plain_text_says_nothing_of_marks(lychd, alice):
    ran = lychd("review", cast.admitted(alice, "Ros\u00e9s.\n\tWant sun.").id, "--as", "alice")
    assert "marked" not in ran.out


def test_resolved_texts_are_seen_by_the_same_eye(lychd, alice, bob):
    cast.promoted(alice, "roses\u3164want sun")
    request = cast.asked(bob).receipt["request_id"]
    assert "roses<U+3164>want sun" in lychd("resolve", request, "--as", "bob").out


def test_a_receipt_from_anywhere_says_nothing_to_the_terminal(lychd, tmp_path):
    receipt = {"schema": 1, "request_id": "\x1b[2Jnothing", "namespace": "a\nb"}
    receipt["receipt_digest"] = seals.digest_of(receipt)
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt), encoding="utf-8")
    ran = lychd("receipt", "verify", file)
    assert ran.code == 0
    assert "<U+001B>[2Jnothing" in ran.out
    assert "a<U+000A>b" in ran.out


@pytest.mark.parametrize(
    "said",
    [
        pairs([("name", "a\x1bb")]),
        table(("name",), [("a\x1bb",)], empty=""),
        on_one_line("a\x1bb"),
        indented("a\x1bb"),
    ],
)
def test_values_of_every_form_go_through_it(said):
    assert "a<U+001B>b" in said
