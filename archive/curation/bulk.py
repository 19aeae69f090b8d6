"""Many decisions at once, once they were looked at: each on its own version, each with its own answer."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from archive.authority import Caller
from archive.curation.choosing import chosen
from archive.curation.door import in_namespace
from archive.operations.transition import transition_many
from archive.requests import Transition


@in_namespace("POST")
def confirm(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Take the decisions that the preview offered; whatever moved since is refused by name, and the others stand."""
    wanted = chosen(request)
    changes = [Transition(note, wanted.to_state, version, wanted.reason) for note, version in wanted.seen.items()]
    answers = transition_many(caller, changes)
    rows = list(zip(changes, answers, strict=True))
    shown = {
        "ns": caller.namespace,
        "step": wanted.step,
        "rows": rows,
        "done": sum(answer.refusal is None for answer in answers),
        "refused": sum(answer.refusal is not None for answer in answers),
    }
    return render(request, "curation/results.html", shown)
