"""The box in the head of every page: whatever identifier is pasted into it leads to what bears it.

It is sent by POST, so that nothing pasted by mistake, a text for example, ever stands in an address or a log.
"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from archive.authority import Caller
from archive.curation.door import in_namespace
from archive.refusals import InvalidRequest
from inspection.find import PREFIX_LEAST, Found, find, require_some


@in_namespace("GET", "HEAD", "POST")
def box(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Lead on to the one thing that was meant, or show what there is to choose from."""
    shown = {"ns": caller.namespace, "least": PREFIX_LEAST}
    if request.method != "POST":
        require_some(caller)
        return render(request, "pages/find.html", shown)
    term = request.POST.get("identifier", "").strip()
    try:
        found = find(caller, term)
    except InvalidRequest as refusal:
        return render(request, "pages/find.html", {**shown, "wrong": True}, status=refusal.status)
    if len(found) == 1:
        return redirect(address_of(caller.namespace, found[0]))
    ways = [(one, address_of(caller.namespace, one)) for one in found]
    return render(request, "pages/find.html", {**shown, "term": term, "ways": ways})


def address_of(ns: str, found: Found) -> str:
    """Where a found thing is shown."""
    if found.source_key is not None:
        return reverse("notes", args=[ns]) + "?" + urlencode({"source": found.source_key})
    if found.request_id is not None:
        return reverse("receipt", args=[ns, found.request_id])
    return reverse("note", args=[ns, found.note_id])
