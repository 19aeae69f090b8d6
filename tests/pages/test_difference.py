"""What a text changes of another: both can be put together again, and the work is bounded whatever they are."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.visible import Mark, visible
from inspection.pages.desk import laid_out
from inspection.pages.difference import MOST_CHARS, MOST_STEPS, Change, difference

TEXTS = st.text(alphabet=st.sampled_from("ab \n.é猫\u200bр"), max_size=60)


def put_together(found):
    earlier = "".join(one.text for one in found.stretches if one.change is not Change.ADDED)
    later = "".join(one.text for one in found.stretches if one.change is not Change.REMOVED)
    return earlier, later


@given(TEXTS, TEXTS)
def test_a_change_gives_both_texts_back_to_the_letter(earlier, later):
    found = difference(earlier, later)
    assert put_together(found) == (earlier, later)
    assert found.nothing is (earlier == later)


@given(TEXTS, TEXTS)
def test_a_change_is_shown_with_the_marks_of_the_whole_texts(earlier, later):
    before, after = visible(earlier), visible(later)
    shown = laid_out(difference(earlier, later), before, after)
    kept = [piece for one in shown if one.change is not Change.REMOVED for piece in one.pieces]
    assert "".join(piece.text for piece in kept) == "".join(piece.text for piece in after.pieces)
    assert sum(piece.mark is Mark.HIDDEN for piece in kept) == after.hidden
    assert sum(piece.mark is Mark.LOOKALIKE for piece in kept) == after.lookalikes


def test_one_word_in_a_line_is_all_that_is_marked():
    found = difference("Roses want sun.\nWater them.\n", "Roses want shade.\nWater them.\n")
    assert [(one.change.value, one.text) for one in found.stretches] == [
        ("kept", "Roses want "),
        ("removed", "sun"),
        ("added", "shade"),
        ("kept", ".\nWater them.\n"),
    ]
    assert found.words
    assert (found.removed, found.added) == (3, 5)


def _document(size, draw):
    words = [f"word{number}" for number in range(3_000)]
    lines = []
    while sum(map(len, lines)) < size:
        lines.append(" ".join(draw.choice(words) for _ in range(12)) + "\n")
    return "".join(lines)[:size]


@pytest.mark.parametrize("size", [16_384, 50 * 1024, 200 * 1024])
@pytest.mark.parametrize("share", [0.01, 0.2, 1.0])
def test_long_texts_cost_no_more_than_the_budget(size, share):
    draw = random.Random(size)
    earlier = _document(size, draw)
    later = " ".join("other" + word if draw.random() < share else word for word in earlier.split(" "))
    found = difference(earlier, later)
    assert found.steps <= MOST_STEPS
    assert put_together(found) == (earlier, later)
    if size + len(later) > MOST_CHARS:
        assert not found.words


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("\n" * 16_384, "\n" * 16_000),
        ("a\n" * 8_000, "b\n" * 8_000),
        ("ab " * 5_000, "ba " * 5_000),
        ("x" * 16_384, "y" * 16_384),
        ("", "new"),
        ("old", ""),
    ],
)
def test_monotonous_texts_cost_no_more_either(earlier, later):
    found = difference(earlier, later)
    assert found.steps <= MOST_STEPS
    assert put_together(found) == (earlier, later)


def test_a_small_change_of_the_longest_note_is_marked_by_words():
    draw = random.Random(7)
    earlier = _document(16_384, draw)
    later = " ".join("other" if draw.random() < 0.02 else word for word in earlier.split(" "))
    assert difference(earlier, later).words
