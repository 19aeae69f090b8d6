"""The review workspace: one candidate at a time, what it changes, and what is known beside it."""

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from archive.authority import Caller
from archive.curation import queue as queues
from archive.curation.door import in_namespace
from archive.curation.reading import offered
from archive.lifecycle import Reason
from archive.operations.desk import Age, Alike, desk
from archive.refusals import Fault, InvalidRequest
from archive.visible import Piece, Visible, visible
from inspection.neighbours import Meaning
from inspection.pages.difference import Change, Difference, difference

_GET: Final = ("GET", "HEAD")
_KNOWN: Final = {*queues.FILTERS, "at", "later", "meaning"}


@in_namespace(*_GET)
def review(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Show the next candidate of a queue that stands in the address."""
    asked = _query(request)
    queue = queues.queue_of(asked)
    at = _note_id(asked.get("at"))
    put_off = queues.those_put_off(request, caller)
    meaning = Meaning(caller, asked_for="meaning" in asked)
    seen = desk(caller, queue, at=at, put_off=() if "later" in asked else put_off, beside=meaning)
    shown: dict[str, Any] = {
        "ns": caller.namespace,
        "queue": queue,
        "query": queues.query_of(queue),
        "filtered": bool(queue.as_keys()),
        "ages": tuple(Age),
        "same": Alike.SAME,
        "seen": seen,
        "put_off": len(put_off),
        "groups": [(key, list(lines)) for key, lines in groupby(seen.queue, key=lambda line: line.source_key)],
    }
    if seen.reviewed is not None:
        note = seen.reviewed.note
        shown |= {
            "note": note,
            "promoted": seen.reviewed.promoted,
            "offered": offered(caller, note, seen.allowed),
            "meaning": meaning.found,
            "other": queues.claim(caller, note.id),
            "reasons": tuple(Reason),
            "next": seen.beside(1),
            "previous": seen.beside(-1),
            **changed(seen.reviewed.promoted_text, seen.reviewed.text),
        }
    return render(request, "pages/review.html", shown)


def _note_id(value: str | None) -> UUID | None:
    if value is None:
        return None
    try:
        found = UUID(value)
    except ValueError:
        found = None
    if found is None or str(found) != value:
        raise InvalidRequest([Fault("/at", "the identifier of a note")])
    return found


def _query(request: HttpRequest) -> dict[str, str]:
    faults = [Fault(f"/{name}", "once") for name in sorted(_KNOWN) if len(request.GET.getlist(name)) > 1]
    if request.GET.keys() - _KNOWN:
        faults.append(Fault("", "only these: " + ", ".join(sorted(_KNOWN))))
    if faults:
        raise InvalidRequest(faults)
    return {name: value for name, value in request.GET.items() if isinstance(value, str) and value}


# --- the change ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """A stretch of a change in pieces that are safe to look at."""

    change: Change
    pieces: tuple[Piece, ...] = field(repr=False)


def changed(earlier: str | None, later: str) -> dict[str, Any]:
    """What a page shows of a change; without an earlier text, the later one alone."""
    text = visible(later)
    if earlier is None:
        return {"text": text, "change": None}
    before = visible(earlier)
    found = difference(earlier, later)
    return {"text": text, "change": found, "stretches": laid_out(found, before, text), "before": before}


def laid_out(found: Difference, before: Visible, after: Visible) -> list[Shown]:
    """Lay a change out with the marks that each whole text has: a word cut in two still shows what it hides."""
    old, new = _Pieces(before), _Pieces(after)
    shown: list[Shown] = []
    for stretch in found.stretches:
        size = len(stretch.text)
        pieces = old.take(size) if stretch.change is not Change.ADDED else ()
        if stretch.change is not Change.REMOVED:
            pieces = new.take(size)
        shown.append(Shown(stretch.change, pieces))
    return shown


class _Pieces:
    """Takes a text off from its beginning; a mark stands for one character, whatever it is called."""

    def __init__(self, whole: Visible) -> None:
        self._left = list(reversed(whole.pieces))

    def take(self, size: int) -> tuple[Piece, ...]:
        taken: list[Piece] = []
        while size and self._left:
            piece = self._left.pop()
            length = 1 if piece.mark is not None else len(piece.text)
            if length > size:
                self._left.append(Piece(piece.text[size:]))
                piece, length = Piece(piece.text[:size]), size
            taken.append(piece)
            size -= length
        return tuple(taken)
