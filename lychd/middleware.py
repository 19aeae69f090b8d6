"""The outermost ring of Django: a correlation id for each request, and no caching of answers."""

import re
import uuid
from collections.abc import Callable
from typing import Final

import structlog
from django.http import HttpRequest, HttpResponseBase

from archive.refusals import Fault, InvalidRequest
from lychd import access_log, problems

HEADER: Final = "X-Request-ID"

_ACCEPTED: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


def correlation_id_of(given: str | None) -> str:
    """Keep the caller's id if it has the form of one, else make one."""
    return given if given is not None and _ACCEPTED.fullmatch(given) else str(uuid.uuid4())


class Correlation:
    """Give each request its id, in the log and in the answer, and let no cache keep an answer of the API."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Wrap one request."""
        correlation_id = correlation_id_of(request.headers.get(HEADER))
        request.correlation_id = correlation_id  # type: ignore[attr-defined]
        with (
            access_log.entry_of(request.method or "", request.path_info) as entry,
            structlog.contextvars.bound_contextvars(correlation_id=correlation_id, principal=None),
        ):
            entry.correlation_id = correlation_id
            if any("\x00" in value for value in request.COOKIES.values()):
                # The session would be looked up by it, and PostgreSQL takes no NUL.
                request.COOKIES.clear()
                response: HttpResponseBase = problems.answer(
                    request, InvalidRequest([Fault("", "cookies without a NUL character")])
                )
            else:
                response = self._get_response(request)
            # Whoever asks is known to those inside alone, and bound by them.
            entry.principal = structlog.contextvars.get_contextvars().get("principal")
            access_log.answered(entry, request, response)
        response[HEADER] = correlation_id
        if problems.speaks_json(request):
            response["Cache-Control"] = "no-store"
        return response
