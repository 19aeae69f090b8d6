"""A wire between the service and PostgreSQL that can be cut: once the answer to a COMMIT is on its way, it is lost."""

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from django.db import connections


def _reach(host: str, port: int) -> socket.socket:
    if host.startswith("/"):
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server
    return socket.create_connection((host, port))


class Wire:
    """Forwards bytes both ways. While `cutting`, it delivers a COMMIT and hangs up in place of its answer."""

    def __init__(self, folder: Path, host: str, port: int) -> None:
        self.server = (host, port)
        self.cutting = False
        self.cuts = 0
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(folder / ".s.PGSQL.5432"))
        self.listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            server = _reach(*self.server)
            lost = threading.Event()
            for source, target, back in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._carry, args=(source, target, lost, back), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, lost: threading.Event, back: bool) -> None:
        with contextlib.suppress(OSError):
            while block := source.recv(65_536):
                if not back and self.cutting and b"COMMIT" in block:
                    self.cuts += 1
                    lost.set()
                if back and lost.is_set():
                    # The server has answered, so it has committed; nobody will hear of it.
                    break
                target.sendall(block)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.listening.close()


@contextlib.contextmanager
def through_a_wire() -> Iterator[Wire]:
    """Send this process's connection through a wire for as long as the block lasts."""
    connection = connections["default"]
    before = {name: connection.settings_dict[name] for name in ("HOST", "PORT")}
    # Short, since the path of a socket may have no more than some hundred characters.
    folder = Path(tempfile.mkdtemp(prefix="wire-"))
    wire = Wire(folder, before["HOST"] or "localhost", int(before["PORT"] or 5432))
    try:
        connection.close()
        connection.settings_dict.update(HOST=str(folder), PORT="5432")
        yield wire
    finally:
        connection.close()
        connection.settings_dict.update(before)
        wire.close()
        shutil.rmtree(folder)


@contextlib.contextmanager
def without_a_database() -> Iterator[None]:
    """Point this process's connection at a place where nobody listens."""
    connection = connections["default"]
    before = {name: connection.settings_dict[name] for name in ("HOST", "PORT")}
    folder = tempfile.mkdtemp(prefix="dead-")
    try:
        connection.close()
        connection.settings_dict.update(HOST=folder, PORT="5432")
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)
        shutil.rmtree(folder)
