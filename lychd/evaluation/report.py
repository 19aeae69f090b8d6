"""One evaluation, from the folder to the figures: the archive, what stands beside it, and what that should score."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from archive import lexical, limits
from lychd import scratch
from lychd.evaluation import baseline, languages, meaning, metrics, shelves
from lychd.evaluation.metrics import Answered, Figures
from lychd.evaluation.sets import Group, Query, ReadingSet
from lychd.evaluation.shelves import Shelf
from semantic import limits as semantic_limits
from semantic.presets import MINILM

AUTO: Final = "auto"

TOLERANCE: Final = 0.005
"""How far the library may be from the figures that it is known to reach."""
SAME: Final = 0.0005
"""How far the archive may be from the model's own brute force: three digits are the same."""
_COMPARED: Final = ("ndcg@10", "recall@10", "mrr@10")

Progress = Callable[[str, int, int], None]
Asked = Callable[[Shelf, Query, int], Answered]
Beside = Callable[[Group, Shelf], Mapping[str, Answered]]


@dataclass
class Tally:
    """Answers of the archive and of what stands beside it to the same questions, gathered group by group."""

    own: dict[str, Answered] = field(default_factory=dict)
    beside: dict[str, Answered] = field(default_factory=dict)

    def add(self, own: Mapping[str, Answered], beside: Mapping[str, Answered]) -> None:
        self.own.update(own)
        self.beside.update(beside)

    def figures(self, judgements: Mapping[str, Mapping[str, int]]) -> tuple[Figures, Figures]:
        return metrics.figures(self.own, judgements), metrics.figures(self.beside, judgements)


@dataclass(frozen=True)
class Stock:
    """Every group of the set on its shelf, and the text configuration that it has there."""

    reading_set: ReadingSet
    shelves: Sequence[tuple[Group, Shelf]]
    text_configurations: Sequence[str]

    @property
    def refused(self) -> dict[str, str]:
        return {document: code for _, shelf in self.shelves for document, code in shelf.refused.items()}

    def counted(self, heading: str, progress: Progress) -> Callable[[int], None]:
        """Add up documents under one heading."""
        done, total = 0, len(self.reading_set.documents)

        def count(more: int) -> None:
            nonlocal done
            done += more
            progress(heading, done, total)

        return count


def evaluate(
    reading_set: ReadingSet, *, policy: str, text_configuration: str, published: Path | None, progress: Progress
) -> dict[str, Any]:
    """Ask every judged question of the set and report; `baseline_agrees` is false where the figures cannot be trusted.

    `published` is a file with the figures that the baseline is known to reach, or None where there is none.
    """
    return POLICIES[policy](reading_set, text_configuration, published, progress)


def _by_words(
    reading_set: ReadingSet, text_configuration: str, published: Path | None, progress: Progress
) -> dict[str, Any]:
    """BM25 beside bm25s; the library has to score what it is known to score on this set."""
    with scratch.database("evaluate"):
        stock = _stocked(reading_set, text_configuration, progress)
        lexical.vacuum()
        everything, by_language = _asked(
            stock, shelves.ask, lambda group, shelf: dict(baseline.answers(group)), progress
        )
    known = _published(published, reading_set.name, "bm25")
    return _report(
        stock,
        everything,
        by_language,
        {"policy": "lexical", "lexical_policy": limits.LEXICAL_POLICY, "text_configuration": text_configuration},
        {"library": "bm25s", "coverage": 1.0},
        lambda own, beside: {
            "baseline_published": known,
            "baseline_agrees": None if known is None else _within(TOLERANCE, known, beside),
        },
    )


def _by_meaning(
    reading_set: ReadingSet, text_configuration: str, published: Path | None, progress: Progress
) -> dict[str, Any]:
    """Exact recall beside the model's own brute force over the same notes; both have to score the same."""
    meaning.require_model()
    with scratch.database("evaluate"), meaning.switched_on(MINILM):
        stock = _stocked(reading_set, text_configuration, progress)
        derived = stock.counted("derived", progress)
        for _, shelf in stock.shelves:
            meaning.derive(shelf, derived)
        meaning.settle()
        alone = meaning.BruteForce()
        embedded = stock.counted("embedded by the model alone", progress)
        everything, by_language = _asked(
            stock, meaning.ask, lambda group, shelf: dict(alone.answers(group, shelf, embedded)), progress
        )
    return _report(
        stock,
        everything,
        by_language,
        {
            "policy": "semantic",
            "semantic_policy": semantic_limits.SEMANTIC_POLICY,
            "text_configuration": text_configuration,
            "model": f"{MINILM['model']} ({MINILM['model_revision']})",
            "window_tokens": MINILM["max_tokens"],
        },
        {"library": "sentence-transformers, numpy float32", "coverage": _coverage(stock)},
        lambda own, beside: {
            "baseline_published": _published(published, reading_set.name, "cosine"),
            "baseline_agrees": _within(SAME, own, beside),
        },
    )


