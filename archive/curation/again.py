"""What was archived can be taken in again: as a new revision, which waits for a decision like any other."""

import json
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from archive.authority import Caller
from archive.curation.door import in_namespace
from archive.curation.posted import unknown
from archive.operations.intake import Outcome, intake
from archive.refusals import Fault, InvalidRequest
from archive.requests import Intake

_NEEDED: Final = frozenset({"request_id", "source_key", "source_revision", "kind", "text"})
_FIELDS: Final = _NEEDED | {"csrfmiddlewaretoken", "asserted_origin"}


@in_namespace("POST")
def take_in(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Take in the text that the form carries, under the revision that it names; sent twice it is one intake."""
    admitted = intake(caller, _parse(request))
    note = admitted.note
    done = "was taken in" if admitted.outcome is Outcome.CREATED else "was there already"
    messages.success(request, f"{note.source_key}, revision {note.source_revision}, {done}; it is {note.state}.")
    return redirect("note", ns=caller.namespace, note_id=note.id)


def _parse(request: HttpRequest) -> Intake:
    faults = unknown(request, _FIELDS)
    faults += [Fault(f"/{name}", "once") for name in sorted(_NEEDED) if len(request.POST.getlist(name)) != 1]
    try:
        # As a JSON string: a browser would turn every end of line of a plain field into another one.
        text = json.loads(request.POST.get("text", ""))
    except (ValueError, RecursionError):
        text = None
    if not isinstance(text, str):
        faults.append(Fault("/text", "the text as a JSON string"))
    if faults or not isinstance(text, str):
        raise InvalidRequest(faults)
    return Intake(
        request_id=request.POST["request_id"],
        source_key=request.POST["source_key"],
        source_revision=request.POST["source_revision"],
        text=text,
        kind=request.POST["kind"],
        asserted_origin=request.POST.get("asserted_origin") or None,
    )
