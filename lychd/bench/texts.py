"""Texts with the word frequencies of real ones: passages of a reading set, or of the handbook where there is no set."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lychd import handbook
from lychd.environment import CHECKOUT
from lychd.evaluation import sets

WORDS: Final = 60
DATA: Final = CHECKOUT.parent / "shared" / "data" / "scifact"


@dataclass(frozen=True)
class Texts:
    """Where passages are cut from, and the questions that people asked of the same texts."""

    name: str
    words: Sequence[Sequence[str]]
    questions: Sequence[str]

    def passages(self, count: int, *, seed: int) -> list[str]:
        """The same passages for the same seed: 60 words in a row, from anywhere."""
        chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
        found = []
        for _ in range(count):
            words = chance.choice(self.words)
            start = chance.randrange(max(1, len(words) - WORDS + 1))
            found.append(" ".join(words[start : start + WORDS]))
        return found


def of_set(folder: Path) -> Texts:
    """The texts and questions of a reading set."""
    found = sets.read(folder)
    long_enough = [words for one in found.documents if len(words := one.text.split()) >= WORDS]
    return Texts(
        found.name,
        long_enough or [[word for one in found.documents for word in one.text.split()]],
        [query.text for query in found.queries],
    )


def of_handbook() -> Texts:
    """The handbook end to end, and pieces of eight words of it as questions."""
    words = [word for note in handbook.notes() for word in note.text.split()]
    return Texts("handbook", [words], [" ".join(words[at : at + 8]) for at in range(0, len(words) - 8, 8)])


def chosen(folder: Path | None) -> Texts:
    """The texts of the named set; by default those beside the checkout, or the handbook's where there are none."""
    if folder is not None:
        return of_set(folder)
    return of_set(DATA) if (DATA / "corpus.jsonl").is_file() else of_handbook()
