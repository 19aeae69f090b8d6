"""`lychd evaluate` and `lychd bench`: how well the archive finds, and how fast it is, in databases of their own."""

import argparse
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from lychd.commands.telling import Progress, Told, Unready, UsageError, pairs, table

_OFF: Final = 1


def evaluate(options: argparse.Namespace) -> Told:
    """Ask every judged question of a reading set; exit 1 where what stands beside us is not what it should be."""
    from lychd.evaluation import baseline, meaning, report, sets
    from lychd.scratch import ScratchError

    folder = Path(options.path)
    try:
        reading_set = sets.read(folder)
    except sets.SetError as error:
        raise UsageError(str(error)) from None
    try:
        with Steps() as steps:
            found = report.evaluate(
                reading_set,
                policy=options.policy,
                text_configuration=options.text_configuration,
                published=report.published_beside(folder),
                progress=steps,
            )
    except (baseline.BaselineMissing, meaning.ModelMissing, ScratchError) as error:
        raise Unready(str(error)) from None
    return Told(found, _read_out(found), _OFF if found["baseline_agrees"] is False else 0)


def bench(options: argparse.Namespace) -> Told:
    """Measure one case or all of them, beside something bare that does the same."""
    from lychd.bench import runner, semantic_rows, semantic_runner
    from lychd.evaluation import meaning, sets
    from lychd.scratch import ScratchError

    known = semantic_runner.NAMES if options.policy == "semantic" else runner.NAMES
    if options.name not in known:
        raise UsageError(f"--policy {options.policy} measures: {', '.join(known)}")
    # A refusal is one of the outcomes that are counted here, not news.
    logging.getLogger("archive").setLevel(logging.CRITICAL)
    folder = None if options.texts is None else Path(options.texts)
    try:
        with Steps() as steps:
            if options.policy == "semantic":
                found = semantic_runner.run(
                    options.name,
                    sizes=options.sizes or semantic_runner.SIZES,
                    folder=folder,
                    effort=options.effort,
                    progress=steps,
                )
            else:
                found = runner.run(
                    options.name,
                    sizes=options.sizes or runner.SIZES,
                    folder=folder,
                    effort=replace(runner.EFFORTS[options.effort], baseline=options.baseline),
                    progress=steps,
                )
    except sets.SetError as error:
        raise UsageError(str(error)) from None
    except (meaning.ModelMissing, semantic_rows.NumpyMissing, ScratchError) as error:
        raise Unready(str(error)) from None
    rows = [[one[key] for key in ("name", "value", "unit", "baseline", "ratio", "note")] for one in found["figures"]]
    text = table(("name", "value", "unit", "baseline", "ratio", "note"), rows, empty="")
    return Told(found, "\n".join([text, *(f"{case}: {why}" for case, why in found.get("left_out", {}).items())]))


class Steps:
    """One bar after another, each under its own heading."""

    def __init__(self) -> None:
        self._heading = ""
        self._bar: Progress | None = None

    def __enter__(self) -> "Steps":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)

    def __call__(self, heading: str, done: int, total: int) -> None:
        if self._bar is None or heading != self._heading:
            self.__exit__()
            self._heading, self._bar = heading, Progress(heading, total, unit="")
        self._bar.reach(done, total)


def _read_out(found: dict[str, Any]) -> str:
    baseline = found["baseline"]
    beside = baseline["library"]
    keys = ("ndcg@10", "recall@10", "mrr@10", "empty_rate", "p50_ms", "p95_ms", "coverage")
    heading = pairs(
        (key, found[key])
        for key in ("dataset", "policy", "text_configuration", "documents", "queries", "refused", "baseline_agrees")
    )
    rows = [(key, found[key], baseline[key]) for key in keys]
    parts = [heading, table(("figure", "archive", beside), rows, empty="")]
    languages = found.get("languages")
    if languages:
        parts.append(
            table(
                ("language", "queries", "archive ndcg@10", f"{beside} ndcg@10"),
                [(name, one["queries"], one["ndcg@10"], one["baseline"]["ndcg@10"]) for name, one in languages.items()],
                empty="",
            )
        )
    return "\n\n".join(parts)
