"""The figures of one ranking against its judgements, and of many: nDCG, recall and reciprocal rank at ten."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

DEPTH: Final = 10


@dataclass(frozen=True, slots=True)
class Answered:
    """What one question got: the documents in order, and the time it took. A place may be empty."""

    ranking: Sequence[str | None]
    seconds: float


@dataclass(frozen=True, slots=True)
class Figures:
    """The means over many questions."""

    ndcg: float
    recall: float
    reciprocal_rank: float
    empty_rate: float
    p50_ms: float
    p95_ms: float

    def as_json(self) -> dict[str, float]:
        return {
            "ndcg@10": round(self.ndcg, 4),
            "recall@10": round(self.recall, 4),
            "mrr@10": round(self.reciprocal_rank, 4),
            "empty_rate": round(self.empty_rate, 4),
            "p50_ms": round(self.p50_ms, 3),
            "p95_ms": round(self.p95_ms, 3),
        }


def ndcg(ranking: Sequence[str | None], judged: Mapping[str, int]) -> float:
    """Discounted gain at ten over the best there could be; documents that are not there count in the best."""
    gained = sum(judged.get(one or "", 0) / math.log2(place + 2) for place, one in enumerate(ranking[:DEPTH]))
    best = sum(
        degree / math.log2(place + 2) for place, degree in enumerate(sorted(judged.values(), reverse=True)[:DEPTH])
    )
    return gained / best


def recall(ranking: Sequence[str | None], judged: Mapping[str, int]) -> float:
    """The share of the judged documents among the first ten."""
    return len(judged.keys() & set(ranking[:DEPTH])) / len(judged)


def reciprocal_rank(ranking: Sequence[str | None], judged: Mapping[str, int]) -> float:
    """One over the place of the first judged document, nothing beyond ten."""
    return next((1 / place for place, one in enumerate(ranking[:DEPTH], start=1) if one in judged), 0.0)


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the smallest value that at least this share does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def figures(answers: Mapping[str, Answered], judgements: Mapping[str, Mapping[str, int]]) -> Figures:
    """The means over these questions, each of which has a judgement."""
    pairs = [(answer.ranking, judgements[query]) for query, answer in answers.items()]
    count = len(pairs)
    times = [1000 * answer.seconds for answer in answers.values()]
    return Figures(
        ndcg=sum(ndcg(*pair) for pair in pairs) / count,
        recall=sum(recall(*pair) for pair in pairs) / count,
        reciprocal_rank=sum(reciprocal_rank(*pair) for pair in pairs) / count,
        empty_rate=sum(not ranking for ranking, _ in pairs) / count,
        p50_ms=percentile(times, 0.5),
        p95_ms=percentile(times, 0.95),
    )
