"""What one process takes on at a time: how large a body may be, how long it may take, and whose turn it is.

Whoever asks belongs to one of four kinds, and each kind has places and a line of its own, so that a crowd of one kind
keeps nobody of another waiting. A request takes its place once its body is whole and gives it back with the answer, so
that neither a slow sender nor a slow reader holds one.
"""

import asyncio
import contextlib
import enum
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.urls import Resolver404, resolve

from archive import limits
from archive.refusals import BodyTooLarge, Fault, InvalidRequest, NotAuthenticated, Refusal, TooManyRequests
from lychd import access_log, problems
from lychd.access_log import Application, Message, Receive, Send
from lychd.middleware import HEADER, correlation_id_of

BODY_SECONDS: Final = 30.0
"""How long a body may take to arrive."""
PLACE_SECONDS: Final = 10.0
"""How long a request may wait in line."""
STRANGER_BODY_BYTES: Final = 16 * 1024
"""A body of somebody who shows neither token nor session; the form for signing in is the largest that is of use."""
BODIES_BYTES: Final = 64 * 1024 * 1024
"""All bodies together that one process holds, and of them those of strangers."""
STRANGERS_BODIES_BYTES: Final = 2 * 1024 * 1024
DRAIN_BYTES: Final = 16 * 1024 * 1024
"""How much of a refused body is read and thrown away, so that its sender sees the answer and not a reset."""
DRAIN_SECONDS: Final = 5.0

Scope = dict[str, Any]


class Kind(enum.Enum):
    """Who asks, as far as can be told without looking anything up."""

    API = "api"
    PAGES = "pages"
    STRANGER = "stranger"
    SIGN_IN = "sign-in"


@dataclass(frozen=True, slots=True)
class Line:
    """How many requests of a kind are worked on side by side, and how many more may wait."""

    places: int
    waiting: int


LINES: Final[Mapping[Kind, Line]] = {
    Kind.API: Line(14, 256),
    Kind.PAGES: Line(5, 64),
    Kind.STRANGER: Line(4, 32),
    # Each hashes a password, which takes a core for a third of a second.
    Kind.SIGN_IN: Line(1, 16),
}
AT_ONCE: Final = sum(line.places for line in LINES.values())
"""How many requests of one process are worked on side by side: each has a thread and a connection of its own, and a
hundred of them would leave nobody else one. The rest wait in line; few cores answer them no later."""

SIGN_IN: Final = "/sign-in"
_TOKEN: Final = re.compile(rb"(?i:bearer) lychd_[A-Za-z0-9_-]{43}")
_SESSION: Final = re.compile(
    rb"(?:^|;)\s*%s=\"?[a-z0-9]{32}\"?\s*(?:;|$)" % re.escape(settings.SESSION_COOKIE_NAME.encode())
)


def kind_of(scope: Scope) -> Kind:
    """Tell whose request this is by its address and the form of its token or session, whether they hold or not."""
    path = address_of(scope)
    if scope.get("method") == "POST" and path == SIGN_IN:
        return Kind.SIGN_IN
    headers = dict(scope.get("headers", ()))
    token = _TOKEN.fullmatch(headers.get(b"authorization", b""))
    if not token and not _SESSION.search(headers.get(b"cookie", b"")):
        return Kind.STRANGER
    return Kind.API if path.startswith("/api/") else Kind.PAGES


def address_of(scope: Scope) -> str:
    """The address as the URLs of the service name it, without the prefix that it is served below."""
    return str(scope.get("path", "")).removeprefix(str(scope.get("root_path", "")))


def limit_of(path: str, kind: Kind) -> int:
    """Return how large a body may be: little of a stranger; what the view of the API says; else that of a batch."""
    if kind in (Kind.STRANGER, Kind.SIGN_IN):
        return STRANGER_BODY_BYTES
    if not path.startswith("/api/"):
        return limits.BATCH_BODY_MAX_BYTES
    try:
        view = getattr(resolve(path).func, "cls", None)
    except Resolver404:
        view = None
    return int(getattr(view, "body_limit", limits.BODY_MAX_BYTES))


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


class _Left(Exception):
    """The caller has hung up, so nobody waits for an answer."""


