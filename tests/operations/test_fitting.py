"""Fitting: whole notes into a budget, in the order of their ranks."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from archive.fitting import fit
from archive.lexical import Ranked


def ranked(sizes: list[int]) -> list[Ranked]:
    return [
        Ranked(UUID(int=place), "s", "1", "0" * 64, 2, size, "public", None, float(-place))
        for place, size in enumerate(sizes)
    ]


sizes = st.lists(st.integers(1, 300), max_size=20)
budgets = st.integers(1, 1_000)


@given(sizes, budgets)
def test_every_note_is_taken_or_left_out_whole_and_in_order(given_sizes, budget):
    notes = ranked(given_sizes)
    taken, left_out = fit(notes, budget)
    assert sorted([*taken, *left_out], key=lambda pair: pair[0]) == list(enumerate(notes, start=1))
    assert [rank for rank, _ in taken] == sorted(rank for rank, _ in taken)
    assert [rank for rank, _ in left_out] == sorted(rank for rank, _ in left_out)


@given(sizes, budgets)
def test_the_budget_holds_and_nothing_that_fitted_was_left_out(given_sizes, budget):
    taken, left_out = fit(ranked(given_sizes), budget)
    assert sum(note.char_count for _, note in taken) <= budget
    for rank, note in left_out:
        before = sum(earlier.char_count for place, earlier in taken if place < rank)
        assert before + note.char_count > budget


@given(sizes)
def test_enough_room_takes_all(given_sizes):
    taken, left_out = fit(ranked(given_sizes), sum(given_sizes) + 1)
    assert (len(taken), left_out) == (len(given_sizes), [])


def test_the_last_character_of_the_budget_counts():
    assert [rank for rank, _ in fit(ranked([100, 100]), 200)[0]] == [1, 2]
    assert [rank for rank, _ in fit(ranked([100, 101, 100]), 200)[0]] == [1, 3]
    assert fit([], 1) == ([], [])
