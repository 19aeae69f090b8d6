"""Leases among real processes: however many may embed, no more do so at once than the deployment allows."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings as configured

from lychd import broker, embedded
from lychd.environment import CHECKOUT
from semantic import leases
from semantic.refusals import LeaseUnavailable
from tests.commands.conftest import outside, start, until  # noqa: F401 - fixtures

pytestmark = pytest.mark.skipif(not configured.LYCHD_EMBEDDED, reason="needs the embedded broker")

DERIVING = {
    "LYCHD_ARCHIVE_PROFILE": "local-public-notes@1",
    "LYCHD_DERIVATION_GENERATION": "notes-1",
    "LYCHD_DERIVATION_EMBEDDER": "stand-in",
    "LYCHD_TEST_EMBEDDER": "true",
    "LYCHD_SEMANTIC": "true",
}
# Takes a lease at each line that it reads, says what came of it, and gives it back at the next line.
TAKER = """
import os, sys, django
os.environ["DJANGO_SETTINGS_MODULE"] = "lychd.settings"
django.setup()
from archive.refusals import Refusal
from semantic import leases
for _ in sys.stdin:
    try:
        held = leases.take()
    except Refusal as refusal:
        print(refusal.code, flush=True)
        continue
    print("taken", flush=True)
    sys.stdin.readline()
    held.close()
    print("given back", flush=True)
"""


class Taker:
    """A process that embeds, as far as leases are concerned."""

    def __init__(self, state: Path, **variables: str) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKER],
            env={**kept, **DERIVING, "LYCHD_STATE_DIR": str(state), **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
        )

    def line(self) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@pytest.fixture
def taker(tmp_path: Path) -> Iterator[Callable[..., Taker]]:
    begun: list[Taker] = []

    def begin(**variables: str) -> Taker:
        begun.append(Taker(tmp_path / "state", **variables))
        return begun[-1]

    yield begin
    for one in begun:
        one.process.kill()
        one.process.communicate()


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[None]:
    """The embedded broker of the instance that the processes work on."""
    instance = tmp_path / "state" / "main"
    embedded.make_state(instance)
    broker.start_broker(instance)
    yield
    broker.stop_broker(instance)


def test_by_default_processes_of_one_deployment_count_together(taker, own_broker):
    web, worker = taker(), taker()
    assert web.line() == "taken"
    assert worker.line() == "lease_unavailable"
    assert web.line() == "given back"
    assert worker.line() == "taken"


def test_by_default_nothing_is_embedded_while_nobody_can_count(taker):
    assert taker().line() == "coordination_unavailable"


def test_beside_a_process_that_counts_in_its_memory_nobody_embeds(taker):
    alone = {"LYCHD_COORDINATION": "process", "LYCHD_DERIVATION_LEASES": "8"}
    first, second = taker(**alone), taker(**alone)
    assert [first.line(), first.line()] == ["taken", "given back"]
    # The lock outlives the lease: the process may embed again at any moment.
    assert second.line() == "lease_unavailable"
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    assert until(second.line, "the lock of a process that was killed stayed") == "taken"


def test_a_child_of_the_one_process_is_another(settings, tmp_path, monkeypatch):
    settings.LYCHD_EMBEDDING_LOCK, settings.LYCHD_EMBED_LEASES = tmp_path / "embedding.lock", 1
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": {"on": True}, "coordination": "process"}
    monkeypatch.setattr(leases, "_alone", None)
    leases._be_alone()
    leases._be_alone()
    child = os.fork()
    if child == 0:
        try:
            leases._be_alone()
        except LeaseUnavailable:
            os._exit(4 if leases.free() else 3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert leases.free()
    held = leases.take()
    assert not leases.free()
    held.close()


def test_serve_brings_what_it_counts_in_and_several_processes_count_in_nothing_less(start, outside, tmp_path):  # noqa: F811
    state = tmp_path / "state"
    ended = outside("serve", "--workers", "2", state=state, **DERIVING, LYCHD_COORDINATION="process")
    assert ended.code == 64
    assert "LYCHD_COORDINATION" in ended.err
    assert outside("init", state=state, **DERIVING).code == 0

    process = start("serve", "--workers", "2", "--port", "0", "--json", state=state, **DERIVING)
    said = ""
    while "}" not in said:
        said += process.stdout.readline()
    assert json.loads(said)["workers"] == 2
    beside = Taker(state)
    try:
        assert beside.line() == "taken"
    finally:
        beside.process.kill()
        beside.process.communicate()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
