"""Every no over HTTP as one kind of document, `application/problem+json` (specification 5.13, RFC 9457).

Two refusals with one code are equal to the byte but for the correlation id. What nobody mapped is `internal`: the
answer says nothing of it, and the log has its type and its frames, no message, no local value.
"""

import json
import math
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import Error
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.http.request import UnreadablePostError
from django.views import defaults
from django.views.csrf import csrf_failure as csrf_failure_page
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions

from archive import refusals, transactions
from archive.refusals import Fault, InvalidRequest, Refusal
from lychd.logs import frames

MEDIA_TYPE: Final = "application/problem+json"
SPEAKS_JSON: Final = ("/api/", "/healthz", "/readyz")

log = structlog.get_logger(__name__)


def document(refusal: Refusal, correlation_id: str) -> dict[str, Any]:
    """Write a refusal down for whoever is meant to read it."""
    told: dict[str, Any] = {
        "type": f"urn:lychd:problem:{refusal.code}",
        "title": refusal.title,
        "status": refusal.status,
        "code": refusal.code,
        "detail": refusal.detail,
        "correlation_id": correlation_id,
    }
    if refusal.faults:
        told["errors"] = [fault.as_json() for fault in refusal.faults]
    return {**told, **refusal.extra}


def answer(request: HttpRequest, refusal: Refusal, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Answer a request with a refusal."""
    told = document(refusal, getattr(request, "correlation_id", ""))
    response = HttpResponse(
        json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace"),
        status=refusal.status,
        content_type=MEDIA_TYPE,
        headers={**headers_of(refusal), **(headers or {})},
    )
    response.refusal = refusal  # type: ignore[attr-defined]
    return response


def headers_of(refusal: Refusal) -> dict[str, str]:
    """Return the headers that every answer with this refusal has."""
    found = {"WWW-Authenticate": "Bearer"} if refusal.status == HTTPStatus.UNAUTHORIZED else {}
    return found if refusal.retry_after is None else {**found, "Retry-After": str(refusal.retry_after)}


def speaks_json(request: HttpRequest) -> bool:
    """Say whether an address answers programs rather than people."""
    return request.path_info == "/api" or request.path_info.startswith(SPEAKS_JSON)


# --- what a view of the API raised -----------------------------------------------------------------------------------


def exception_handler(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Turn whatever a view raised into its problem; the framework's own exceptions have ours beside them."""
    request = context["request"]._request
    return answer(request, refusal_of(error), _headers(error, context))


def refusal_of(error: Exception) -> Refusal:
    """Return the refusal that an exception means; an unknown one is logged and becomes `internal`."""
    raised = error
    if isinstance(error, Error):
        error = transactions.named(error)
    if isinstance(error, Refusal):
        return error
    for kind, refusal in _MEANING.items():
        if isinstance(error, kind):
            return refusal()
    log.error(
        "unhandled",
        error=type(error).__qualname__,
        sqlstate=getattr(error, "sqlstate", None),
        frames=frames(raised.__traceback__),
    )
    return refusals.Internal()


def _unreadable() -> Refusal:
    return InvalidRequest([Fault("", "a body that arrives whole")])


_MEANING: Final[dict[type[Exception], Callable[[], Refusal]]] = {
    exceptions.NotAuthenticated: refusals.NotAuthenticated,
    exceptions.AuthenticationFailed: refusals.NotAuthenticated,
    exceptions.PermissionDenied: refusals.AuthorityRefused,
    exceptions.MethodNotAllowed: refusals.MethodNotAllowed,
    exceptions.NotAcceptable: refusals.NotAcceptable,
    exceptions.UnsupportedMediaType: refusals.UnsupportedMedia,
    exceptions.Throttled: refusals.TooManyRequests,
    exceptions.NotFound: refusals.NotFound,
    exceptions.ParseError: InvalidRequest,
    PermissionDenied: refusals.AuthorityRefused,
    Http404: refusals.NotFound,
    RequestDataTooBig: refusals.BodyTooLarge,
    SuspiciousOperation: InvalidRequest,
    UnreadablePostError: _unreadable,
}


def _headers(error: Exception, context: Mapping[str, Any]) -> dict[str, str]:
    if isinstance(error, exceptions.Throttled):
        return {"Retry-After": str(max(1, math.ceil(getattr(error, "wait", None) or 1)))}
    if isinstance(error, exceptions.MethodNotAllowed):
        return {"Allow": ", ".join(context["view"].allowed_methods)}
    return {}


# --- what never reached a view ---------------------------------------------------------------------------------------


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Django's 400."""
    if not speaks_json(request):
        return defaults.bad_request(request, exception)
    return answer(request, refusal_of(exception) if isinstance(exception, RequestDataTooBig) else InvalidRequest())


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Django's 403."""
    if not speaks_json(request):
        return defaults.permission_denied(request, exception)
    return answer(request, refusals.AuthorityRefused())


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Django's 404."""
    if not speaks_json(request):
        return defaults.page_not_found(request, exception)
    return answer(request, refusals.NotFound())


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Django's 500."""
    if not speaks_json(request):
        return defaults.server_error(request)
    error = sys.exc_info()[1]
    return answer(request, refusal_of(error) if isinstance(error, Exception) else refusals.Internal())


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    """Django's answer to a write without its token."""
    if not speaks_json(request):
        return csrf_failure_page(request, reason)
    return answer(request, refusals.CsrfFailed())


@csrf_exempt
def nowhere(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Answer for every address below /api that is none, in development too, whatever the method."""
    return answer(request, refusals.NotFound())
