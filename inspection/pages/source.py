"""One source: its revisions in order, and what any of them changes of any other."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from archive import limits
from archive.authority import Caller
from archive.curation.door import in_namespace
from archive.lifecycle import State
from archive.operations.review import review
from archive.records import NoteRecord
from archive.refusals import AuthorityRefused, Fault, InvalidRequest, RecordAbsent
from archive.requests import Checker
from inspection import reads
from inspection.cursors import PageRequest
from inspection.pages.desk import changed

_KNOWN: Final = {"key", "from", "to", "cursor"}


@in_namespace("GET", "HEAD")
def source(request: HttpRequest, caller: Caller) -> HttpResponse:
    """List the revisions of a source; with `from` and `to` show what changed between two that have a text."""
    asked = _query(request)
    page = reads.list_notes(
        caller,
        PageRequest(limit=limits.PAGE_SIZE_MAX, cursor=asked.get("cursor")),
        source_key=asked["key"],
    )
    if not page.items and "cursor" not in asked:
        raise RecordAbsent
    shown: dict[str, Any] = {
        "ns": caller.namespace,
        "key": asked["key"],
        "page": page,
        "beginning": "cursor" not in asked,
        "texts": [note for note in page.items if note.state != State.REVOKED],
        "from": asked.get("from"),
        "to": asked.get("to"),
        "asked": "from" in asked,
    }
    if "from" in asked:
        earlier, later = _revision(page.items, asked["from"]), _revision(page.items, asked["to"])
        try:
            shown |= changed(review(caller, earlier.id).text, review(caller, later.id).text)
            shown |= {"earlier": earlier, "later": later}
        except AuthorityRefused:
            shown["refused"] = True
    return render(request, "pages/source.html", shown)


def _revision(notes: tuple[NoteRecord, ...], name: str) -> NoteRecord:
    """Find a revision by its name among those listed; a tombstone is refused when its text is asked for."""
    for note in notes:
        if note.source_revision == name:
            return note
    raise RecordAbsent


def _query(request: HttpRequest) -> dict[str, str]:
    given = {name: request.GET.get(name, "") for name in _KNOWN if request.GET.get(name)}
    check = Checker()
    faults = [Fault(f"/{name}", "once") for name in sorted(_KNOWN) if len(request.GET.getlist(name)) > 1]
    if request.GET.keys() - _KNOWN:
        faults.append(Fault("", "only these: " + ", ".join(sorted(_KNOWN))))
    if ("from" in given) != ("to" in given):
        faults.append(Fault("/to" if "from" in given else "/from", "two revisions, or none"))
    check.identifier("/key", given.get("key", ""))
    for name in ("from", "to"):
        if name in given:
            check.identifier(f"/{name}", given[name])
    if faults or check.faults:
        raise InvalidRequest(faults + check.faults)
    return given
