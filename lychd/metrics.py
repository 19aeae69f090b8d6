"""The figures of an archive for Prometheus, read from the database when they are asked for.

Counters kept by processes would jump with each worker that starts; rows do not.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.db import connections
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from archive.lifecycle import State
from archive.transactions import reading

# Each is counted in an index alone, a namespace at a time.
_NOTES: Final = """
    SELECT n.key, s.state, (
        SELECT count(*) FROM archive_note t WHERE t.namespace_id = n.id AND t.state = s.state
    ) FROM archive_namespace n CROSS JOIN unnest(%s::text[]) AS s (state)
"""
_OLDEST: Final = """
    SELECT n.key, extract(epoch FROM clock_timestamp() - waiting.created_at)::float8
    FROM archive_namespace n CROSS JOIN LATERAL (
        SELECT t.created_at FROM archive_note t
        WHERE t.namespace_id = n.id AND t.state = 'candidate' ORDER BY t.note_number LIMIT 1
    ) AS waiting
"""
_RECEIPTS: Final = """
    SELECT counted.key, counted.receipts - counted.missed, counted.missed FROM (
        SELECT n.key,
            (SELECT count(*) FROM archive_recall r WHERE r.namespace_id = n.id) AS receipts,
            (SELECT count(*) FROM archive_recall r
             WHERE r.namespace_id = n.id AND r.receipt ->> 'outcome' = 'miss') AS missed
        FROM archive_namespace n) AS counted
"""
_NAMESPACES: Final = """
    SELECT n.key, coalesce(c.notes, 0), coalesce(c.total_length, 0), (n.lexical_state = 'ready')::int
    FROM archive_namespace n LEFT JOIN archive_corpus c ON c.namespace_id = n.id ORDER BY n.key
"""


class ArchiveCollector(Collector):
    """Reads every figure afresh; registered where metrics are served or printed."""

    def describe(self) -> Iterator[Metric]:
        """Name the families without asking the database, so that a registry can be made before there is one."""
        yield from _families().values()

    def collect(self) -> Iterator[Metric]:
        """Read what there is; a failing database is a refusal, never a zero."""
        families = _families()
        with reading():
            namespaces = _rows(_NAMESPACES)
            counted = {(key, state): count for key, state, count in _rows(_NOTES, [[*State]])}
            oldest = dict(_rows(_OLDEST))
            receipts = _rows(_RECEIPTS)
        for key, notes, length, ready in namespaces:
            for state in State:
                families["notes"].add_metric([key, state.value], counted.get((key, state.value), 0))
            families["oldest"].add_metric([key], oldest.get(key, 0.0))
            families["corpus_notes"].add_metric([key], notes)
            families["corpus_words"].add_metric([key], length)
            families["ready"].add_metric([key], ready)
        for key, *counts in receipts:
            for outcome, count in zip(("selected", "miss"), counts, strict=True):
                if count:
                    families["receipts"].add_metric([key, outcome], count)
        yield from families.values()


def _families() -> dict[str, GaugeMetricFamily]:
    gauge, one = GaugeMetricFamily, ["namespace"]
    return {
        "notes": gauge("lychd_notes", "Notes by state.", labels=[*one, "state"]),
        "oldest": gauge("lychd_oldest_candidate_seconds", "Age of the oldest candidate; 0 without one.", labels=one),
        "receipts": gauge("lychd_receipts", "Retained receipts by outcome.", labels=[*one, "outcome"]),
        "corpus_notes": gauge("lychd_corpus_notes", "Notes in the index of words.", labels=one),
        "corpus_words": gauge("lychd_corpus_words", "Words in the index of words.", labels=one),
        "ready": gauge("lychd_lexical_ready", "1 while the index of words answers, 0 during a rebuild.", labels=one),
    }


def _rows(question: str, values: Sequence[Any] = ()) -> list[Any]:
    with connections["default"].cursor() as cursor:
        cursor.execute(question, values)
        return list(cursor.fetchall())


def exposition() -> str:
    """Write all figures in Prometheus' text format.

    The library escapes each label of each line anew, which for thousands of namespaces takes longer than counting does.
    """
    lines = []
    for family in ArchiveCollector().collect():
        lines += [f"# HELP {family.name} {family.documentation}", f"# TYPE {family.name} {family.type}"]
        for sample in family.samples:
            labels = ",".join([f'{name}="{value}"' for name, value in sample.labels.items()])
            lines.append(f"{sample.name}{{{labels}}} {float(sample.value)}")
    return "\n".join([*lines, ""])


def figures() -> list[dict[str, Any]]:
    """Give the same figures as values."""
    return [
        {"name": sample.name, "labels": dict(sample.labels), "value": sample.value}
        for family in ArchiveCollector().collect()
        for sample in family.samples
    ]
