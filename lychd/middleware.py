"""The outermost ring: a correlation id for each request, no caching of answers, and bodies that cannot grow.

`Correlation` is Django middleware. `BoundedBodies` stands before Django, which would otherwise put a body of any size
on disk before a view could refuse it.
"""

import asyncio
import contextlib
import json
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import structlog
from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, resolve

from archive import limits
from archive.refusals import BodyTooLarge, Fault, InvalidRequest, Refusal
from lychd import access_log, problems

HEADER: Final = "X-Request-ID"
BODY_SECONDS: Final = 30.0
"""How long a body may take to arrive."""
AT_ONCE: Final = 24
"""How many requests of one process are worked on side by side: each has a thread and a connection of its own, and a
hundred of them would leave nobody else one. The rest wait in line; few cores answer them no later."""

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


Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


class BoundedBodies:
    """Refuse a body over its address's limit after that many bytes, and one that dawdles, before Django sees it.

    Once its body is whole a request waits for one of `at_once` places, so that a slow sender takes none.
    """

    def __init__(self, application: Application, *, seconds: float = BODY_SECONDS, at_once: int = AT_ONCE) -> None:
        self._application = application
        self._seconds = seconds
        self._places = asyncio.Semaphore(at_once)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Wrap one request; what is no HTTP passes through."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        most = limit_of(scope.get("path", ""))
        headers = dict(scope.get("headers", ()))
        declared = headers.get(b"content-length", b"0")
        try:
            if declared.isdigit() and (len(declared) > 18 or int(declared) > most):
                raise _Refused(BodyTooLarge())
            async with contextlib.AsyncExitStack() as held:
                await self._application(scope, self._counting(receive, most, held), send)
        except _Refused as refused:
            await _tell(send, refused.refusal, correlation_id_of(headers.get(b"x-request-id", b"").decode("latin-1")))

    def _counting(self, receive: Receive, most: int, held: contextlib.AsyncExitStack) -> Receive:
        deadline = asyncio.get_running_loop().time() + self._seconds
        counted, whole = 0, False

        async def bounded() -> Message:
            nonlocal counted, whole
            if whole:
                # The body is here; what comes next is only the caller hanging up.
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise _Refused(
                    InvalidRequest([Fault("", f"a body that arrives within {self._seconds:.0f} seconds")])
                ) from None
            if message["type"] == "http.request":
                counted += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if counted > most:
                    raise _Refused(BodyTooLarge())
                if whole:
                    await held.enter_async_context(self._places)
            return message

        return bounded


def limit_of(path: str) -> int:
    """Return how large a body of this address may be: what its view says, else the limit of a batch, as for pages."""
    if not path.startswith("/api/"):
        return limits.BATCH_BODY_MAX_BYTES
    try:
        view = getattr(resolve(path).func, "cls", None)
    except Resolver404:
        view = None
    return int(getattr(view, "body_limit", limits.BODY_MAX_BYTES))


async def _tell(send: Send, refusal: Refusal, correlation_id: str) -> None:
    access_log.refused_by(refusal)
    content = json.dumps(problems.document(refusal, correlation_id), separators=(",", ":")).encode()
    await send(
        {
            "type": "http.response.start",
            "status": refusal.status,
            "headers": [
                (b"content-type", problems.MEDIA_TYPE.encode()),
                (b"content-length", str(len(content)).encode()),
                (b"cache-control", b"no-store"),
                (HEADER.lower().encode(), correlation_id.encode()),
                # What is left of the body is not read.
                (b"connection", b"close"),
            ],
        }
    )
    await send({"type": "http.response.body", "body": content})
