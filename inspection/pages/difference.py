"""What a text changes of another: lines first, then the words inside the lines that changed (ECOSYSTEM of curators).

Whatever the two texts are, the work is bounded: every step of the comparison is counted, and what would cost more than
the budget is shown as lines that left and lines that came. Joining what is kept and removed gives the earlier text
back to the letter, joining what is kept and added the later one.
"""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

MOST_CHARS: Final = 200 * 1024
MOST_STEPS: Final = 200_000
"""How many steps all comparisons of one pair may take together: about a fifth of a second."""

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")


class Change(StrEnum):
    """What became of a stretch of text."""

    KEPT = "kept"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some text that stands in the later one, in the earlier one, or in both."""

    change: Change
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Difference:
    """The stretches in reading order, and how closely they were looked at."""

    stretches: tuple[Stretch, ...] = field(repr=False)
    words: bool
    """False where the texts were too long or too different for marks on words."""
    steps: int

    @property
    def nothing(self) -> bool:
        return all(one.change is Change.KEPT for one in self.stretches)

    @property
    def added(self) -> int:
        """How many characters came."""
        return sum(len(one.text) for one in self.stretches if one.change is Change.ADDED)

    @property
    def removed(self) -> int:
        """How many characters left."""
        return sum(len(one.text) for one in self.stretches if one.change is Change.REMOVED)


def difference(earlier: str, later: str) -> Difference:
    """Compare two texts within the budget."""
    budget = _Budget(MOST_STEPS)
    closely = len(earlier) + len(later) <= MOST_CHARS
    found: list[Stretch] = []
    for kept, removed, added in _compared(_LINE.findall(earlier), _LINE.findall(later), budget):
        if kept:
            found.append(Stretch(Change.KEPT, "".join(kept)))
        elif removed and added and closely:
            before, after = "".join(removed), "".join(added)
            for same, left, came in _compared(_WORD.findall(before), _WORD.findall(after), budget):
                found += _told("".join(same), "".join(left), "".join(came))
        else:
            found += _told("", "".join(removed), "".join(added))
    return Difference(_joined(found), closely and not budget.spent, budget.steps)


def _told(kept: str, removed: str, added: str) -> list[Stretch]:
    parts = ((Change.KEPT, kept), (Change.REMOVED, removed), (Change.ADDED, added))
    return [Stretch(change, text) for change, text in parts if text]


def _joined(stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    joined: list[Stretch] = []
    for one in stretches:
        if joined and joined[-1].change is one.change:
            joined[-1] = Stretch(one.change, joined[-1].text + one.text)
        else:
            joined.append(one)
    return tuple(joined)


class _Budget:
    """Counts steps; once it is spent, everything that is left is compared no further."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.steps = 0
        self.spent = False

    def take(self, steps: int) -> bool:
        if self.steps + steps > self.most:
            self.spent = True
            return False
        self.steps += steps
        return True


Parts = tuple[Sequence[str], Sequence[str], Sequence[str]]


def _compared(a: Sequence[str], b: Sequence[str], budget: _Budget) -> list[Parts]:
    """Cut two sequences into (kept, removed, added); of the last two either may be there, beside no kept one."""
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[len(a) - 1 - end] == b[len(b) - 1 - end]:
        end += 1
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    found: list[Parts] = [(a[:start], (), ())] if start else []
    found += _middle(middle_a, middle_b, budget)
    if end:
        found.append((a[len(a) - end :], (), ()))
    return found


def _middle(a: Sequence[str], b: Sequence[str], budget: _Budget) -> list[Parts]:
    if not a and not b:
        return []
    pairs = _common(a, b, budget) if a and b else []
    found: list[Parts] = []
    at_a = at_b = 0
    for in_a, in_b in [*pairs, (len(a), len(b))]:
        if in_a > at_a or in_b > at_b:
            found.append(((), a[at_a:in_a], b[at_b:in_b]))
        if in_a < len(a):
            found.append((a[in_a : in_a + 1], (), ()))
        at_a, at_b = in_a + 1, in_b + 1
    return found


def _common(a: Sequence[Hashable], b: Sequence[Hashable], budget: _Budget) -> list[tuple[int, int]]:
    """Find a longest common subsequence as pairs of places, by Myers' greedy walk; none once the budget is spent."""
    furthest = {1: 0}
    walked: list[dict[int, int]] = []
    for edits in range(len(a) + len(b) + 1):
        # What this round takes at most is counted before it is walked, the copy for the way back included.
        if not budget.take(edits + 1):
            return []
        walked.append({k: furthest[k] for k in range(-edits - 1, edits + 2) if k in furthest})
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            y = x - k
            along = x
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            furthest[k] = x
            if not budget.take((x - along) // 16):
                return []
            if x >= len(a) and y >= len(b):
                return _way_back(a, b, walked, edits)
    return []


def _way_back(
    a: Sequence[Hashable], b: Sequence[Hashable], walked: Sequence[dict[int, int]], edits: int
) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    x, y = len(a), len(b)
    for step in range(edits, -1, -1):
        furthest, k = walked[step], x - y
        down = k == -step or (k != step and furthest[k - 1] < furthest[k + 1])
        before_k = k + 1 if down else k - 1
        before_x = furthest[before_k] if step else 0
        before_y = before_x - before_k if step else 0
        while x > before_x and y > before_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        if step:
            x, y = before_x, before_y
    return pairs[::-1]
