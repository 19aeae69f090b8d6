"""One evaluation, from the folder to the figures: the archive, the library, and what the library should score."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from archive import lexical, limits
from lychd import scratch
from lychd.evaluation import baseline, languages, metrics, shelves
from lychd.evaluation.metrics import Answered, Figures
from lychd.evaluation.sets import Group, ReadingSet

POLICIES: Final = ("lexical",)
AUTO: Final = "auto"

TOLERANCE: Final = 0.005
_COMPARED: Final = ("ndcg@10", "recall@10", "mrr@10")

Progress = Callable[[str, int, int], None]


@dataclass
class Tally:
    """Answers of the archive and of the library to the same questions, gathered group by group."""

    own: dict[str, Answered] = field(default_factory=dict)
    bm25s: dict[str, Answered] = field(default_factory=dict)

    def add(self, own: Mapping[str, Answered], bm25s: Mapping[str, Answered]) -> None:
        self.own.update(own)
        self.bm25s.update(bm25s)

    def figures(self, judgements: Mapping[str, Mapping[str, int]]) -> tuple[Figures, Figures]:
        return metrics.figures(self.own, judgements), metrics.figures(self.bm25s, judgements)


def evaluate(
    reading_set: ReadingSet, *, policy: str, text_configuration: str, published: Path | None, progress: Progress
) -> dict[str, Any]:
    """Ask every judged question of the set and report; `baseline_agrees` is false where the library is off.

    `published` is a file with the figures that the library is known to reach, or None where there is none.
    """
    everything = Tally()
    by_language: dict[str, Tally] = {}
    by_configuration: dict[str, str] = {}
    refused: dict[str, str] = {}
    with scratch.database("evaluate"):
        stocked = _stocked(reading_set, text_configuration, progress)
        lexical.vacuum()
        asked = 0
        for group, configuration, shelf in stocked:
            refused.update(shelf.refused)
            by_configuration[group.name] = configuration
            own = {query.id: shelves.ask(shelf, query, number) for number, query in enumerate(group.queries)}
            library = dict(baseline.answers(group))
            everything.add(own, library)
            if group.language is not None:
                by_language.setdefault(group.language, Tally()).add(own, library)
            asked += len(own)
            progress("asked", asked, len(reading_set.judgements))
    own_figures, library_figures = everything.figures(reading_set.judgements)
    documents = len(reading_set.documents)
    report: dict[str, Any] = {
        "dataset": reading_set.name,
        "policy": policy,
        "lexical_policy": limits.LEXICAL_POLICY,
        "text_configuration": text_configuration,
        "text_configurations": sorted(set(by_configuration.values())),
        "groups": len(reading_set.groups),
        "documents": documents,
        "queries": len(everything.own),
        **own_figures.as_json(),
        "coverage": round((documents - len(refused)) / documents, 4),
        "refused": _counted(refused.values()),
        "baseline": {"library": "bm25s", **library_figures.as_json(), "coverage": 1.0},
    }
    if len(by_language) > 1:
        report["languages"] = {
            language: _side_by_side(tally, reading_set) for language, tally in sorted(by_language.items()) if tally.own
        }
    report.update(_against(published, reading_set.name, report["baseline"]))
    return report


def published_beside(folder: Path) -> Path | None:
    """The published figures beside the folder of a set, if there are any."""
    file = folder.resolve().parent / "baselines.json"
    return file if file.is_file() else None


def _stocked(
    reading_set: ReadingSet, text_configuration: str, progress: Progress
) -> Sequence[tuple[Group, str, shelves.Shelf]]:
    done = 0

    def taken(count: int) -> None:
        nonlocal done
        done += count
        progress("taken in and promoted", done, len(reading_set.documents))

    stocked = []
    for number, group in enumerate(reading_set.groups):
        configuration = (
            languages.text_configuration(group.language) if text_configuration == AUTO else text_configuration
        )
        stocked.append((group, configuration, shelves.stock(group, number, configuration, taken)))
    return stocked


def _side_by_side(tally: Tally, reading_set: ReadingSet) -> dict[str, Any]:
    own, library = tally.figures(reading_set.judgements)
    return {"queries": len(tally.own), **own.as_json(), "baseline": library.as_json()}


def _against(published: Path | None, name: str, reached: Mapping[str, Any]) -> dict[str, Any]:
    known = None if published is None else json.loads(published.read_text(encoding="utf-8")).get(name)
    if known is None:
        return {"baseline_published": None, "baseline_agrees": None}
    wanted = {key: known["vectors_and_bm25"]["bm25"][key] for key in _COMPARED}
    agrees = all(abs(wanted[key] - reached[key]) <= TOLERANCE for key in _COMPARED)
    return {"baseline_published": wanted, "baseline_agrees": agrees}


def _counted(codes: Any) -> dict[str, int]:
    found = sorted(codes)
    return {code: found.count(code) for code in dict.fromkeys(found)}
