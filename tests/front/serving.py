"""A served process to talk to over real sockets, and a database connection that can be made to hang."""

import contextlib
import http.client
import json
import re
import selectors
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.commands.conftest import PATIENCE


@dataclass(frozen=True)
class Answer:
    """One answer, whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    took: float

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    """A process that serves, its port, and where its log goes."""

    process: "subprocess.Popen[str]"
    port: int
    log: Path

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> Answer:
        """Ask once, on a connection of its own."""
        with contextlib.closing(self.connect()) as connection:
            return ask(connection, path, method, body, **headers)

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)


def ask(
    connection: http.client.HTTPConnection, path: str, method: str = "GET", body: Any = None, **headers: str
) -> Answer:
    """Ask on a kept connection; header names have _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, dict | list):
        body = json.dumps(body)
        named["Content-Type"] = "application/json"
    begun = time.monotonic()
    connection.request(method, path, body, named)
    answer = connection.getresponse()
    content = answer.read()
    told = {name.lower(): value for name, value in answer.getheaders()}
    return Answer(answer.status, told, content, time.monotonic() - begun)


def address_in(process: "subprocess.Popen[str]", log: Path) -> int:
    """Wait for the line that tells the address and return its port."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if found := re.search(r"http://[^/\s\"]*:(\d+)", line):
            return int(found[1])
    raise AssertionError(f"no address told: {said}\n{log.read_text() if log.exists() else ''}")


class Relay:
    """Stands between a process and PostgreSQL, and can hold every byte back as a machine that hangs would."""

    def __init__(self, to: str) -> None:
        self._to = to
        self._open = threading.Event()
        self._open.set()
        self._ended = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def hang(self) -> None:
        """Pass nothing on from now on."""
        self._open.clear()

    def go_on(self) -> None:
        """Pass on what was held back, and all that comes."""
        self._open.set()

    def end(self) -> None:
        """Close everything."""
        self._ended = True
        self._open.set()
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._to)
                self._sockets += [near, far]
                threading.Thread(target=self._pass, args=(near, far), daemon=True).start()

    def _pass(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), selectors.DefaultSelector() as selector:
            selector.register(near, selectors.EVENT_READ, far)
            selector.register(far, selectors.EVENT_READ, near)
            while not self._ended:
                for key, _ in selector.select():
                    self._open.wait()
                    data = key.fileobj.recv(65_536)  # type: ignore[union-attr]
                    if not data:
                        near.close()
                        far.close()
                        return
                    key.data.sendall(data)


@contextlib.contextmanager
def relayed(directory: str) -> Iterator[Relay]:
    """A relay to the PostgreSQL whose socket lies in this folder."""
    relay = Relay(f"{directory}/.s.PGSQL.5432")
    try:
        yield relay
    finally:
        relay.end()
