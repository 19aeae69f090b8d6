"""The reading pages: parse, read, render."""

import json
from typing import Any, Final
from uuid import UUID, uuid4

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import get_script_prefix, reverse
from django.utils.http import urlencode
from django.views.decorators.csrf import csrf_exempt

from archive import canonical, limits
from archive.authority import Action, Caller, Point
from archive.curation.door import in_namespace, refused, signed_in
from archive.curation.queue import address_of, query_of, queue_in
from archive.curation.reading import decisions, text_of
from archive.lifecycle import Reason, State
from archive.operations import management
from archive.records import NoteRecord
from archive.refusals import (
    AuthorityRefused,
    Fault,
    InvalidRequest,
    LifecycleVersionConflict,
    NotFound,
    SourceRevisionRevoked,
)
from archive.requests import Checker
from archive.visible import visible
from inspection import discovery, interface, reads
from inspection.admin.tables import TABLES
from inspection.cursors import PageRequest
from inspection.generations import Progress, named_generation, progress
from inspection.namespaces import choose
from inspection.templatetags.showing import LEADS_TO

_LATEST: Final = 6
_SERVED: Final = 8
"""So many namespaces are offered on the first page; the page of namespaces has them all."""
_GET: Final = ("GET", "HEAD")


@signed_in(*_GET)
def door(request: HttpRequest, subject: str) -> HttpResponse:
    """Lead on to the first namespace in which the subject holds a grant."""
    served = choose(subject, limit=1).keys
    if not served:
        raise AuthorityRefused
    return redirect("home", ns=served[0])


@signed_in(*_GET)
def namespaces(request: HttpRequest, subject: str) -> HttpResponse:
    """Choose a namespace, by the beginning of its key or page by page, and go on in it where one was."""
    asked = _query(request, {"starting", "after", "to"})
    starting, to = asked.get("starting", ""), asked.get("to", "home")
    tables = {f"{table.model._meta.app_label}_{table.model._meta.model_name}": table.name for table in TABLES}
    if to not in (*LEADS_TO, *tables):
        raise InvalidRequest([Fault("/to", "one of " + ", ".join([*LEADS_TO, *tables]))])
    choice = choose(subject, starting=starting, after=asked.get("after", ""))
    if not choice.keys and not starting:
        raise AuthorityRefused
    shown = {
        "ways": [(key, _way(to, key)) for key in choice.keys],
        "after": choice.after,
        "starting": starting,
        "beginning": "after" not in asked,
        "to": to,
        "leads_to": LEADS_TO.get(to) or tables[to],
    }
    return render(request, "pages/namespaces.html", shown)


def _way(to: str, key: str) -> str:
    if to in LEADS_TO:
        return reverse(to, args=[key])
    return reverse(f"admin:{to}_changelist") + "?" + urlencode({"namespace": key})


@in_namespace(*_GET)
def home(request: HttpRequest, caller: Caller) -> HttpResponse:
    """What waits, where everything stands, what was asked last, and how to ask."""
    overview = reads.overview(caller)
    try:
        latest = reads.list_receipts(caller, PageRequest(limit=_LATEST)).items
    except AuthorityRefused:
        latest = None
    shown = {
        "ns": caller.namespace,
        "owner": caller.binding.owner,
        "served": choose(caller.subject, limit=_SERVED),
        "counts": overview.counts,
        "total": sum(overview.counts.values()),
        "waiting": overview.counts[State.CANDIDATE],
        "oldest_candidate_at": overview.oldest_candidate_at,
        "latest": latest,
        "checks": overview.checks,
        "base": f"{request.scheme}://{request.get_host()}{get_script_prefix()}api/v1/ns/{caller.namespace}",
        "may_grant": management.may(caller, Action.GRANT),
        "decided": reads.decisions_by_day(caller),
        "coverage": _coverage(caller),
    }
    return render(request, "pages/home.html", shown)


def _coverage(caller: Caller) -> tuple[Progress, ...]:
    """The generations in use, for whoever may inspect derivations; while derivation is off nothing is asked."""
    if named_generation(caller) is None:
        return ()
    try:
        return tuple(one for one in progress(caller) if one.status.generation.retired_at is None)
    except AuthorityRefused:
        return ()


@in_namespace(*_GET)
def configuration(request: HttpRequest, caller: Caller) -> HttpResponse:
    """What is configured for a namespace today; it says nothing of what is retained (R-L-123)."""
    # Before anything else, so that a refusal costs as much as in a namespace that is not served; and asked again after
    # the admission engine, so that the page's own question is the last one that is answered.
    discovery.question(caller).require(Point.A0)
    asked_for = _interface(caller)
    told = discovery.configuration_here(caller)
    shown = {
        "ns": caller.namespace,
        "told": told,
        "policy": limits.LEXICAL_POLICY,
        "named": named_generation(caller),
        "interface": asked_for,
        "changeable": management.changeable(),
        "may_configure": management.may(caller, Action.CONFIGURE_NAMESPACE),
    }
    return render(request, "pages/configuration.html", shown)


def _interface(caller: Caller) -> interface.Projection | None:
    """What the admission engine asks for by default, for whoever may inspect that."""
    try:
        return interface.projection(caller)
    except AuthorityRefused:
        return None


