"""What a measurement says: a name, a value, what the baseline took, and their ratio."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, ParamSpec, TypeVar

from lychd.evaluation.metrics import percentile

P = ParamSpec("P")
T = TypeVar("T")

_MS: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report. `baseline` has the unit of `value`, and `note` says what it is."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    note: str = ""
    ratio: float | None = None

    def as_json(self) -> dict[str, Any]:
        ratio = self.ratio
        if ratio is None and self.baseline:
            ratio = self.value / self.baseline
        return {
            "name": self.name,
            "value": _rounded(self.value),
            "unit": self.unit,
            "baseline": None if self.baseline is None else _rounded(self.baseline),
            "ratio": None if ratio is None else round(ratio, 2),
            "note": self.note,
        }


def clocked(act: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> tuple[float, T]:
    """Do something and say how many milliseconds it took."""
    started = time.perf_counter()
    done = act(*arguments, **named)
    return _MS * (time.perf_counter() - started), done


def spread(name: str, times: Sequence[float], baseline: Sequence[float], note: str) -> list[Figure]:
    """The median and the 95th percentile of two series that were taken in turns."""
    return [
        Figure(f"{name}.p50", percentile(times, 0.5), "ms", percentile(baseline, 0.5), note),
        Figure(f"{name}.p95", percentile(times, 0.95), "ms", percentile(baseline, 0.95), note),
    ]


def _rounded(value: float) -> float:
    return round(value, 3 if abs(value) < 100 else 1)
