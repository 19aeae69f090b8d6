"""Served processes on the suite's database, and one archive in production of its own."""

import json
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lychd import embedded
from lychd.environment import CHECKOUT
from tests.commands.conftest import environment, kill_group, on_test_database
from tests.front.serving import Served, address_in

Serve = Callable[..., Served]


def begin(folder: Path, *options: str, before: tuple[str, ...] = (), **variables: Any) -> Served:
    """Start `lychd serve` on a free port and wait until it has told its address."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    command = [*before, sys.executable, "-m", "lychd.console", "serve", "--port", "0", *options]
    with log.open("wb") as written:
        process = subprocess.Popen(
            command,
            env=environment(folder / "state", **variables),
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
            cwd=CHECKOUT,
            start_new_session=True,
        )
    try:
        return Served(process, address_in(process, log), log)
    except BaseException:
        kill_group(process)
        raise


@pytest.fixture
def serve(transactional_db: None, tmp_path: Path) -> Iterator[Serve]:
    """Serve the suite's database as somebody who types `lychd serve`."""
    begun: list[Served] = []

    def start(*options: str, before: tuple[str, ...] = (), **variables: str) -> Served:
        folder = tmp_path / f"served-{len(begun)}"
        begun.append(begin(folder, *options, before=before, **{**on_test_database(), **variables}))
        return begun[-1]

    yield start
    for one in begun:
        kill_group(one.process)


PRODUCTION = {
    "LYCHD_ENV": "production",
    "LYCHD_ALLOWED_HOSTS": "archive.example",
    "LYCHD_SECRET_KEY": secrets.token_urlsafe(64),
}


class Production:
    """An archive of its own, served with production's settings."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begun: list[Served] = []
        made = self._run("init", "--curator", "ida", "--json")
        self.password: str = made["password"]
        self.token: str = made["token"]
        self._run("collectstatic", "--no-input")

    def _run(self, *line: str) -> dict[str, str]:
        ran = subprocess.run(
            [sys.executable, "-m", "lychd.console", *line],
            env=environment(self._folder / "state", **PRODUCTION),
            cwd=CHECKOUT,
            check=True,
            stdout=subprocess.PIPE,
        )
        return json.loads(ran.stdout) if "--json" in line else {}

    def serve(self, *options: str, **variables: str) -> Served:
        """Start one more process."""
        self._begun.append(begin(self._folder, *options, before=(), **{**PRODUCTION, **variables}))
        return self._begun[-1]

    def end(self) -> None:
        """Leave nothing."""
        for one in self._begun:
            kill_group(one.process)
        embedded.remove(self._folder / "state" / "main")


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Production]:
    """An archive in production, made once for a module."""
    made = Production(tmp_path_factory.mktemp("production"))
    yield made
    made.end()