@in_namespace(*_GET)
def notes(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The notes of a namespace, by state and source if the address says so."""
    asked = _query(request, {"state", "source", "cursor"})
    state, source = asked.get("state"), asked.get("source")
    check = Checker()
    if state is not None and state not in set(State):
        check.fault("/state", "one of " + ", ".join(State))
    if source is not None:
        check.identifier("/source", source)
    check.settle()
    page = reads.list_notes(
        caller,
        PageRequest(cursor=asked.get("cursor")),
        state=None if state is None else State(state),
        source_key=source,
    )
    shown = {"ns": caller.namespace, "page": page, "state": state, "source": source, "states": tuple(State)}
    return render(request, "pages/notes.html", {**shown, "beginning": "cursor" not in asked})


@in_namespace(*_GET)
def receipts(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The receipts of a namespace, newest first, each checked."""
    asked = _query(request, {"cursor"})
    page = reads.list_receipts(caller, PageRequest(cursor=asked.get("cursor")))
    return render(
        request, "pages/receipts.html", {"ns": caller.namespace, "page": page, "beginning": "cursor" not in asked}
    )


@in_namespace(*_GET)
def events(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Everything that happened in a namespace, in the order in which it did."""
    asked = _query(request, {"cursor"})
    page = reads.namespace_events(caller, PageRequest(cursor=asked.get("cursor")))
    full = len(page.items) == limits.PAGE_SIZE_DEFAULT
    shown = {"ns": caller.namespace, "page": page, "full": full, "beginning": "cursor" not in asked}
    return render(request, "pages/events.html", shown)


@in_namespace(*_GET)
def note(request: HttpRequest, caller: Caller, note_id: UUID) -> HttpResponse:
    """One note: what it says, to whoever may review it, and everything that happened to it."""
    record = reads.note_record(caller, note_id)
    try:
        reviewed = text_of(caller, record)
    except SourceRevisionRevoked:
        # Revoked between the two looks: from here on it is a tombstone like any other.
        record, reviewed = reads.note_record(caller, note_id), None
    if reviewed is not None:
        record = reviewed.note
    shown: dict[str, Any] = {
        "ns": caller.namespace,
        "note": record,
        "events": reads.note_events(caller, note_id),
        "offered": decisions(caller, record),
        "reasons": tuple(Reason),
    }
    if reviewed is not None:
        shown["text"] = visible(reviewed.text)
        shown["promoted"] = reviewed.promoted
        if record.state == State.ARCHIVED and management.may(caller, Action.INTAKE):
            shown["again"] = _again(record, reviewed.text)
        shown["promoted_text"] = None if reviewed.promoted_text is None else visible(reviewed.promoted_text)
    return render(request, "pages/tombstone.html" if record.state == State.REVOKED else "pages/note.html", shown)


def _again(record: NoteRecord, text: str) -> dict[str, str]:
    """What the form carries that takes an archived text in again: one identity a page, so that sent twice is once."""
    room = limits.IDENTIFIER_MAX - len("-again")
    return {
        "request_id": f"again-{uuid4()}",
        "revision": f"{record.source_revision[:room]}-again",
        "text": json.dumps(text),
    }


@in_namespace(*_GET)
def revocation(request: HttpRequest, caller: Caller, note_id: UUID) -> HttpResponse:
    """Say what a revocation would destroy, and ask once more; this page itself decides nothing."""
    asked = _query(request, {"version", "queue"})
    # An empty one is the whole queue, and to be led back to.
    queue = queue_in(asked.get("queue", "")) if "queue" in request.GET else None
    record = reads.note_record(caller, note_id)
    if asked.get("version") != str(record.lifecycle_version):
        return _moved_on(request, caller, record)
    if not decisions(caller, record).revoke:
        raise AuthorityRefused
    shown = {"ns": caller.namespace, "note": record, "reasons": tuple(Reason)}
    if queue is not None:
        shown["query"], shown["back"] = query_of(queue), address_of(caller, queue, note_id)
    return render(request, "pages/revocation.html", shown)


def _moved_on(request: HttpRequest, caller: Caller, record: NoteRecord) -> HttpResponse:
    refusal = LifecycleVersionConflict()
    shown = {"refusal": refusal, "today": record, "ns": caller.namespace, "note_id": record.id}
    return render(request, "curation/moved.html", shown, status=refusal.status)


@in_namespace(*_GET)
def receipt(request: HttpRequest, caller: Caller, request_id: str) -> HttpResponse:
    """One receipt, with its digest computed again from what is stored."""
    placed = reads.receipt_in_place(caller, request_id)
    told = placed.receipt
    shown = {
        "ns": caller.namespace,
        "receipt": told,
        "placed": placed,
        "canonical": json.dumps(told, indent=2, sort_keys=True, ensure_ascii=False),
    }
    return render(request, "pages/receipt.html", shown)


@in_namespace(*_GET)
def receipt_file(request: HttpRequest, caller: Caller, request_id: str) -> HttpResponse:
    """The receipt's canonical bytes, to be kept and verified elsewhere."""
    told = reads.receipt(caller, request_id)
    response = HttpResponse(canonical.encode(told), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="receipt-{told["receipt_id"]}.json"'
    return response


@csrf_exempt
def nowhere(request: HttpRequest, address: str = "") -> HttpResponse:
    """Answer for every address that nothing else answers for."""
    return refused(request, NotFound())


def _query(request: HttpRequest, known: set[str]) -> dict[str, str]:
    """Read the parameters of an address: only known ones, each once; an empty one is left out."""
    faults = [Fault(f"/{name}", "once") for name in known if len(request.GET.getlist(name)) > 1]
    if request.GET.keys() - known:
        faults.append(Fault("", "only these: " + ", ".join(sorted(known))))
    if faults:
        raise InvalidRequest(faults)
    return {name: value for name, value in request.GET.items() if isinstance(value, str) and value}
