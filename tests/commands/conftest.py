"""Commands inside this process, for what they answer; and as processes of their own, for how they live and die."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections

from lychd import console, embedded
from lychd.environment import CHECKOUT

# Long enough for a busy machine; nothing waits for it to pass.
PATIENCE = 120.0


@dataclass(frozen=True)
class Ran:
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout; anything beside it is an error."""
        return json.loads(self.out)


@pytest.fixture
def lychd(transactional_db: None, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command line in this process, on the test database."""

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = console.run([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


def until(condition: Callable[[], Any], what: str) -> Any:
    """Poll something observable until it is so."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"in vain: {what}")


def environment(state: Path, **variables: str) -> dict[str, str]:
    """The environment of a process that knows nothing of this suite but what it is told here."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL") if name in os.environ}
    return {**kept, "PYTHONUNBUFFERED": "1", "LYCHD_STATE_DIR": str(state), **variables}


def on_test_database() -> dict[str, str]:
    """Let a process serve from the test database, logged in as the serving role."""
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("the suite knows the serving role's login of its own embedded server alone")
    server = embedded.Server(settings.LYCHD_STATE_DIR, embedded.socket_dir(settings.LYCHD_STATE_DIR))
    return {
        "DATABASE_URL": server.url(str(connections["default"].settings_dict["NAME"])),
        "LYCHD_ARCHIVE_PROFILE": "local-public-notes@1",
    }


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a command line as a process group of its own; whatever is left of it at the end is killed."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*arguments: object, state: Path | None = None, **variables: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "lychd.console", *(str(argument) for argument in arguments)],
            env=environment(state or tmp_path / "state", **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        kill_group(process)


def kill_group(process: "subprocess.Popen[str]") -> None:
    """Kill a process with everything it started, as a machine that loses power would."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.fixture
def outside(start: Start) -> Callable[..., Ran]:
    """Run a command line as a process to its end."""

    def run(*arguments: object, **how: Any) -> Ran:
        process = start(*arguments, **how)
        out, err = process.communicate(timeout=PATIENCE)
        return Ran(process.returncode, out, err)

    return run