class Bounded:
    """Hand a request on when its body is whole and its turn has come; refuse one that takes more than its share."""

    def __init__(
        self,
        application: Application,
        *,
        seconds: float = BODY_SECONDS,
        lines: Mapping[Kind, Line] = LINES,
        bodies: int = BODIES_BYTES,
    ) -> None:
        self._application = application
        self._seconds = seconds
        self._turns = {kind: _Turns(line) for kind, line in lines.items()}
        self._bodies = _Held(bodies, None)
        self._strangers_bodies = _Held(min(bodies, STRANGERS_BODIES_BYTES), self._bodies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wrap one request; what is no HTTP passes through."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        kind = kind_of(scope)
        held = self._bodies if kind in (Kind.API, Kind.PAGES) else self._strangers_bodies
        body = _Body(receive, limit_of(address_of(scope), kind), self._seconds, held)
        try:
            answer = await self._answer(scope, kind, body)
        except _Left:
            return
        except _Refused as refused:
            refusal = refused.refusal
            if isinstance(refusal, BodyTooLarge) and kind is Kind.STRANGER and address_of(scope).startswith("/api/"):
                # With a token it might have been within its bound.
                refusal = NotAuthenticated()
            await _tell(send, refusal, scope, body)
        else:
            for message in answer:
                await send(message)

    async def _answer(self, scope: Scope, kind: Kind, body: "_Body") -> list[Message]:
        answer: list[Message] = []

        async def keep(message: Message) -> None:
            # Not yet to the caller, who may read as slowly as they like once the place is given back.
            answer.append(message)

        try:
            await body.arrive(dict(scope.get("headers", ())))
            async with self._turns[kind].turn(body.receive):
                await self._application(body.measured(scope), body.give, keep)
        finally:
            body.forget()
        return answer


class _Held:
    """Bytes that are held at the moment, and a bound for them; inside another such bound where there is one."""

    def __init__(self, most: int, outer: "_Held | None") -> None:
        self._most, self._outer, self._now = most, outer, 0

    def take(self, size: int) -> bool:
        """Count these bytes in, or say that there is no room for them."""
        if self._now + size > self._most or not (self._outer is None or self._outer.take(size)):
            return False
        self._now += size
        return True

    def give_back(self, size: int) -> None:
        """Count these bytes out."""
        self._now -= size
        if self._outer is not None:
            self._outer.give_back(size)


class _Body:
    """A body on its way in, as the parts that it came in."""

    def __init__(self, receive: Receive, most: int, seconds: float, held: _Held) -> None:
        self.receive = receive
        self._most, self._seconds, self._held = most, seconds, held
        self._parts: list[bytes] = []
        self._size = 0
        self.whole = self._late = False

    async def arrive(self, headers: Mapping[bytes, bytes]) -> None:
        """Take the whole body in, or refuse it as soon as it is over a bound."""
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self._most):
            raise _Refused(BodyTooLarge())
        deadline = asyncio.get_running_loop().time() + self._seconds
        while not self.whole:
            try:
                async with asyncio.timeout_at(deadline):
                    message = await self.receive()
            except TimeoutError:
                self._late = True
                raise _Refused(
                    InvalidRequest([Fault("", f"a body that arrives within {self._seconds:.0f} seconds")])
                ) from None
            if message["type"] != "http.request":
                raise _Left
            part = message.get("body", b"")
            self.whole = not message.get("more_body", False)
            if self._size + len(part) > self._most:
                raise _Refused(BodyTooLarge())
            if not self._held.take(len(part)):
                raise _Refused(TooManyRequests())
            self._size += len(part)
            self._parts.append(part)

    def measured(self, scope: Scope) -> Scope:
        """Say how long the body is, also of one that came in chunks, since WSGI reads what is announced and no more."""
        framing = (b"content-length", b"transfer-encoding")
        headers = [(name, value) for name, value in scope.get("headers", ()) if name not in framing]
        return {**scope, "headers": [*headers, (b"content-length", str(self._size).encode())]}

    async def give(self) -> Message:
        """Hand the parts on, one after the other, and keep none that was handed on."""
        if not self._parts:
            return await self.receive()
        part = self._parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(self._parts)}

    def forget(self) -> None:
        """Make room for the bodies of others."""
        self._held.give_back(self._size)
        self._size = 0
        self._parts.clear()

    async def drain(self) -> None:
        """Read on for a while and keep nothing: a connection closed over unread bytes loses the answer to a reset."""
        left = 0 if self._late else DRAIN_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while left > 0 and not self.whole:
                    message = await self.receive()
                    self.whole = message["type"] != "http.request" or not message.get("more_body", False)
                    left -= len(message.get("body", b""))


class _Turns:
    """The places of one kind and the line before them."""

    def __init__(self, line: Line) -> None:
        self._places = asyncio.Semaphore(line.places)
        self._most, self._waiting = line.waiting, 0

    @contextlib.asynccontextmanager
    async def turn(self, receive: Receive) -> AsyncIterator[None]:
        """Wait for a place and hold it; refuse where the line is long, and leave it with a caller who hangs up."""
        if self._places.locked():
            await self._wait(receive)
        else:
            await self._places.acquire()
        try:
            yield
        finally:
            self._places.release()

    async def _wait(self, receive: Receive) -> None:
        if self._waiting >= self._most:
            raise _Refused(TooManyRequests())
        self._waiting += 1
        place = asyncio.ensure_future(self._places.acquire())
        left = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({place, left}, timeout=PLACE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not place.done():
                raise _Left if left.done() else _Refused(TooManyRequests())
        except BaseException:
            if not place.cancel() and not place.cancelled():
                self._places.release()
            raise
        finally:
            self._waiting -= 1
            left.cancel()


async def _tell(send: Send, refusal: Refusal, scope: Scope, body: _Body) -> None:
    access_log.refused_by(refusal)
    given = dict(scope.get("headers", ())).get(b"x-request-id", b"").decode("latin-1")
    correlation_id = correlation_id_of(given)
    content = json.dumps(problems.document(refusal, correlation_id), separators=(",", ":")).encode()
    headers = [
        (b"content-type", problems.MEDIA_TYPE.encode()),
        (b"content-length", str(len(content)).encode()),
        (b"cache-control", b"no-store"),
        (HEADER.lower().encode(), correlation_id.encode()),
    ]
    headers += [(name.lower().encode(), value.encode()) for name, value in problems.headers_of(refusal).items()]
    if not body.whole:
        # What is left of the body is not taken.
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": True})
    # The caller has the whole answer by its length; the connection stays until they have stopped sending.
    await body.drain()
    await send({"type": "http.response.body", "body": b""})
