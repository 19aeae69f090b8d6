"""The figures of an archive for Prometheus, read from the database when they are asked for.

Counters kept by processes would jump with each worker that starts; rows do not.
"""

from collections.abc import Iterator
from typing import Any, Final

from django.db import connections
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from archive.lifecycle import State
from archive.transactions import reading

_NOTES: Final = """
    SELECT n.key, t.state, count(*)
    FROM archive_note t JOIN archive_namespace n ON n.id = t.namespace_id GROUP BY n.key, t.state
"""
_OLDEST: Final = """
    SELECT n.key, extract(epoch FROM clock_timestamp() - min(t.created_at))::float8
    FROM archive_note t JOIN archive_namespace n ON n.id = t.namespace_id
    WHERE t.state = 'candidate' GROUP BY n.key
"""
_RECEIPTS: Final = """
    SELECT n.key, r.receipt->>'outcome', count(*)
    FROM archive_recall r JOIN archive_namespace n ON n.id = r.namespace_id GROUP BY 1, 2
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
            counted = {(key, state): count for key, state, count in _rows(_NOTES)}
            oldest = dict(_rows(_OLDEST))
            receipts = _rows(_RECEIPTS)
        for key, notes, length, ready in namespaces:
            for state in State:
                families["notes"].add_metric([key, state.value], counted.get((key, state.value), 0))
            families["oldest"].add_metric([key], oldest.get(key, 0.0))
            families["corpus_notes"].add_metric([key], notes)
            families["corpus_words"].add_metric([key], length)
            families["ready"].add_metric([key], ready)
        for key, outcome, count in receipts:
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


def _rows(question: str) -> list[Any]:
    with connections["default"].cursor() as cursor:
        cursor.execute(question)
        return list(cursor.fetchall())


def exposition() -> str:
    """Write all figures in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(ArchiveCollector())
    return generate_latest(registry).decode("utf-8")


def figures() -> list[dict[str, Any]]:
    """Give the same figures as values."""
    return [
        {"name": sample.name, "labels": dict(sample.labels), "value": sample.value}
        for family in ArchiveCollector().collect()
        for sample in family.samples
    ]
