"""Recall at each size: the operation, the statement inside it, and the textbook statement on the same postings."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from archive import limits
from archive.operations.recall import recall
from archive.requests import LexicalRecall
from lychd.bench import bare
from lychd.bench.figures import Figure, clocked, spread
from lychd.bench.ground import CONFIGURATION, Ground, fresh
from lychd.bench.ground import bare as bare_connection
from lychd.evaluation.metrics import percentile

TOP_K = 10
_WARM = 5
_PLAIN_NOTE = "plain ranking by bare SQL on the same postings, answers compared"


class Clock:
    """Adds up what the statements of an operation take, the ranking apart from the others."""

    def __init__(self) -> None:
        self.statements = 0
        self.all_ms = 0.0
        self.rank_ms = 0.0

    def __call__(self, execute: Callable[..., Any], sql: str, parameters: Any, many: bool, context: Any) -> Any:
        took, done = clocked(execute, sql, parameters, many, context)
        self.statements += 1
        self.all_ms += took
        if "archive_posting" in sql:
            self.rank_ms += took
        return done


@contextmanager
def watched() -> Iterator[Clock]:
    """Clock every statement of this thread's connection."""
    clock = Clock()
    with connection.execute_wrapper(clock):
        yield clock


def measure(ground: Ground, questions: int) -> list[Figure]:
    """Ask questions with fresh identities, in turns with the textbook statement; a differing answer is a fault."""
    whole, ranked, plain, outside = [], [], [], []
    figures: list[Figure] = []
    namespace = ground.namespace.id
    with bare_connection() as beside:
        for place, query in enumerate(ground.asked(_WARM + questions)):
            wanted = LexicalRecall(fresh("q"), query, top_k=TOP_K, char_budget=limits.CHAR_BUDGET_MAX)
            with watched() as clock:
                took, answer = clocked(recall, ground.caller, wanted)
            values = {
                "namespace": namespace,
                "configuration": CONFIGURATION,
                "query": query,
                "top_k": TOP_K,
                "k1": limits.BM25_K1,
                "b": limits.BM25_B,
                "cut_off": limits.CUT_OFF_SHARE,
                "cut_off_notes": limits.CUT_OFF_NOTES,
            }
            plainly, rows = clocked(bare.ranked, beside, values)
            if [chosen["note_id"] for chosen in answer.receipt["selected"]] != rows:
                raise AssertionError("the two rankings differ")
            if place >= _WARM:
                whole.append(took)
                ranked.append(clock.rank_ms)
                plain.append(plainly)
                outside.append((took - clock.rank_ms) / took)
    size = ground.notes
    around = [one - other for one, other in zip(whole, ranked, strict=True)]
    figures += spread(f"recall.{size}.rank", ranked, plain, _PLAIN_NOTE)
    figures += [
        Figure(f"recall.{size}.p50", percentile(whole, 0.5), "ms", note="the whole operation"),
        Figure(f"recall.{size}.p95", percentile(whole, 0.95), "ms", note="the whole operation"),
        Figure(f"recall.{size}.around.p50", percentile(around, 0.5), "ms", note="the operation without its ranking"),
        Figure(f"recall.{size}.around.p95", percentile(around, 0.95), "ms", note="the operation without its ranking"),
        Figure(f"recall.{size}.outside_rank", sum(outside) / len(outside), "share", note="of the time of an operation"),
    ]
    return figures
