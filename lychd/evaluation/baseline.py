"""The best BM25 library on the same set, in the same process: what the archive is measured against.

bm25s with k1 1.5 and b 0.75; words of two characters or more, lower case, without English stop words, reduced by the
Snowball stemmer of the language; scripts written without spaces in overlapping pieces of two characters.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from lychd.evaluation import languages
from lychd.evaluation.metrics import DEPTH, Answered
from lychd.evaluation.sets import Group

_K1: Final = 1.5
_B: Final = 0.75

# Written out once more: a baseline that leaned on what it is held against would hide its faults.
_RUN: Final = re.compile(
    "[\u3005\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U000323af\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1780-\u17d3\u17dc-\u17dd"
    "\u1000-\u103f\u1050-\u109f]+"
)
_WORD: Final = re.compile(r"\b\w\w+\b")

Cutter = Callable[[str], list[str]]


class BaselineMissing(RuntimeError):
    """The packages of the extra `evaluate` are not installed."""


def cutter(language: str | None) -> Cutter:
    """How the library cuts text of this language into terms."""
    Stemmer, stop_words = _library()[1:]
    name = languages.snowball(language)
    stemmer = Stemmer.Stemmer(name) if name in Stemmer.algorithms() else None

    def cut(text: str) -> list[str]:
        lower = text.lower()
        pieces = [piece for run in _RUN.findall(lower) for piece in _pieces(run)]
        words = [word for word in _WORD.findall(_RUN.sub(" ", lower)) if word not in stop_words]
        return pieces + (words if stemmer is None else stemmer.stemWords(words))

    return cut


def answers(group: Group) -> Iterator[tuple[str, Answered]]:
    """Ask every question of a group; the index is built before the clock runs."""
    bm25s = _library()[0]
    cut = cutter(group.language)
    index = bm25s.BM25(k1=_K1, b=_B)
    index.index([cut(document.text) for document in group.documents], show_progress=False)
    for query in group.queries:
        started = time.perf_counter()
        terms = [term for term in cut(query.text) if term in index.vocab_dict]
        ranking = _best(index.get_scores(terms)) if terms else []
        seconds = time.perf_counter() - started
        yield query.id, Answered([group.documents[place].id for place in ranking], seconds)


def _best(scores: Any) -> list[int]:
    """The places of the ten best scores above zero; of equal ones the first in the corpus."""
    found = (-scores).argsort(kind="stable")[:DEPTH]
    return [int(place) for place in found if scores[place] > 0]


def _pieces(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]


def _library() -> tuple[Any, Any, frozenset[str]]:
    try:
        import bm25s
        import Stemmer
        from bm25s.stopwords import STOPWORDS_EN
    except ImportError:
        raise BaselineMissing(
            "The baseline needs bm25s and PyStemmer: pip install 'lychd-archive[evaluate]'."
        ) from None
    # It sets its own logger to tell every step.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return bm25s, Stemmer, frozenset(STOPWORDS_EN)
