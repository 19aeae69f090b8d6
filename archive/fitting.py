"""Fit whole notes into a budget of characters (R-L-105): never cut, never replaced from beyond the asked number."""

from collections.abc import Sequence
from typing import TypeVar

from archive.lexical import Ranked

T = TypeVar("T", bound=Ranked)


def fit(ranked: Sequence[T], char_budget: int) -> tuple[list[tuple[int, T]], list[tuple[int, T]]]:
    """Walk the ranking in order and return (taken, left out), each with its rank from 1; a note that fits is taken."""
    taken: list[tuple[int, T]] = []
    left_out: list[tuple[int, T]] = []
    remaining = char_budget
    for rank, note in enumerate(ranked, start=1):
        if note.char_count <= remaining:
            remaining -= note.char_count
            taken.append((rank, note))
        else:
            left_out.append((rank, note))
    return taken, left_out
