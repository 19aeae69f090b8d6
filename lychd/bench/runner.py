"""One run: a database of its own, the cases in order of size, and the figures of all of them."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from django.db import connection

from archive import limits
from lychd import scratch
from lychd.bench import changes, http, lists, load, plans, recalls, review, sharing, texts
from lychd.bench.figures import Figure
from lychd.bench.ground import Ground, Progress
from lychd.bench.load import Scale
from lychd.bench.texts import Texts

SIZES: Final = (1_000, 10_000, 50_000)


@dataclass(frozen=True)
class Effort:
    """How often each thing is measured; more takes longer and scatters less."""

    questions: int = 200
    changes: int = 100
    batches: int = 5
    seconds: float = 4.0
    rounds: int = 3
    load: Scale = field(default_factory=Scale)
    waiting: int = 10_000
    listed: lists.Scale = field(default_factory=lists.Scale)
    visits: int = 60
    baseline: bool = False
    """Compare lists with themselves without their indexes, and not with little ones."""


EFFORTS: Final = {
    "whole": Effort(),
    # Enough to see that everything works and comes out right; its times say little.
    "small": Effort(
        questions=10,
        changes=5,
        batches=1,
        seconds=0.5,
        rounds=1,
        waiting=300,
        listed=lists.Scale(notes=1_200, namespaces=30),
        visits=2,
        load=Scale(
            writers=8, intakes=80, same=8, rounds=3, decisions=20, waiting=24, blocked_seconds=2.5, mixed_seconds=2.0
        ),
    ),
}

Case = Callable[[Ground, Effort], list[Figure]]

# What is asked at every size, in an order in which no case grows the namespace before it is measured.
AT_EVERY_SIZE: Final[dict[str, Case]] = {
    "recall": lambda ground, effort: recalls.measure(ground, effort.questions),
    "intake": lambda ground, effort: changes.single_intake(ground, effort.changes),
    "batch": lambda ground, effort: changes.batch_intake(ground, effort.batches),
    "promotion": lambda ground, effort: [
        *changes.promotion(ground, effort.changes),
        *changes.batch_promotion(ground, effort.batches),
    ],
    "revocation": lambda ground, effort: changes.revocation(ground, effort.changes),
}
# What is asked once, of the namespace as it then is.
ONCE: Final[dict[str, Case]] = {
    "sharing": lambda ground, effort: sharing.measure(ground, effort.seconds, effort.rounds),
    "load": lambda ground, effort: load.measure(ground, effort.load),
    "http": lambda ground, effort: http.measure(ground, effort.seconds, effort.rounds),
}
# What fills namespaces of its own, which takes its time; asked for by its name alone.
PAGES: Final[dict[str, Callable[[Texts, Effort, Progress], list[Figure]]]] = {
    "review": lambda chosen, effort, progress: review.measure(chosen, effort.waiting, effort.visits, progress),
    "plans": lambda chosen, effort, progress: plans.measure(chosen, effort.listed.notes, effort.questions, progress),
    "lists": lambda chosen, effort, progress: lists.measure(
        effort.listed, effort.visits // 3 or 1, progress, baseline=effort.baseline
    ),
}
NAMES: Final = ("all", *AT_EVERY_SIZE, *ONCE, *PAGES)

# Eight clients are measured where one recall is short, so that the hold and not the ranking is what they share.
SHARING_SIZE: Final = 10_000


def run(name: str, *, sizes: Sequence[int], folder: Path | None, effort: Effort, progress: Progress) -> dict[str, Any]:
    """Measure one case, or all of them, and give the report."""
    chosen = texts.chosen(folder)
    figures: list[Figure] = []
    with scratch.database("bench") as database:
        if name in PAGES:
            return _report(PAGES[name](chosen, effort, progress), chosen, [])
        ground = Ground(database, chosen, progress)
        wanted = sorted(sizes) if name not in ONCE else [min(SHARING_SIZE, max(sizes))]
        once_at = max((size for size in wanted if size <= SHARING_SIZE), default=wanted[0])
        for size in wanted:
            ground.grow(size)
            cases = {**AT_EVERY_SIZE, **(ONCE if size == once_at else {})}
            for case, measure in cases.items():
                if name in ("all", case):
                    progress(f"{case} at {size}", 0, 1)
                    figures += measure(ground, effort)
        return _report([*figures, *_growth(figures, wanted)], chosen, wanted)


def _report(figures: Sequence[Figure], chosen: Texts, sizes: Sequence[int]) -> dict[str, Any]:
    """Say it all, with what it was measured on."""
    return {
        "figures": [figure.as_json() for figure in figures],
        "texts": chosen.name,
        "words_a_note": texts.WORDS,
        "sizes": sizes,
        "cut_off": limits.CUT_OFF_SHARE,
        "server": _server(),
    }


def _growth(figures: Sequence[Figure], sizes: Sequence[int]) -> list[Figure]:
    """How much each figure that was taken at every size grows from one size to the next."""
    known = {figure.name: figure for figure in figures}
    grown = []
    for before, after in itertools.pairwise(sizes):
        for name, figure in known.items():
            earlier = known.get(name.replace(f".{after}", f".{before}"))
            if f".{after}" in name and figure.unit == "ms" and earlier is not None:
                note = f"from {before} to {after} notes"
                grown.append(Figure(f"growth.{name}", figure.value / earlier.value, "times", note=note))
    return grown


def _server() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, setting FROM pg_settings WHERE name IN"
            " ('server_version', 'fsync', 'synchronous_commit', 'shared_buffers', 'full_page_writes',"
            " 'huge_pages_status', 'max_parallel_workers_per_gather')"
        )
        return dict(cursor.fetchall())
