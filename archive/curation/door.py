"""The door of every page: who is signed in, in which namespace, and how a no looks to a person.

A view behind the door is handed a caller and raises refusals; the door turns each into a page with its own status.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.views.decorators.debug import sensitive_variables

from archive.authority import Caller
from archive.curation.signed import subject_of
from archive.refusals import AuthorityRefused, MethodNotAllowed, Refusal
from archive.transactions import reading

_STILL_THERE: Final = frozenset({400, 405, 409})
"""Refusals of a request, not of the place: their page keeps the way around."""

View = Callable[..., HttpResponse]


def signed_in(*methods: str) -> Callable[[View], View]:
    """Let a signed-in user with an active principal in, as its subject; send everybody else to sign in."""

    def guard(view: View) -> View:
        @functools.wraps(view)
        @sensitive_variables()
        def page(request: HttpRequest, **named: Any) -> HttpResponse:
            if request.method not in methods:
                response = refused(request, MethodNotAllowed())
                response["Allow"] = ", ".join(methods)
                return response
            try:
                with reading():
                    known = request.user.is_authenticated
                if not known:
                    return redirect_to_login(_way_back(request), reverse("sign-in"))
                subject = subject_of(request.user)
                if subject is None:
                    raise AuthorityRefused
                response = view(request, subject, **named)
            except Refusal as refusal:
                return refused(request, refusal)
            return unstored(response)

        return page

    return guard


def in_namespace(*methods: str) -> Callable[[View], View]:
    """The same in one namespace of the address, met as its caller."""

    def guard(view: View) -> View:
        @signed_in(*methods)
        @functools.wraps(view)
        @sensitive_variables()
        def page(request: HttpRequest, subject: str, *, ns: str, **named: Any) -> HttpResponse:
            return view(request, Caller.in_namespace(subject, ns), **named)

        return page

    return guard


def refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """Render a no with its title, its next step and its status."""
    # Where storage does not answer, a page that asks who is signed in would fail in turn.
    quiet = refusal.status >= 500
    shown = {"refusal": refusal, "quiet": quiet}
    if refusal.status in _STILL_THERE and request.resolver_match is not None:
        shown["ns"] = request.resolver_match.kwargs.get("ns")
    body = render_to_string("refused.html", shown, None if quiet else request)
    response = HttpResponse(body, status=refusal.status)
    if refusal.retry_after is not None:
        response["Retry-After"] = str(refusal.retry_after)
    # For the line that the log has of each request.
    response.refusal = refusal  # type: ignore[attr-defined]
    return unstored(response)


def unstored(response: HttpResponse) -> HttpResponse:
    """Keep what a page shows out of every cache, the browser's own included."""
    patch_cache_control(response, no_store=True, private=True)
    return response


def _way_back(request: HttpRequest) -> str:
    # Signing in ends in a GET: from a decision it leads back to the note, one segment up.
    return request.get_full_path() if request.method in {"GET", "HEAD"} else request.path.rpartition("/")[0]
