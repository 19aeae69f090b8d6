"""An installation of real processes: `lychd serve`, `lychd worker`, `lychd doctor`, and somebody who writes."""

import itertools
import json
import os
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from lychd import embedded
from tests.commands.conftest import PATIENCE, outside, start, until
from tests.outages import table

__all__ = ["outside", "start"]

DERIVING = {
    "LYCHD_DERIVATION_GENERATION": "stand-in-1",
    "LYCHD_DERIVATION_EMBEDDER": "stand-in",
    "LYCHD_TEST_EMBEDDER": "true",
    "LYCHD_SEMANTIC": "true",
    "LYCHD_WRITES_PER_MINUTE": "1000000",
    "LYCHD_READS_PER_MINUTE": "1000000",
}


class House:
    """One installation and its processes."""

    def __init__(self, state: Path, start: Callable[..., Any], outside: Callable[..., Any], folder: Path) -> None:
        self.state, self.folder = state, folder
        self._start, self._outside = start, outside
        self.variables = dict(DERIVING)
        self.token = ""
        self.address = ""
        self.serving: Process

    @property
    def instance(self) -> Path:
        """The instance's folder."""
        return self.state / "main"

    @property
    def data(self) -> Path:
        """The data folder of its PostgreSQL."""
        return embedded.data_dir(self.instance)

    def run(self, *words: Any, code: int = 0) -> Any:
        """One command to its end."""
        ran = self._outside(*words, state=self.state, **self.variables)
        assert ran.code == code, f"{words}: {ran.code} {ran.err}{ran.out}"
        return ran

    def begin(self, *words: Any) -> "Process":
        """One process that goes on."""
        return Process(self._start(*words, state=self.state, **self.variables))

    def serve(self) -> "Process":
        """Serve, and know where."""
        self.serving = self.begin("serve", "--port", 0, "--json")
        self.address = json.loads("".join(iter(self.serving.popen.stdout.readline, "}\n")) + "}")["address"]
        return self.serving

    def kill_server(self) -> None:
        """Kill the postmaster, and nothing of the rest."""
        os.kill(int((self.data / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)

    def ask(self, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """One request to the service: status and document."""
        asked = urllib.request.Request(
            f"{self.address}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def load(self) -> "Load":
        """Somebody who writes as long as the `with` lasts."""
        return Load(self)

    def note(self, key: str) -> tuple[int, dict[str, Any]]:
        """Take one note in."""
        return self.ask(
            "/api/v1/ns/notes/notes",
            {"request_id": key, "source_key": key, "source_revision": "1", "text": f"Roses number {key} want sun."},
        )

    def require(self, happened: str, column: str, said: str) -> None:
        """What the table says of an outage was said."""
        assert not table.missing(happened, column, said), said

    def says(self, happened: str, process: "Process") -> None:
        """A process says in time what the table has in its log."""
        until(lambda: not table.missing(happened, "log", process.said()), f"{happened}: {process.said()}")


class Process:
    """A process and what it says on stderr while it runs."""

    def __init__(self, popen: Any) -> None:
        self.popen = popen
        self._lines: list[str] = []
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        for line in self.popen.stderr:
            self._lines.append(line)

    def said(self) -> str:
        """Everything so far."""
        return "".join(self._lines)

    def end(self, number: int = signal.SIGINT) -> int:
        """Send a signal, and wait; the exit code."""
        self.popen.send_signal(number)
        code = self.popen.wait(timeout=PATIENCE)
        self._reading.join()
        return int(code)


class Load:
    """Somebody who takes notes in without a pause, and counts what was acknowledged."""

    def __init__(self, house: House) -> None:
        self.acknowledged: list[str] = []
        self.refused: list[tuple[int, str]] = []
        self.dropped = 0
        self._house = house
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(name,)) for name in ("a", "b", "c")]

    def _write(self, name: str) -> None:
        for number in itertools.count():
            if self._ended.is_set():
                return
            key = f"{name}-{number}"
            try:
                status, document = self._house.note(key)
            except OSError:
                self.dropped += 1
                continue
            if status == 201:
                self.acknowledged.append(key)
            else:
                self.refused.append((status, document["code"]))

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def house(start: Any, outside: Any, tmp_path: Path) -> Iterator[House]:
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("needs the embedded servers")
    made = House(tmp_path / "state", start, outside, tmp_path)
    made.token = made._outside("init", "--json", state=made.state, **DERIVING).document["token"]
    yield made
    embedded.remove(made.instance)
