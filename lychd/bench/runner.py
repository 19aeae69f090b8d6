"""One run: a database of its own, the cases in order of size, and the figures of all of them."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from django.db import connection

from archive import limits
from lychd import scratch
from lychd.bench import changes, load, recalls, sharing, texts
from lychd.bench.figures import Figure
from lychd.bench.ground import Ground, Progress
from lychd.bench.load import Scale

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


EFFORTS: Final = {
    "whole": Effort(),
    # Enough to see that everything works and comes out right; its times say little.
    "small": Effort(
        questions=10,
        changes=5,
        batches=1,
        seconds=0.5,
        rounds=1,
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
}
NAMES: Final = ("all", *AT_EVERY_SIZE, *ONCE)

# Eight clients are measured where one recall is short, so that the hold and not the ranking is what they share.
SHARING_SIZE: Final = 10_000


def run(name: str, *, sizes: Sequence[int], folder: Path | None, effort: Effort, progress: Progress) -> dict[str, Any]:
    """Measure one case, or all of them, and give the report."""
    chosen = texts.chosen(folder)
    figures: list[Figure] = []
    with scratch.database("bench") as database:
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
        server = _server()
    return {
        "figures": [figure.as_json() for figure in [*figures, *_growth(figures, wanted)]],
        "texts": chosen.name,
        "words_a_note": texts.WORDS,
        "sizes": wanted,
        "cut_off": limits.CUT_OFF_SHARE,
        "server": server,
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
            " ('server_version', 'fsync', 'synchronous_commit', 'shared_buffers', 'full_page_writes')"
        )
        return dict(cursor.fetchall())
