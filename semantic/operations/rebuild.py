"""Write what is searched again from the vectors that are there, for one generation; nothing is embedded (R-L-005).

Slices, each its own exclusive hold, so that intake, decisions and attempts go on between them. Recall by meaning in the
generation answers `capability_not_ready` from the first hold to the last. What is right already stays as it is, so a
rebuild that was interrupted comes quickly to where it stopped.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection

from archive.refusals import ArchiveTimeout
from archive.transactions import held
from semantic.limits import REBUILD_SLICE
from semantic.models import Generation
from semantic.refusals import GenerationAbsent

# Before every note that there can be.
_START: Final = UUID(int=0)
_COMPLETE: Final = "SELECT count(*) FROM semantic_derivation WHERE generation_id = %s AND state = 'complete'"
_SLICE: Final = "SELECT last_note, vectors, written FROM semantic_rebuild_slice(%s::uuid, %s::uuid, %s::integer)"
_FINISH: Final = "SELECT complete, complete_before, strays FROM semantic_rebuild_finish(%s::uuid)"


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild found: how many vectors are searched now, and what had to be written, removed or counted again."""

    namespace: str
    generation: str
    complete: int
    written: int
    strays: int
    counted_before: int


def rebuild_scan(
    namespace_key: str,
    reference: str,
    *,
    slice_size: int = REBUILD_SLICE,
    progress: Callable[[int, int], None] | None = None,
) -> Rebuilt:
    """Make the copy that is searched equal to the complete derivations; safe to repeat, to interrupt and to run twice.

    `progress` is told how many vectors are done and how many there are. Raises `NamespaceAbsent`, `GenerationAbsent`.
    """
    with _held(namespace_key, reference) as generation:
        _row("SELECT semantic_rebuild_begin(%s::uuid)", generation)
        (expected,) = _row(_COMPLETE, generation)
    after: UUID | None = _START
    done = written = 0
    while after is not None:
        try:
            with _held(namespace_key, reference) as generation:
                reached, vectors, changed = _row(_SLICE, generation, after, slice_size)
        except ArchiveTimeout:
            if slice_size == 1:
                raise
            slice_size //= 2
            continue
        after, done, written = reached, done + vectors, written + changed
        if progress:
            progress(done, expected)
    with _held(namespace_key, reference) as generation:
        complete, before, strays = _row(_FINISH, generation)
    return Rebuilt(namespace_key, reference, complete, written, strays, before)


@contextmanager
def _held(namespace_key: str, reference: str) -> Iterator[UUID]:
    with held(namespace_key) as namespace:
        row = Generation.objects.filter(namespace=namespace, reference=reference).only("id").first()
        if row is None:
            raise GenerationAbsent
        yield row.id


def _row(question: str, *values: UUID | int) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(question, values)
        return cursor.fetchone()
