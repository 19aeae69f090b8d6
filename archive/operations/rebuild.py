"""Cut the promoted notes of one namespace into words again: after a change of text configuration or of the lexer.

Slices, each its own exclusive hold, so that intake and decisions go on between them. Recall of the namespace answers
`capability_not_ready` from the first hold to the last.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db import connection

from archive import lexical
from archive.lifecycle import LexicalState
from archive.limits import SLICE_ITEMS
from archive.models import Namespace
from archive.refusals import ArchiveTimeout
from archive.transactions import held, reading

# Before and after every note number there can be.
_START: Final = -(2**63)
_END: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild left behind; `drifted` says that the corpus figures had moved away from the notes before it."""

    namespace: str
    text_configuration: str
    lexer_fingerprint: str
    notes: int
    total_length: int
    drifted: bool


def rebuild_lexical(
    namespace_key: str, *, slice_size: int = SLICE_ITEMS, progress: Callable[[int, int], None] | None = None
) -> Rebuilt:
    """Rebuild the postings of one namespace and make it ready; safe to repeat, to interrupt, and to run twice at once.

    `progress` is told how many notes are done and how many there are.
    """
    rebuilt = None
    while rebuilt is None:
        with held(namespace_key) as namespace:
            _begin(namespace)
        rebuilt = _passed(namespace, slice_size, progress)
    with reading():
        lexical.vacuum()
    return rebuilt


def _passed(begun: Namespace, slice_size: int, progress: Callable[[int, int], None] | None) -> Rebuilt | None:
    """Go through all notes once and finish; None when the namespace moved meanwhile and the pass is worth nothing."""
    after, done = _START, 0
    while after < _END:
        try:
            with held(begun.key) as namespace:
                if namespace.row_version != begun.row_version:
                    return None
                reached, count = _slice(namespace, after, slice_size)
                expected = lexical.figures(namespace.id).notes
        except ArchiveTimeout:
            # A few notes that are slow to cut, each promoted alone, must not keep the namespace from ever being ready.
            if slice_size == 1:
                raise
            slice_size //= 2
            continue
        after = reached
        done += count
        if progress:
            progress(done, expected)
    with held(begun.key) as namespace:
        if namespace.row_version != begun.row_version:
            return None
        return _finish(namespace)


# Note [A rebuild that is overtaken]
# Every change of the namespace row counts its version up. A slice under another version may have cut words under
# another configuration, so the pass starts over. A namespace that stands at `rebuilding` is joined without a new
# version: two rebuilds at once do the same work, and the slower one, finding itself overtaken, does it once more.


def _begin(namespace: Namespace) -> None:
    if namespace.lexical_state != LexicalState.REBUILDING:
        _move(namespace, LexicalState.REBUILDING, namespace.lexer_fingerprint)


def _slice(namespace: Namespace, after: int, slice_size: int) -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT last_number, notes FROM archive_rebuild_slice(%s::bigint, %s::bigint, %s::integer)",
            [namespace.id, after, slice_size],
        )
        last_number, notes = cursor.fetchone()
    return last_number, notes


def _finish(namespace: Namespace) -> Rebuilt:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT notes, total_length, notes_before, total_length_before FROM archive_rebuild_finish(%s::bigint)",
            [namespace.id],
        )
        notes, total_length, notes_before, total_length_before = cursor.fetchone()
    _move(namespace, LexicalState.READY, lexical.fingerprint(namespace.text_configuration))
    return Rebuilt(
        namespace=namespace.key,
        text_configuration=namespace.text_configuration,
        lexer_fingerprint=namespace.lexer_fingerprint,
        notes=notes,
        total_length=total_length,
        drifted=(notes, total_length) != (notes_before, total_length_before),
    )


def _move(namespace: Namespace, state: LexicalState, fingerprint: str) -> None:
    with connection.cursor() as cursor:
        # The fence of the namespace row lets this setting's namespace change its lexical state, in this transaction.
        cursor.execute("SELECT set_config('lychd.lexical_rebuild', %s::text, true)", [str(namespace.id)])
    namespace.lexical_state = state.value
    namespace.lexer_fingerprint = fingerprint
    namespace.row_version += 1
    namespace.save(update_fields=["lexical_state", "lexer_fingerprint", "row_version"])
