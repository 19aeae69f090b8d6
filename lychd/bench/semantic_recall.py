"""Exact recall at each size, beside plain pgvector, pgvector with vectors in-line, and a flat scan in numpy.

All of them rank the same rows with the same fifth left out, in turns and warm, and every answer is compared. The SQL
of the archive is what the operation runs; whatever else the operation does is counted beside it, with the question's
vector there already, so that no inference is in it.
"""

import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID, uuid4

import psycopg
from django.db import connection as serving
from psycopg import sql

from archive import canonical, limits
from lychd.bench import bare
from lychd.bench.figures import Figure, clocked
from lychd.bench.ground import bare as bare_connection
from lychd.bench.ground import fresh
from lychd.bench.semantic_rows import (
    COMPLETED,
    INLINE,
    PLAIN,
    Rows,
    copy_given,
    question,
    take_to_claimed,
)
from lychd.evaluation.metrics import percentile
from lychd.scratch import as_owner
from semantic import exact, vectors
from semantic.limits import MIN_COSINE_LOWEST
from semantic.operations.recall import recall
from semantic.requests import SemanticRecall

TOP_K: Final = 10
THRESHOLD: Final = 0.5
WARM: Final = 2
# What a recall may take besides its ranking and the model's inference.
AROUND_MS: Final = 10.0
# Two sums of the same products in another order, in float32.
_NEAR: Final = 1e-5
_WRITTEN: Final = 100
_SPUN_OUT: Final = 0.1
_MB: Final = 1_000_000

# The nearest by exact scan; the order of equal scores is the archive's, so that answers can be compared.
_NEAREST: Final = """
SELECT note_id, 1 - (vector <=> %(query)s::vector) AS score FROM {table} WHERE eligible
ORDER BY score DESC, note_id LIMIT %(top_k)s
"""
_SETTINGS: Final = (
    "work_mem",
    "parallel_setup_cost",
    "parallel_tuple_cost",
    "min_parallel_table_scan_size",
    "max_parallel_workers_per_gather",
)

# What keeps the copy: the triggers that see a statement's rows as a whole.
_KEEPERS: Final = """
SELECT tgname FROM pg_trigger
WHERE tgrelid = 'semantic_derivation'::regclass AND NOT tgisinternal AND tgnewtable IS NOT NULL
"""

Answer = list[tuple[UUID, float]]


@dataclass
class Times:
    """Milliseconds by contestant, in the order in which they were taken."""

    taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def of(self, name: str, share: float) -> float:
        return percentile(self.taken[name], share)


@dataclass
class _Rank:
    """What the last ranking inside an operation cost: its statements, and all of it."""

    statements_ms: float = 0.0
    processor_ms: float = 0.0
    settings: dict[str, str] = field(default_factory=dict)


@contextmanager
def _watched() -> Iterator[_Rank]:
    """Clock the statements of every ranking, and read the settings under which the last one ran."""
    seen = _Rank()
    ranked = exact.rank

    def clock(execute: Callable[..., Any], statement: str, parameters: Any, many: bool, context: Any) -> Any:
        took, done = clocked(execute, statement, parameters, many, context)
        seen.statements_ms += took
        return done

    def rank(*arguments: Any, **named: Any) -> exact.Ranking:
        seen.statements_ms = 0.0
        begun = time.thread_time()
        with serving.execute_wrapper(clock):
            found = ranked(*arguments, **named)
        seen.processor_ms = 1000 * (time.thread_time() - begun)
        if not seen.settings:
            with serving.cursor() as cursor:
                cursor.execute("SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name", [[*_SETTINGS]])
                seen.settings.update(cursor.fetchall())
        return found

    setattr(exact, "rank", rank)  # noqa: B010 - what a test would patch, for as long as is measured
    try:
        yield seen
    finally:
        setattr(exact, "rank", ranked)  # noqa: B010