POLICIES: Final = {"lexical": _by_words, "semantic": _by_meaning}


def _report(
    stock: Stock,
    everything: Tally,
    by_language: Mapping[str, Tally],
    what: Mapping[str, Any],
    beside: Mapping[str, Any],
    judged: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    reading_set = stock.reading_set
    own_figures, beside_figures = everything.figures(reading_set.judgements)
    report: dict[str, Any] = {
        "dataset": reading_set.name,
        **what,
        "text_configurations": sorted(set(stock.text_configurations)),
        "groups": len(reading_set.groups),
        "documents": len(reading_set.documents),
        "queries": len(everything.own),
        **own_figures.as_json(),
        "coverage": _coverage(stock),
        "refused": _counted(stock.refused.values()),
        "baseline": {**beside_figures.as_json(), **beside},
    }
    if len(by_language) > 1:
        report["languages"] = {
            language: _side_by_side(tally, reading_set) for language, tally in sorted(by_language.items()) if tally.own
        }
    return {**report, **judged(own_figures.as_json(), beside_figures.as_json())}


def _coverage(stock: Stock) -> float:
    """The share of the documents that can be recalled."""
    documents = len(stock.reading_set.documents)
    return round((documents - len(stock.refused)) / documents, 4)


def published_beside(folder: Path) -> Path | None:
    """The published figures beside the folder of a set, if there are any."""
    file = folder.resolve().parent / "baselines.json"
    return file if file.is_file() else None


def _stocked(reading_set: ReadingSet, text_configuration: str, progress: Progress) -> Stock:
    configurations = [
        languages.text_configuration(group.language) if text_configuration == AUTO else text_configuration
        for group in reading_set.groups
    ]
    taken = Stock(reading_set, (), configurations).counted("taken in and promoted", progress)
    stocked = [
        (group, shelves.stock(group, number, configuration, taken))
        for number, (group, configuration) in enumerate(zip(reading_set.groups, configurations, strict=True))
    ]
    return Stock(reading_set, stocked, configurations)


def _asked(stock: Stock, ask: Asked, beside: Beside, progress: Progress) -> tuple[Tally, dict[str, Tally]]:
    """Ask the questions of each group, first of the archive and then of what stands beside it."""
    everything = Tally()
    by_language: dict[str, Tally] = {}
    for group, shelf in stock.shelves:
        own = {}
        for number, query in enumerate(group.queries):
            own[query.id] = ask(shelf, query, number)
            progress("asked", len(everything.own) + len(own), len(stock.reading_set.judgements))
        answers = beside(group, shelf)
        everything.add(own, answers)
        if group.language is not None:
            by_language.setdefault(group.language, Tally()).add(own, answers)
    return everything, by_language


def _side_by_side(tally: Tally, reading_set: ReadingSet) -> dict[str, Any]:
    own, library = tally.figures(reading_set.judgements)
    return {"queries": len(tally.own), **own.as_json(), "baseline": library.as_json()}


def _published(published: Path | None, name: str, method: str) -> dict[str, float] | None:
    known = None if published is None else json.loads(published.read_text(encoding="utf-8")).get(name)
    reached = None if known is None else known["vectors_and_bm25"].get(method)
    return None if reached is None else {key: reached[key] for key in _COMPARED}


def _within(tolerance: float, wanted: Mapping[str, Any], reached: Mapping[str, Any]) -> bool:
    return all(abs(wanted[key] - reached[key]) <= tolerance for key in _COMPARED)


def _counted(codes: Any) -> dict[str, int]:
    found = sorted(codes)
    return {code: found.count(code) for code in dict.fromkeys(found)}
