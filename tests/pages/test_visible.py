"""What a reader would miss or mistake is marked, and nothing else is touched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.visible import Mark, visible


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("a\u200bb", "ZWSP"),
        ("a\u202eb", "RLO"),
        ("a\u2066b", "LRI"),
        ("a\u00adb", "SHY"),
        ("a\ufeffb", "BOM"),
        ("a\x1bb", "␛"),
        ("a\x07b", "␇"),
        ("a\x7fb", "007F"),
        ("a\rb", "␍"),
        ("a\u2028b", "LSEP"),
        ("a\u3164b", "3164"),
        ("a\ufe0fb", "FE0F"),
        ("a\U000e0041b", "E0041"),
        ("a\U000e0101b", "E0101"),
        ("a\ue000b", "E000"),
    ],
)
def test_a_hidden_character_is_counted_and_shown(text, sign):
    seen = visible(text)
    assert (seen.hidden, seen.lookalikes) == (1, 0)
    assert [piece.text for piece in seen.pieces] == ["a", sign, "b"]


@pytest.mark.parametrize(
    "text", ["plain", "two\nlines\tand a tab", "line\r\nline", "Grüße 猫 نص हिन्दी", "e\u0301", "a\u00a0b"]
)
def test_an_honest_text_is_left_alone(text):
    seen = visible(text)
    assert (seen.hidden, seen.lookalikes) == (0, 0)
    assert "".join(piece.text for piece in seen.pieces) == text


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("p\u0430yout", 1),
        ("c\u043e\u0430st", 2),
        ("\u043f\u0440ivet", 2),
        ("\u043f\u0440\u0438\u0432\u0435\u0442 world", 0),
        ("\u03b1-wave", 0),
    ],
)
def test_a_letter_of_another_script_inside_a_word_is_marked(text, count):
    assert visible(text).lookalikes == count


@given(st.text())
def test_every_character_is_shown_once_and_in_order(text):
    seen = visible(text)
    kept = [piece for piece in seen.pieces if piece.mark is not Mark.HIDDEN]
    assert seen.hidden == sum(piece.mark is Mark.HIDDEN for piece in seen.pieces)
    assert all(letter in text for piece in kept for letter in piece.text)
    assert sum(len(piece.text) for piece in kept) + seen.hidden == len(text)
