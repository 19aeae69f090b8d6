"""The page of the generations, and the same numbers for its script: it works by reloading, too."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from archive.authority import Caller
from archive.curation.door import in_namespace
from inspection.generations import named_generation, progress


@in_namespace("GET", "HEAD")
def generations(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Each generation: coverage, states, failures by error, and the command for what waits."""
    shown = {"ns": caller.namespace, "generations": progress(caller), "named": named_generation(caller)}
    return render(request, "pages/generations.html", shown)


@in_namespace("GET", "HEAD")
def numbers(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The counts alone, as they stand now."""
    return JsonResponse({"generations": [one.as_json() for one in progress(caller)]})
