"""What stands before Django in a serving process: probes and static files, which take no thread of its, and the bounds.

Each is an ASGI application that looks at the path; what streams can stand beside them. Django itself is served as WSGI,
whole in one thread, since its own ASGI handler sends every middleware through one.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from a2wsgi import WSGIMiddleware
from a2wsgi.wsgi import build_environ
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from whitenoise.middleware import WhiteNoiseFileResponse, WhiteNoiseMiddleware

from archive.refusals import ArchiveTimeout
from lychd import health, problems
from lychd.access_log import AccessLog, Application, Receive, Send
from lychd.bounds import AT_ONCE, Bounded, Scope, address_of
from lychd.middleware import Correlation

READY_SECONDS: Final = 2.0
"""How long /readyz may look; a database that hangs is one that is not there."""
# Also with _ for -, which WSGI cannot tell apart.
_FORWARDED: Final = re.compile(rb"(?i:forwarded$|x-forwarded-|.*_)")
_PIECE: Final = 64 * 1024

View = Callable[[HttpRequest], HttpResponse]


def serving(django: WSGIHandler) -> Application:
    """Put everything before Django that a process needs to serve strangers."""
    front = Front(Bounded(cast(Application, WSGIMiddleware(cast(Any, django), workers=AT_ONCE))))
    # A proxy that is named tells whom it speaks for; what anybody else says of it, the front takes away.
    return AccessLog(cast(Application, ProxyHeadersMiddleware(cast(Any, front), settings.LYCHD_TRUSTED_PROXIES)))


class Front:
    """Send a request where it belongs: to a probe, to a static file, or to Django in its turn."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._probes: dict[str, Callable[[Scope, Send], Any]] = {"/healthz": self._healthz, "/readyz": self._readyz}
        self._static = _Static()
        self._ready = _Alone(_ringed(health.readyz))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what is no HTTP goes on as it is."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        prefix, path = settings.LYCHD_PATH_PREFIX, scope["path"]
        if path.startswith(f"{prefix}/") or path == prefix:
            scope = {**scope, "root_path": prefix}
        elif path not in self._probes:
            await _give(_ringed(problems.nowhere)(_request(scope)), send)
            return
        scope = {**scope, "headers": [header for header in scope["headers"] if not _FORWARDED.match(header[0])]}
        if probe := self._probes.get(address_of(scope)):
            await probe(scope, send)
        elif not await self._static(scope, send):
            await self._application(scope, receive, send)

    async def _healthz(self, scope: Scope, send: Send) -> None:
        await _give(_ringed(health.healthz)(_request(scope)), send)

    async def _readyz(self, scope: Scope, send: Send) -> None:
        request = _request(scope)
        try:
            async with asyncio.timeout(READY_SECONDS):
                response = await self._ready(request)
        except TimeoutError:
            response = _ringed(lambda asked: problems.answer(asked, ArchiveTimeout()))(request)
        await _give(response, send)


def _ringed(view: View) -> View:
    """A view with the two middlewares that every answer passes; the others ask for a host, a session or a database."""
    return cast(View, Correlation(cast(Any, SecurityMiddleware(cast(Any, view)))))


class _Alone:
    """A view in a thread of its own, with a connection of its own. Whoever asks meanwhile gets the same answer."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ready")
        self._running: asyncio.Future[HttpResponse] | None = None

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().run_in_executor(self._thread, self._look, request)
        return await asyncio.shield(self._running)

    def _look(self, request: HttpRequest) -> HttpResponse:
        close_old_connections()
        try:
            return self._view(request)
        finally:
            close_old_connections()


class _Static:
    """Static files, read piece by piece between the requests of others, with no thread and no open file meanwhile."""

    def __init__(self) -> None:
        self._files = WhiteNoiseMiddleware()

    async def __call__(self, scope: Scope, send: Send) -> bool:
        """Answer with a file, or say that there is none there."""
        path = address_of(scope)
        if not path.startswith(self._files.static_prefix):
            return False
        found = self._files.find_file(path) if self._files.autorefresh else self._files.files.get(path)
        if found is None:
            return False
        try:
            response = _ringed(lambda request: self._files.serve(found, request))(_request(scope))
        except SuspiciousOperation:
            # A host that is not served; Django says so.
            return False
        await _give(response, send)
        return True


def _request(scope: Scope) -> WSGIRequest:
    return WSGIRequest(cast(Any, build_environ(cast(Any, scope), cast(Any, BytesIO()))))


async def _give(response: HttpResponse, send: Send) -> None:
    if not isinstance(response, WhiteNoiseFileResponse):
        response["Content-Length"] = len(response.content)
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    for piece in _pieces(response):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _pieces(response: HttpResponse) -> Iterator[bytes]:
    if not isinstance(response, WhiteNoiseFileResponse):
        yield response.content
        return
    file: BinaryIO | None = getattr(response, "file_to_stream", None)
    response.close()
    if file is None:
        return
    # A slow reader keeps us waiting between two pieces, and a descriptor is worth more than opening the file again.
    path = Path(getattr(file, "fileobj", file).name)
    begin, left = _span(response)
    while left > 0:
        with path.open("rb") as again:
            again.seek(begin)
            piece = again.read(min(_PIECE, left))
        if not piece:
            return
        begin, left = begin + len(piece), left - len(piece)
        yield piece


def _span(response: HttpResponse) -> tuple[int, int]:
    """Where the bytes of an answer begin in its file, and how many they are."""
    ranged = response.headers.get("Content-Range", "bytes 0-")
    return int(ranged.removeprefix("bytes ").partition("-")[0]), int(response.headers["Content-Length"])
