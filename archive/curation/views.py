"""The decisions: parse, call one operation, lead back to the note, or on to the next candidate of the queue."""

import contextlib
from collections.abc import Callable
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from archive.authority import Caller
from archive.curation import queue as queues
from archive.curation.door import in_namespace
from archive.curation.posted import unknown
from archive.lifecycle import Reason, State
from archive.operations.desk import Queue
from archive.operations.review import review
from archive.operations.transition import Moved, archive, promote, revoke
from archive.records import NoteRecord
from archive.refusals import (
    AuthorityRefused,
    Conflict,
    Fault,
    IllegalTransition,
    InvalidRequest,
    LifecycleVersionConflict,
    SecondPersonRequired,
    SourceRevisionRevoked,
)
from archive.requests import Transition

_OPERATION: Final[dict[State, Callable[[Caller, Transition], Moved]]] = {
    State.PROMOTED: promote,
    State.ARCHIVED: archive,
    State.REVOKED: revoke,
}
_FIELDS: Final = frozenset({"csrfmiddlewaretoken", "expected_version", "reason", "queue", "hidden", "hidden_seen"})
_VERSION_DIGITS: Final = 10


@in_namespace("POST")
def decide(request: HttpRequest, caller: Caller, note_id: UUID, to_state: State) -> HttpResponse:
    """Take one decision on the version that the form showed; a note that moved answers 409 with where it stands now.

    From the queue a note that moved is named instead, and the queue goes on with the next.
    """
    change = _parse(request, note_id, to_state)
    queue = queues.queue_in(request.POST["queue"]) if "queue" in request.POST else None
    try:
        moved = _OPERATION[to_state](caller, change)
    except (LifecycleVersionConflict, IllegalTransition) as refusal:
        if queue is None:
            return _moved_on(request, caller, change, refusal)
        return _skipped(request, caller, change, queue, refusal)
    except SecondPersonRequired as refusal:
        if queue is None:
            raise
        return _skipped(request, caller, change, queue, refusal)
    messages.success(request, _told(moved))
    if queue is None:
        return redirect("note", ns=caller.namespace, note_id=note_id)
    queues.release(caller, note_id)
    return redirect(queues.address_of(caller, queue, note_id))


@in_namespace("POST")
def later(request: HttpRequest, caller: Caller, note_id: UUID) -> HttpResponse:
    """Put a candidate off for this session, and go on with the next; nothing of the archive changes."""
    if faults := unknown(request, {"csrfmiddlewaretoken", "queue"}):
        raise InvalidRequest(faults)
    queue = queues.queue_in(request.POST.get("queue", ""))
    # Only what may be read here can be put off here.
    with contextlib.suppress(SourceRevisionRevoked):
        review(caller, note_id)
    queues.put_off(request, caller, note_id)
    queues.release(caller, note_id)
    return redirect(queues.address_of(caller, queue, note_id))


def _parse(request: HttpRequest, note_id: UUID, to_state: State) -> Transition:
    faults = unknown(request, _FIELDS)
    faults += [Fault(f"/{name}", "more than once") for name in _FIELDS if len(request.POST.getlist(name)) > 1]
    version = request.POST.get("expected_version", "")
    if not (version.isascii() and version.isdigit() and len(version) <= _VERSION_DIGITS):
        faults.append(Fault("/expected_version", "the version that the page showed"))
    reason = request.POST.get("reason") or None
    if reason is not None and reason not in set(Reason):
        faults.append(Fault("/reason", "one of " + ", ".join(Reason)))
    hidden = request.POST.get("hidden", "0")
    if to_state is State.PROMOTED and hidden != "0" and "hidden_seen" not in request.POST:
        # The page counted them and gave a box beside its button; a program, which has no eyes, is not asked.
        faults.append(Fault("/hidden_seen", "this text has hidden characters: tick the box that says you saw them"))
    if faults:
        raise InvalidRequest(faults)
    return Transition(note_id, to_state, int(version), None if reason is None else Reason(reason))


def _told(moved: Moved) -> str:
    note = moved.note
    told = (
        f"{note.source_key}, revision {note.source_revision}, is {note.state} now, at version {note.lifecycle_version}."
    )
    if moved.superseded is not None:
        earlier = moved.superseded
        told += f" Revision {earlier.source_revision} was archived with it, at version {earlier.lifecycle_version}."
    return told


def _skipped(request: HttpRequest, caller: Caller, change: Transition, queue: Queue, refusal: Conflict) -> HttpResponse:
    """Name what was refused and go on; where it still waits, it waits for another time of this session."""
    today, revoked = _today(caller, change.note_id)
    if today is not None:
        where = f"{today.source_key}, revision {today.source_revision}, is {today.state} at version"
        told = f"{refusal.title}: {where} {today.lifecycle_version}."
    else:
        told = f"{refusal.title}: it is revoked." if revoked else f"{refusal.title}."
    messages.error(request, f"{told} Your decision was not carried out.")
    if today is not None and today.state == State.CANDIDATE and isinstance(refusal, SecondPersonRequired):
        queues.put_off(request, caller, change.note_id)
    return redirect(queues.address_of(caller, queue, change.note_id))


def _moved_on(request: HttpRequest, caller: Caller, change: Transition, refusal: Conflict) -> HttpResponse:
    today, revoked = _today(caller, change.note_id)
    shown = {"refusal": refusal, "today": today, "revoked": revoked, "ns": caller.namespace, "note_id": change.note_id}
    return render(request, "curation/moved.html", shown, status=refusal.status)


def _today(caller: Caller, note_id: UUID) -> tuple[NoteRecord | None, bool]:
    """Look where a note stands now, for whoever may review it; a tombstone has no more to tell than that."""
    try:
        return review(caller, note_id).note, False
    except SourceRevisionRevoked:
        return None, True
    except AuthorityRefused:
        return None, False
