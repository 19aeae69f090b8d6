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


@contextmanager
def _planning() -> Iterator[None]:
    """Let the driver use none of the plans that this thread's session has kept, and keep none."""
    session = connection.connection
    kept, session.prepare_threshold = session.prepare_threshold, None
    try:
        yield
    finally:
        session.prepare_threshold = kept


def measure(ground: Ground, questions: int) -> list[Figure]:
    """Ask questions with fresh identities, in turns with the textbook statement; a differing answer is a fault.

    Every question is asked twice on one connection: with the plans that it keeps, and with all statements planned anew.
    """
    whole, anew, ranked, plain, outside = [], [], [], [], []
    figures: list[Figure] = []
    namespace = ground.namespace.id
    with bare_connection() as beside:
        for place, query in enumerate(ground.asked(_WARM + questions)):
            for planning in sorted((False, True), reverse=bool(place % 2)):
                wanted = LexicalRecall(fresh("q"), query, top_k=TOP_K, char_budget=limits.CHAR_BUDGET_MAX)
                if planning:
                    with _planning():
                        took_planning, _ = clocked(recall, ground.caller, wanted)
                else:
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
                anew.append(took_planning)
                ranked.append(clock.rank_ms)
                plain.append(plainly)
                outside.append((took - clock.rank_ms) / took)
    size = ground.notes
    around = [one - other for one, other in zip(whole, ranked, strict=True)]
    figures += spread(f"recall.{size}.rank", ranked, plain, _PLAIN_NOTE)
    figures += [
        *spread(f"recall.{size}", whole, anew, "the whole operation; baseline: each statement planned anew"),
        Figure(f"recall.{size}.around.p50", percentile(around, 0.5), "ms", note="the operation without its ranking"),
        Figure(f"recall.{size}.around.p95", percentile(around, 0.95), "ms", note="the operation without its ranking"),
        Figure(f"recall.{size}.outside_rank", sum(outside) / len(outside), "share", note="of the time of an operation"),
    ]
    return figures
