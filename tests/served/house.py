"""An installation of its own, begun by the commands that a user types, each a process of its own.

Nothing of the product runs in the process of the tests: what a process imports first, which settings it reads and how
it ends are what is tested here.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lychd import embedded
from lychd.broker import answers
from lychd.places import broker_socket, log_path
from tests.commands.conftest import PATIENCE, Ran, environment, kill_group, until

BIN: Final = Path(sys.executable).parent
LYCHD: Final = str(BIN / "lychd")
CANARY: Final = "Quincunx"
"""A word that stands in every text and every question, and so in no log."""
MEANING: Final = {
    "stand-in": {
        "LYCHD_DERIVATION_GENERATION": "stand-in-1",
        "LYCHD_DERIVATION_EMBEDDER": "stand-in",
        "LYCHD_TEST_EMBEDDER": "true",
        "LYCHD_SEMANTIC": "true",
    },
    "minilm": {
        "LYCHD_DERIVATION_GENERATION": "minilm-1",
        "LYCHD_DERIVATION_EMBEDDER": "minilm",
        "LYCHD_TEST_EMBEDDER": "false",
        "LYCHD_SEMANTIC": "true",
    },
}


class Running:
    """A process that goes on until it is ended, and all that it says."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], folder: Path, name: str) -> None:
        self.name = name
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            # Outside the checkout, as an installed program runs.
            self.process = subprocess.Popen(
                command, env=dict(variables), stdout=out, stderr=err, cwd=folder, start_new_session=True
            )

    @property
    def out(self) -> str:
        """What it told."""
        return self._out.read_text()

    @property
    def log(self) -> str:
        """What it logged."""
        return self._err.read_text()

    def has(self, condition: Any, what: str) -> Any:
        """Wait until the process has done something, as long as it lives."""

        def seen() -> Any:
            found = condition()
            assert found or self.process.poll() is None, f"{self.name} has ended: {self.log}"
            return found

        return until(seen, f"{self.name}: {what}")

    def told(self) -> Any:
        """The JSON document that it prints once it is ready."""
        return self.has(lambda: _document(self.out), "its document")

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it as a terminal does, which tells its whole group, or as a supervisor; want nothing left of it."""
        if number == signal.SIGINT:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        until(lambda: not _group(self.process.pid), f"{self.name} leaves no process behind")
        return code

    def kill(self) -> None:
        """Take it away with all that it started, whatever became of it."""
        kill_group(self.process)  # type: ignore[arg-type]


def _document(said: str) -> Any:
    try:
        return json.loads(said)
    except ValueError:
        return None


def _group(group: int) -> list[str]:
    """The processes of a group that still run."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, _, their = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            if folder.name.isdigit() and int(their) == group and state != "Z":
                found.append(folder.name)
    return found


def _commands() -> Iterator[str]:
    """The command line of every process that runs."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and (line := (folder / "cmdline").read_bytes()):
                yield line.replace(b"\0", b" ").decode(errors="replace")


@dataclass
class House:
    """One state folder, the variables that its processes are told, and the processes that run."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    running: list[Running] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)
    """What every command that has ended left on stderr."""

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def environment(self, **more: str) -> dict[str, str]:
        """All that a process of this installation is told; nothing of the suite's own surroundings is in it."""
        return environment(self.state, **{**self.variables, **more})

    def run(self, *words: object, given: str = "", program: str = LYCHD, **more: str) -> Ran:
        """Run a command to its end."""
        ended = subprocess.run(
            [program, *map(str, words)],
            env=self.environment(**more),
            input=given,
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=PATIENCE,
            check=False,
        )
        self.said.append((" ".join(map(str, words)), ended.stderr))
        return Ran(ended.returncode, ended.stdout, ended.stderr)

    def done(self, *words: object, **how: Any) -> Any:
        """Run a command that has to succeed, and read its JSON document."""
        ran = self.run(*words, "--json", **how)
        assert ran.code == 0, f"{words}: {ran.out}{ran.err}"
        return ran.document

    def start(self, *words: object, name: str, program: str = LYCHD, **more: str) -> Running:
        """Start a process that goes on."""
        begun = Running([program, *map(str, words)], self.environment(**more), self.folder, name)
        self.running.append(begun)
        return begun

    def serve(self, *words: object, name: str = "serve", **more: str) -> tuple[Running, str]:
        """Start `lychd serve` on a free port; the process and its address."""
        serving = self.start("serve", "--port", 0, "--json", *words, name=name, **more)
        return serving, str(serving.told()["address"])

    def work(self, *words: object, name: str = "worker", **more: str) -> Running:
        """Start `lychd worker`, and wait for the broker that comes with it."""
        working = self.start("worker", *words, name=name, **more)
        working.has(lambda: answers(broker_socket(self.state / "main")), "the broker answers")
        return working

    def instances(self) -> list[Path]:
        """The instances that commands have made here."""
        return [one for one in self.state.iterdir() if one.is_dir()] if self.state.exists() else []

    def left(self) -> list[str]:
        """Processes that still name this installation: its servers, once everybody who used them has ended."""
        return [one for one in _commands() if str(self.state) in one]

    def close(self) -> None:
        """End everything and delete the installation."""
        for one in self.running:
            one.kill()
        for instance in self.instances():
            embedded.remove(instance)

    def faults(self) -> list[str]:
        """Lines that no log of this installation should have, wherever they stand."""
        logs = [(one.name, one.log + one.out) for one in self.running] + self.said
        logs += [("postgres", log_path(path).read_text()) for path in self.instances() if log_path(path).exists()]
        return [f"{name}: {line}" for name, log in logs for line in log.splitlines() if is_fault(line)]


def is_fault(line: str) -> bool:
    """Whether a line of a log tells of a fault of ours, or quotes a note or a question."""
    if CANARY.lower() in line.lower() or "Traceback" in line:
        return True
    found = _document(line)
    if isinstance(found, dict):
        return str(found.get("level", "")).lower() in ("error", "critical", "fatal")
    # PostgreSQL is stopped while it has not seen yet that a process before it has gone.
    stopped = "terminating connection due to administrator command" in line
    return not stopped and any(mark in line for mark in (" ERROR:", " FATAL:", " PANIC:", "ERROR/", "CRITICAL/"))
