"""The connections of a serving process: how many there may be, and how long one may keep us waiting.

Every stage at which a peer could make us wait has a deadline. Where all connections are taken, whoever has kept us
waiting longest makes room for whoever comes, as in nginx; a connection whose request is ours to answer never does.
"""

import asyncio
import enum
import errno
import fcntl
import resource
import select
import socket
import termios
from asyncio import transports
from collections.abc import Callable
from typing import Any, Final

import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS: Final = 10.0
"""How long the head of a request may take, from the first byte or the beginning of the connection."""
IDLE_SECONDS: Final = 75
"""How long a connection may rest between two requests: longer than a proxy keeps its own."""
WRITE_SECONDS: Final = 20.0
"""How long a peer may read nothing of what it asked for."""
GRACE_SECONDS: Final = 0.1
"""How long a connection may keep us waiting before it may have to make room for another."""
CLOSE_SECONDS: Final = 5.0
"""How long what was written last may take to leave a connection that is closed."""
BURST: Final = 32
"""How many connections are taken at once before any is served."""
_RESERVED: Final = 4 * BURST
"""Descriptors that connections leave alone: for the database, the log, files, and connections that just close."""
_MOST: Final = 4_096
# The kernel would take megabytes of an answer that nobody reads, and filling them would keep the process busy.
_SEND_BUFFER: Final = 128 * 1024
_SWEEP_SECONDS: Final = 1.0
# How soon it is looked again after no connection could make room, and after no descriptor was left.
_FULL_SECONDS: Final = 0.02
_EMPTY_SECONDS: Final = 0.2

log = structlog.get_logger(__name__)


class Stage(enum.Enum):
    """Whom a connection waits for: its peer's next head, its peer's next request, or us."""

    HEAD = enum.auto()
    IDLE = enum.auto()
    ASKED = enum.auto()


class Connections:
    """Every connection of this process."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.crowded = False
        """Whether somebody is left in the kernel's line for whom there was no room."""
        self._open: set[Protocol] = set()
        # Accepted, and not yet with their protocol.
        self._coming = 0

    def admit(self, now: float) -> bool:
        """Count in one more where there is room, or where somebody who keeps us waiting can make it."""
        if len(self._open) + self._coming >= self.most:
            waiting = min((one for one in self._open if one.may_go(now)), key=Protocol.rank, default=None)
            if waiting is None:
                return False
            waiting.end()
        self._coming += 1
        return True

    def withdraw(self) -> None:
        """Count out one that did not come after all."""
        self._coming -= 1

    def add(self, one: "Protocol") -> None:
        """Count in a connection that was admitted."""
        self._coming -= 1
        self._open.add(one)

    def discard(self, one: "Protocol") -> None:
        """Count out one that ends."""
        self._open.discard(one)

    def sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """End whoever is over a deadline, now and from now on."""
        now = loop.time()
        for one in [one for one in self._open if one.is_late(now)]:
            one.end()
        loop.call_later(_SWEEP_SECONDS, self.sweep, loop)


