"""The access log: one line a request, whoever answers it, with its route and never its path, which may hold a text.

The outermost ring that meets a request opens an entry and writes it at the end; every ring inside adds what it learns.
"""

import contextvars
import logging
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, ResolverMatch, resolve

from archive.refusals import Refusal

log = logging.getLogger(__name__)

UNRESOLVED: Final = "unresolved"
STATIC: Final = "static"
PROBES: Final = frozenset({"/healthz", "/readyz"})
HUNG_UP: Final = 499
"""The status of a line whose caller left before there was an answer, as nginx writes it."""
REPEATS_SECONDS: Final = 60.0
REPEATS_TOLD: Final = 50
"""How many requests of one kind strangers have a line for within those seconds; the others are counted."""

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
# A pattern that takes any address is no address.
_ANY: Final = re.compile(r"\(\?P<(rest|address|url)>\.\*\)")


@dataclass(slots=True)
class Entry:
    """What the line of one request says."""

    method: str
    path: str = field(repr=False)
    began: float = field(default_factory=time.monotonic)
    route: str | None = None
    status: int | None = None
    correlation_id: str | None = None
    principal: int | None = None
    code: str | None = None
    sqlstate: str | None = None


_entry: Final[contextvars.ContextVar[Entry | None]] = contextvars.ContextVar("access_log_entry", default=None)


@contextmanager
def entry_of(method: str, path: str) -> Iterator[Entry]:
    """Give the entry of the request that is being answered; whoever opens it also writes it."""
    known = _entry.get()
    if known is not None:
        yield known
        return
    entry = Entry(method, path)
    token = _entry.set(entry)
    try:
        yield entry
    finally:
        _entry.reset(token)
        _write(entry)


def refused_by(refusal: Refusal) -> None:
    """Note why the request at hand is refused."""
    if (entry := _entry.get()) is not None:
        entry.code, entry.sqlstate = refusal.code, refusal.sqlstate


def answered(entry: Entry, request: HttpRequest, response: HttpResponseBase) -> None:
    """Note what Django made of a request."""
    if (refusal := getattr(response, "refusal", None)) is not None:
        refused_by(refusal)
    match = request.resolver_match
    entry.route = _route(match) if match is not None else route_of(request.path_info)
    entry.status = response.status_code


def route_of(path: str) -> str:
    """Return the pattern of an address, or a fixed word where it has none."""
    address = path.removeprefix(settings.LYCHD_PATH_PREFIX)
    if f"{settings.LYCHD_PATH_PREFIX}{address}".startswith(settings.STATIC_URL):
        return STATIC
    try:
        return _route(resolve(address))
    except Resolver404:
        return UNRESOLVED


def _route(match: ResolverMatch) -> str:
    return UNRESOLVED if _ANY.search(match.route) else f"/{match.route}"


# Rings outside of Django

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


class AccessLog:
    """The outermost ring of the ASGI application: it sees the answers of every ring inside, refusals among them."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Wrap one request; what is no HTTP passes through."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry.status, scope["known"] = message["status"], entry.principal is not None
                for name, value in message.get("headers", ()):
                    if name.lower() == b"x-request-id":
                        entry.correlation_id = value.decode("latin-1")
            await send(message)

        with entry_of(scope.get("method", "GET"), scope.get("path", "/")) as entry:
            try:
                await self._application(scope, receive, noting)
            except Exception:
                entry.status = entry.status or 500
                raise


# Lines


def _write(entry: Entry) -> None:
    route = entry.route or route_of(entry.path)
    method = entry.method if entry.method in _METHODS else "other"
    status = HUNG_UP if entry.status is None else entry.status
    for (of_method, of_route, of_status, of_code), more in _repeats.over():
        told = {"method": of_method, "route": of_route, "status": of_status, "code": of_code, "repeated": more}
        log.info("requests of strangers, not told one by one", extra=told)
    if entry.principal is None and not _repeats.told((method, route, status, entry.code)):
        return
    said: dict[str, Any] = {
        "method": method,
        "route": route,
        "status": status,
        "ms": round((time.monotonic() - entry.began) * 1000, 1),
        "correlation_id": entry.correlation_id,
        "principal": entry.principal,
    }
    if entry.code is not None:
        said["code"] = entry.code
    if entry.sqlstate is not None:
        said["sqlstate"] = entry.sqlstate
    log.log(_level(route, status), "request", extra=said)


def _level(route: str, status: int) -> int:
    if route in PROBES and status < 400:
        # Every few seconds, and it says nothing that silence would not.
        return logging.DEBUG
    if status < 500:
        return logging.INFO
    return logging.WARNING if status == 503 else logging.ERROR


_Kind = tuple[str, str, int, str | None]


class _Repeats:
    """Requests of strangers that are equal: so many lines a minute, and then the number of those that had none.

    A kind is a method, a route, a status and a code, so there are few, however many strangers come.
    """

    def __init__(self, seconds: float = REPEATS_SECONDS, most: int = REPEATS_TOLD) -> None:
        self._seconds = seconds
        self._most = most
        self._guard = threading.Lock()
        self._seen: dict[_Kind, tuple[float, int]] = {}
        """When the minute of a kind began, and how many came in it."""

    def told(self, kind: _Kind) -> bool:
        """Count one more, and say whether it has a line of its own."""
        now = time.monotonic()
        with self._guard:
            since, count = self._seen.get(kind, (now, 0))
            self._seen[kind] = (since, count + 1)
            return count < self._most

    def over(self) -> Iterator[tuple[_Kind, int]]:
        """End the minutes that are over; yields each kind of which more came than were told, and how many more."""
        now = time.monotonic()
        with self._guard:
            over = [(kind, count) for kind, (since, count) in self._seen.items() if now - since >= self._seconds]
            for kind, _ in over:
                del self._seen[kind]
        yield from ((kind, count - self._most) for kind, count in over if count > self._most)


_repeats: Final = _Repeats()
