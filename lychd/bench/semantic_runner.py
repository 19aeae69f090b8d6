"""One run of the measurements by meaning, in a database of its own: exact recall size by size, and derivation."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lychd import scratch
from lychd.bench import runner, semantic_derivation, semantic_recall, semantic_rows, texts
from lychd.bench.figures import Figure
from lychd.bench.ground import Ground, Progress
from lychd.evaluation import meaning

SIZES: Final = (1_000, 10_000, 50_000, 100_000)
NAMES: Final = ("all", "recall", "derivation")


@dataclass(frozen=True)
class Effort:
    """How often each thing is measured."""

    questions: int
    writes: int
    rounds: int


EFFORTS: Final = {"whole": Effort(questions=30, writes=10, rounds=10), "small": Effort(questions=4, writes=1, rounds=1)}


def run(name: str, *, sizes: Sequence[int], folder: Path | None, effort: str, progress: Progress) -> dict[str, Any]:
    """Measure one case or both; derivation alone needs the model, recall takes it where it is."""
    chosen = texts.chosen(folder)
    often = EFFORTS[effort]
    wanted = sorted(sizes)
    figures: list[Figure] = []
    times: dict[str, list[float]] = {}
    left_out: dict[str, str] = {}
    real = 0
    server: dict[str, str] = {}
    semantic_rows.require_numpy()
    if name == "derivation":
        meaning.require_model()
    if name in ("all", "recall"):
        for padded, embedder in ((False, semantic_rows.EMBEDDER), (True, semantic_rows.PADDED)):
            with scratch.database("bench") as database, semantic_rows.switched_on(embedder):
                rows = semantic_rows.Rows(Ground(database, chosen, progress), padded)
                for size in wanted:
                    rows.grow(size)
                    found, taken = semantic_recall.measure(rows, size, often.questions, often.writes)
                    figures += found
                    times |= taken
                figures += semantic_recall.growth(rows, times, wanted)
                real += rows.source.real
                server = runner._server()
    if name in ("all", "derivation"):
        try:
            meaning.require_model()
        except meaning.ModelMissing as missing:
            left_out["derivation"] = str(missing)
        else:
            with scratch.database("bench") as database:
                found, taken = semantic_derivation.measure(Ground(database, chosen, progress), often.rounds)
                figures += found
                times |= taken
                server = runner._server()
    return {
        "policy": "semantic",
        "figures": [figure.as_json() for figure in figures],
        "times_ms": {series: [round(one, 3) for one in taken] for series, taken in times.items()},
        "left_out": left_out,
        "texts": chosen.name,
        "sizes": wanted,
        "eligible_share": semantic_rows.ELIGIBLE_SHARE,
        "dimensions": semantic_rows.DIMENSIONS,
        "real_embeddings": real,
        "server": server,
    }