class Protocol(H11Protocol):
    """HTTP/1.1 with a deadline for each stage."""

    def connection_made(self, transport: transports.BaseTransport) -> None:
        """Begin to wait for the first head."""
        super().connection_made(transport)  # type: ignore[arg-type]
        loop: Any = self.loop
        self._all: Connections = loop.connections
        self._stage, self._since, self._served = Stage.HEAD, self.loop.time(), False
        self._unread_since: float | None = None
        self._closing_since: float | None = None
        self._all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self._all.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes in; a head that has begun has to end in time."""
        if self._stage is Stage.IDLE:
            self._enter(Stage.HEAD)
        super().data_received(data)
        if self._asked() and self._stage is Stage.HEAD:
            self._enter(Stage.ASKED)

    def on_response_complete(self) -> None:
        """Rest until the next request, or go on with one that has come already; in a crowd strangers ask once."""
        self._served = True
        if self._makes_room():
            self.transport.close()
        self._enter(Stage.HEAD if self.conn.trailing_data[0] else Stage.IDLE)
        super().on_response_complete()
        if self._asked():
            self._enter(Stage.ASKED)

    def _makes_room(self) -> bool:
        # Asking again at once, a stranger would never wait for us, nor make room for whoever is left in the line.
        return self._all.crowded and not self.cycle.scope.get("known")

    def pause_writing(self) -> None:
        """Note that the peer does not read."""
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that it does."""
        self._unread_since = None
        super().resume_writing()

    def _enter(self, stage: Stage) -> None:
        self._stage, self._since = stage, self.loop.time()

    def _asked(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _waits_since(self) -> float | None:
        """Since when this connection has waited for its peer; None where it waits for us."""
        if self._unread_since is not None:
            return self._unread_since
        if self._stage is not Stage.ASKED or self.cycle.more_body:
            return self._since
        return None

    def may_go(self, now: float) -> bool:
        """Say whether this one has kept us waiting for a while and has sent nothing meanwhile."""
        since = self._waits_since()
        if since is None or now - since < GRACE_SECONDS:
            return False
        if self._unread_since is not None or self.transport.is_closing():
            return True
        # What has come and was not read yet: it is we who are late.
        unread = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.FIONREAD, bytes(4))
        return unread == bytes(4)

    def rank(self) -> tuple[bool, float]:
        """Who has to make room first: whoever was never answered, then whoever has kept us waiting longest."""
        return self._served, self._waits_since() or 0.0

    def is_late(self, now: float) -> bool:
        """Say whether a deadline has passed."""
        if self.transport.is_closing():
            if self._closing_since is None:
                self._closing_since = now
            return now - self._closing_since > CLOSE_SECONDS
        if self._unread_since is not None:
            return now - self._unread_since > WRITE_SECONDS
        # A body has its own deadline, which answers; a rest is ended by the protocol itself.
        return self._stage is Stage.HEAD and now - self._since > HEADER_SECONDS

    def end(self) -> None:
        """Close at once, whatever was still to be written."""
        self._all.discard(self)
        self.transport.abort()


class Listener:
    """Takes callers in while there is room; the others stay in the kernel's line until there is."""

    def __init__(self, loop: "Loop", factory: Callable[[], asyncio.Protocol], listening: socket.socket) -> None:
        self._loop, self._factory, self._listening = loop, factory, listening
        listening.settimeout(0)
        self._resume()

    def close(self) -> None:
        """Stop listening."""
        self._loop.remove_reader(self._listening)
        self._listening.close()

    async def wait_closed(self) -> None:
        """Return at once: connections end by themselves."""

    def _resume(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening, self._accept)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._loop.call_later(seconds, self._look_again)

    def _look_again(self) -> None:
        self._resume()
        # Where the line is empty by now, nobody would come to say so.
        if self._listening.fileno() >= 0 and not _readable(self._listening):
            self._loop.connections.crowded = False

    def _accept(self) -> None:
        everybody = self._loop.connections
        for _ in range(BURST):
            if not everybody.admit(self._loop.time()):
                everybody.crowded = True
                self._pause(_FULL_SECONDS)
                return
            try:
                connection, _ = self._listening.accept()
            except OSError as error:
                everybody.withdraw()
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    log.error("no descriptor left for a connection")
                    self._pause(_EMPTY_SECONDS)
                else:
                    # A line that is empty, or a caller who has gone.
                    everybody.crowded = False
                return
            connection.settimeout(0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
            self._loop.create_task(self._greet(connection))

    async def _greet(self, connection: socket.socket) -> None:
        await self._loop.connect_accepted_socket(self._factory, connection)


def _readable(listening: socket.socket) -> bool:
    look = select.poll()
    look.register(listening, select.POLLIN)
    return bool(look.poll(0))


class Loop(asyncio.SelectorEventLoop):
    """The event loop of a serving process: it takes no more connections than the process can hold."""

    def __init__(self, selector: Any = None) -> None:
        super().__init__(selector)
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        room = _MOST if descriptors == resource.RLIM_INFINITY else descriptors - _RESERVED
        self.connections = Connections(max(BURST, min(room, _MOST)))

    async def create_server(  # type: ignore[override]
        self, factory: Any, *_: Any, sock: Any = None, **named: Any
    ) -> Any:
        """Take in callers of a socket that listens already."""
        self.connections.sweep(self)
        return Listener(self, factory, sock)