class Contest:
    """One size: the operation and its rivals, each asked the same questions in turns."""

    def __init__(self, rows: Rows, seen: _Rank, beside: "psycopg.Connection[Any]") -> None:
        import numpy as np
        from threadpoolctl import ThreadpoolController

        self._rows = rows
        self._seen = seen
        self._beside = beside
        vectors.taught(beside)
        self._flat = np.ascontiguousarray(rows.matrix[rows.eligible])
        self._threads = ThreadpoolController()
        self._notes = [note for note, may in zip(rows.notes, rows.eligible, strict=True) if may]
        self.times = Times()

    def run(self, questions: int, progress: Callable[[int], None]) -> None:
        """Ask every question of everybody, each time in another order; the first few are for warmth alone."""
        # The operation comes first the first time: the others run under the settings that its ranking has.
        entrants = (self._whole, self._near, self._plain, self._inline, self._numpy, self._numpy_alone)
        for place, query in enumerate(self._rows.source.queries(WARM + questions)):
            self._answers: dict[str, Answer] = {}
            turn = place % len(entrants)
            for entrant in (*entrants[turn:], *entrants[:turn]):
                for name, took in entrant(query).items():
                    if place >= WARM:
                        self.times.taken[name].append(took)
            self._compare()
            progress(place + 1)

    def _whole(self, query: Any) -> Mapping[str, float]:
        return self._operation("exact", query, MIN_COSINE_LOWEST)

    def _near(self, query: Any) -> Mapping[str, float]:
        return self._operation("threshold", query, THRESHOLD)

    def _operation(self, name: str, query: Any, min_cosine: float) -> Mapping[str, float]:
        wanted = SemanticRecall(
            fresh("m"), question(query), min_cosine=min_cosine, top_k=TOP_K, char_budget=limits.CHAR_BUDGET_MAX
        )
        begun = time.thread_time()
        took, answer = clocked(recall, self._rows.ground.caller, wanted)
        worked = 1000 * (time.thread_time() - begun)
        self._answers[name] = [
            (UUID(one["note_id"]), canonical.read_real(one["score"])) for one in answer.receipt["selected"]
        ]
        ranked = self._seen.statements_ms
        return {
            name: ranked,
            f"{name}.operation": took,
            f"{name}.around": took - ranked,
            f"{name}.processor": worked - self._seen.processor_ms,
        }

    def _plain(self, query: Any) -> Mapping[str, float]:
        return self._by_sql("plain", PLAIN, query)

    def _inline(self, query: Any) -> Mapping[str, float]:
        return self._by_sql("inline", INLINE, query)

    def _by_sql(self, name: str, table: str, query: Any) -> Mapping[str, float]:
        given = vectors.sent(query.astype("<f4").tobytes())
        for setting, value in self._seen.settings.items():
            self._beside.execute("SELECT set_config(%s, %s, false)", [setting, value])
        statement = _NEAREST.format(table=table)
        started = time.perf_counter()
        rows = self._beside.execute(statement, {"query": given, "top_k": TOP_K}).fetchall()
        took = 1000 * (time.perf_counter() - started)
        self._answers[name] = [(note, score) for note, score in rows]
        return {name: took}

    def _numpy(self, query: Any) -> Mapping[str, float]:
        taken = self._flat_scan("numpy", query)
        # The threads of numpy's library go on spinning for a while and would take a processor from whoever is next.
        time.sleep(_SPUN_OUT)
        return taken

    def _numpy_alone(self, query: Any) -> Mapping[str, float]:
        with self._threads.limit(limits=1, user_api="blas"):
            return self._flat_scan("numpy_one", query)

    def _flat_scan(self, name: str, query: Any) -> Mapping[str, float]:
        import numpy as np

        started = time.perf_counter()
        scores = self._flat @ query
        first = np.argpartition(-scores, min(TOP_K, len(scores) - 1))[:TOP_K]
        best = first[np.argsort(-scores[first], kind="stable")]
        took = 1000 * (time.perf_counter() - started)
        self._answers[name] = [(self._notes[place], float(scores[place])) for place in best]
        return {name: took}

    def _compare(self) -> None:
        """SQL agrees to the bit; numpy sums in another order, so its scores agree within rounding."""
        found = self._answers
        wanted = found["plain"]
        if not (wanted == found["inline"] == found["exact"]):
            raise AssertionError("the exact answers differ")
        if found["threshold"] != [one for one in wanted if one[1] >= THRESHOLD]:
            raise AssertionError("the answers above the threshold differ")
        for flat in (found["numpy"], found["numpy_one"]):
            if any(abs(one[1] - other[1]) > _NEAR for one, other in zip(wanted, flat, strict=True)):
                raise AssertionError("the flat scan differs by more than rounding")


def measure(rows: Rows, size: int, questions: int, writes: int) -> tuple[list[Figure], dict[str, list[float]]]:
    """The figures of one size and every time that was taken for them."""

    head = rows.head(size)

    def progress(done: int) -> None:
        rows.ground.progress(f"recall at {head}", done, WARM + questions)

    with _watched() as seen, bare_connection() as beside:
        contest = Contest(rows, seen, beside)
        contest.run(questions, progress)
    # Before the writes, which leave dead rows behind.
    stored = disk(head)
    written, write_times = write_cost(rows, head, writes)
    return [*_compared(head, contest.times), *_around(head, contest.times), *stored, *written], {
        **{f"{head}.{name}": taken for name, taken in contest.times.taken.items()},
        **write_times,
    }


