"""The playground: ask as an agent would, and see for each note why it came or did not."""

from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from archive.authority import Caller
from archive.curation.door import in_namespace
from archive.curation.posted import unknown
from archive.refusals import Fault, InvalidRequest
from archive.requests import Checker, LexicalRecall
from inspection import playground

_FIELDS: Final = ("query", "asker", "expected", "top_k", "char_budget", "min_rank")


@in_namespace("GET", "HEAD", "POST")
def search(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Show the form, and what it was asked; a question is text, so it travels in a form and never in an address."""
    shown: dict[str, Any] = {"ns": caller.namespace, "asker": caller.subject, **playground.DEFAULTS}
    if request.method != "POST":
        if request.GET:
            raise InvalidRequest([Fault("", "no parameters: a question is sent by the form")])
        playground.may_search(caller)
        return render(request, "pages/search.html", shown)
    given = _given(request)
    wanted = _wanted(caller, given)
    shown |= {**given, "asker": wanted.asker, "told": playground.explain(caller, wanted)}
    return render(request, "pages/search.html", shown)


def _given(request: HttpRequest) -> dict[str, str]:
    faults = unknown(request, {*_FIELDS, "csrfmiddlewaretoken"})
    faults += [Fault(f"/{name}", "once") for name in _FIELDS if len(request.POST.getlist(name)) > 1]
    if faults:
        raise InvalidRequest(faults)
    given = {name: request.POST.get(name, "") for name in _FIELDS}
    return {name: value for name, value in given.items() if value}


def _wanted(caller: Caller, given: dict[str, str]) -> playground.Wanted:
    check = Checker()
    asker, expected = given.get("asker", caller.subject), given.get("expected")
    check.identifier("/asker", asker)
    if expected is not None:
        check.identifier("/expected", expected)
    numbers: dict[str, int] = {}
    for name in ("top_k", "char_budget"):
        written = given.get(name, str(playground.DEFAULTS[name]))
        if written.isascii() and written.isdigit() and len(written) < 8:
            numbers[name] = int(written)
        else:
            check.fault(f"/{name}", "a whole number")
    try:
        least = float(given.get("min_rank", "0"))
    except ValueError:
        check.fault("/min_rank", "a number")
    check.settle()
    return playground.Wanted(
        asker=asker,
        recall=LexicalRecall("playground", given.get("query", ""), min_rank=least, **numbers),
        expected=None if expected is None else _named(expected),
    )


def _named(expected: str) -> UUID | str:
    try:
        found = UUID(expected)
    except ValueError:
        return expected
    return found if str(found) == expected else expected
