"""Acts at once, each on a connection of its own; and a namespace held by somebody else."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connections

from archive.refusals import Refusal
from tests import flushing


def together(*acts: Callable[[], Any]) -> list[Any]:
    """Let all acts go at one barrier; return what each gave, or the refusal that it met."""
    barrier = threading.Barrier(len(acts), timeout=20)

    def run(act: Callable[[], Any]) -> Any:
        try:
            connections["default"].ensure_connection()
            barrier.wait()
            return act()
        except Refusal as no:
            return no
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


@contextmanager
def held_elsewhere(key: str) -> "Iterator[psycopg.Connection[Any]]":
    """Hold a namespace exclusively from another connection: its queue lock and its row, as an operation does."""
    with psycopg.connect(**flushing.parameters()) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('lychd:' || %s::text, 0))", [key])
        other.execute("SELECT 1 FROM archive_namespace WHERE key = %s FOR UPDATE", [key])
        yield other
        other.rollback()