_SHARES: Final = (("p50", 0.5), ("p95", 0.95))
_ASKED: Final = (("exact", "without a threshold"), ("threshold", f"at a threshold of {THRESHOLD}"))
_RIVALS: Final = (
    ("plain", "pgvector, its own storage"),
    ("inline", "pgvector, STORAGE PLAIN"),
    ("numpy", "float32 matrix in memory, all processors"),
    ("numpy_one", "float32 matrix in memory, one processor"),
)


def _compared(head: str, times: Times) -> list[Figure]:
    return [
        Figure(
            f"{head}.{name}.{rival}.{word}",
            times.of(name, share),
            "ms",
            times.of(rival, share),
            f"SQL {what}; baseline: {note}",
        )
        for name, what in _ASKED
        for rival, note in _RIVALS
        for word, share in _SHARES
    ]


def _around(head: str, times: Times) -> list[Figure]:
    """What the operation adds to its ranking: on a busy machine read the least of it and the processor time."""
    return [
        Figure(
            f"{head}.{name}.{part}.{word}",
            times.of(f"{name}.{part}", share),
            "ms",
            AROUND_MS,
            f"{what}; baseline: the aim",
        )
        for name, _ in _ASKED
        for part, what in (
            ("around", "the operation without its ranking and without inference"),
            ("processor", "processor time of this process in it"),
        )
        for word, share in (("min", 0.0), *_SHARES)
    ]


def growth(rows: Rows, times: Mapping[str, Sequence[float]], sizes: Sequence[int]) -> list[Figure]:
    """How the median of each contestant grows from size to size, beside how the rows do."""
    figures = []
    for before, after in itertools.pairwise(sizes):
        for name in ("exact", "threshold", *(rival for rival, _ in _RIVALS)):
            now, then = (percentile(times[f"{rows.head(size)}.{name}"], 0.5) for size in (after, before))
            note = f"median from {before} to {after} rows; baseline: the rows"
            figures.append(Figure(f"growth.{rows.head(after)}.{name}", now / then, "times", after / before, note))
    return figures


def disk(head: str) -> list[Figure]:
    """What lies on disk for the rows: the copy that is searched first, the derivations, and both baselines."""

    def megabytes(table: str) -> float:
        with serving.cursor() as cursor:
            cursor.execute("SELECT pg_total_relation_size(%s::regclass)", [table])
            (size,) = cursor.fetchone()
        return float(size) / _MB

    plain = megabytes(PLAIN)
    return [
        Figure(
            f"{head}.disk.{name}",
            megabytes(table),
            "MB",
            plain,
            f"{what}; baseline: pgvector, its own storage",
        )
        for name, table, what in (
            ("scan", "semantic_scan", "the copy that is searched first, of the eligible rows"),
            ("derivations", "semantic_derivation", "vectors, digests and receipts of the eligible rows, indexes"),
            ("inline", INLINE, "pgvector, STORAGE PLAIN"),
        )
    ]


def write_cost(rows: Rows, head: str, rounds: int) -> tuple[list[Figure], dict[str, list[float]]]:
    """Completing a hundred derivations with the trigger that keeps the copy and without it; nothing of it stays."""
    taken: dict[str, list[float]] = {"with": [], "without": []}
    given = [(uuid4(), uuid4(), vector, True) for vector in rows.source.rows(_WRITTEN)]
    with as_owner() as connection:
        for _ in range(rounds):
            for kind in taken:
                taken[kind].append(_completed(connection, rows, given, copied=kind == "with"))
    figure = Figure(
        f"{head}.write.complete{_WRITTEN}",
        percentile(taken["with"], 0.5),
        "ms",
        percentile(taken["without"], 0.5),
        f"{_WRITTEN} vectors in one statement; baseline: without the copy",
    )
    return [figure], {f"{head}.write.{kind}": times for kind, times in taken.items()}


def _completed(
    connection: "psycopg.Connection[Any]", rows: Rows, given: Sequence[tuple[UUID, UUID, Any, bool]], *, copied: bool
) -> float:
    with connection.transaction(force_rollback=True), bare.held(connection) as namespace:
        if not copied:
            for (name,) in connection.execute(_KEEPERS).fetchall():
                connection.execute(
                    sql.SQL("ALTER TABLE semantic_derivation DISABLE TRIGGER {}").format(sql.Identifier(name))
                )
        copy_given(connection, given)
        take_to_claimed(connection, namespace, rows.generation.id)
        took, _ = clocked(connection.execute, COMPLETED)
    return took
