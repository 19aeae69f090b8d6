"""Serving pages and API: a port that is free, one or several processes, and an end that leaves nothing behind."""

import contextlib
import errno
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from typing import Any, Final

from lychd.commands.telling import Unready, UsageError

DEFAULT_PORT: Final = 8000
_TRIED: Final = 100
_APPLICATION: Final = "lychd.asgi:application"
_WORKER: Final = "lychd.serving:worker"
_GRACE_SECONDS: Final = 5
_BACKLOG: Final = 2048


@dataclass(frozen=True, slots=True)
class Door:
    """A listening socket and where it is found; `moved` when the usual port was taken."""

    listening: socket.socket
    host: str
    port: int
    moved: bool

    @property
    def address(self) -> str:
        """The address for a browser on this machine."""
        shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - read, not bound
        return f"http://[{shown}]:{self.port}" if ":" in shown else f"http://{shown}:{self.port}"


def open_door(host: str, port: int | None) -> Door:
    """Listen on this port, or on the first free one from 8000 where none is named."""
    if port is not None and not 0 <= port <= 65_535:
        raise UsageError("--port takes 0 to 65535")
    wanted: Iterable[int] = range(DEFAULT_PORT, DEFAULT_PORT + _TRIED) if port is None else (port,)
    for one in wanted:
        with contextlib.suppress(_Taken):
            listening = _listen(host, one)
            found = int(listening.getsockname()[1])
            return Door(listening, host, found, moved=port is None and found != DEFAULT_PORT)
    if port is None:
        raise Unready(f"No port from {DEFAULT_PORT} to {DEFAULT_PORT + _TRIED - 1} is free; name another with --port.")
    raise Unready(f"Port {port} is taken; name another with --port, or none to get the next free one.")


class _Taken(Exception):
    """Somebody listens there already."""


def _listen(host: str, port: int) -> socket.socket:
    # By its number: where the protocol of a socket is left open, asyncio does not switch Nagle's algorithm off, and
    # each answer on a kept connection waits for the caller's delayed acknowledgement.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        # From here on callers wait in line instead of being turned away, so the address may be told.
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise _Taken from None
        raise Unready(f"Nobody can listen on {host} port {port}: {error.strerror or 'no such address'}.") from None
    return listening


def serve(door: Door, *, workers: int, ready: Callable[[], None], quiet: bool = False) -> None:
    """Answer until Ctrl-C or SIGTERM; `ready` is called once callers can come, `quiet` logs warnings alone."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from lychd import connections

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lychd.settings")
    config = uvicorn.Config(
        _APPLICATION if workers == 1 else _WORKER,
        factory=workers > 1,
        host=door.host,
        port=door.port,
        workers=workers,
        http="lychd.connections:Protocol",
        loop="lychd.connections:Loop",
        ws="none",
        lifespan="off",
        timeout_keep_alive=connections.IDLE_SECONDS,
        log_config=None,
        access_log=False,
        server_header=False,
        # Whom to believe about an address is a setting, and the application's to judge.
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    try:
        if workers == 1:
            config.load()
            if quiet:
                # Loading the application has set the log up anew.
                logging.getLogger().setLevel(logging.WARNING)

            class Answering(uvicorn.Server):
                """Says that callers can come once Ctrl-C is its own to handle, so that none finds it half made."""

                async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                    await super().startup(sockets=sockets)
                    ready()

            Answering(config).run(sockets=[door.listening])
        else:
            ready()
            Multiprocess(config, sockets=[door.listening]).run()
            # The supervisor swallows the signal that ended it; one process would have raised it.
            raise KeyboardInterrupt
    finally:
        door.listening.close()
        sys.stdout.flush()


def worker() -> Any:
    """Load the application in one of several processes, which ends when the one that started it is gone."""
    threading.Thread(target=_follow_parent, name="parent", daemon=True).start()
    from lychd.asgi import application

    return application


def _follow_parent() -> None:
    """Wait for the parent's end, however it came: killed, it tells nobody, and a worker would serve on for ever."""
    parent = parent_process()
    if parent is None:
        return
    connection.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    # Whoever does not answer even then is not worth waiting for.
    time.sleep(2 * _GRACE_SECONDS)
    os._exit(1)
