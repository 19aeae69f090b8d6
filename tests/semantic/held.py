"""What the other process does: a worker that stops at one gate until it is let go or killed."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from celery import signals

from archive import gates
from lychd.celery import app
from semantic.embedders import Driver, Embedded, Item, Kind, Measure
from semantic.embedders.stand_in import StandIn
from semantic.leases import Lease

TOLD = json.loads(os.environ["TEST_WORKER"])
FOLDER = Path(TOLD["folder"])
_passed: dict[str, int] = {}


def _park(gate: str) -> None:
    _passed[gate] = _passed.get(gate, 0) + 1
    name, _, number = TOLD["gate"].partition("#")
    with (FOLDER / "gates").open("a") as written:
        written.write(f"{gate}\n")
    if gate == name and _passed[gate] == int(number or 1):
        # Whole at once: who sees the file reads in it which process stands here.
        (FOLDER / "coming").write_text(str(os.getpid()))
        (FOLDER / "coming").rename(FOLDER / "there")
        while not (FOLDER / "go").exists():
            time.sleep(0.01)


@signals.task_prerun.connect  # type: ignore[untyped-decorator]
def _occupy(**_: Any) -> None:
    _passed.clear()
    gates.occupy(_park)


class Held:
    """The stand-in, with a gate while it works and a line for each text it was given."""

    def __init__(self, embed_binding: Mapping[str, Any]) -> None:
        self._binding = embed_binding

    def open(self, lease: Lease) -> Driver:
        return _HeldDriver(StandIn(self._binding).open(lease))


class _HeldDriver:
    def __init__(self, inner: Driver) -> None:
        self._inner = inner

    def measure(self, item: Item, kind: Kind) -> Measure:
        return self._inner.measure(item, kind)

    def embed(self, items: Sequence[Item], kind: Kind) -> Sequence[Embedded]:
        with (FOLDER / "embedded").open("a") as written:
            written.write("one\n" * len(items))
        gates.gate("embedder.working")
        return self._inner.embed(items, kind)

    def close(self) -> None:
        self._inner.close()


def run() -> None:
    """Work until killed."""
    words = ["worker", "--pool", TOLD.get("pool", "solo"), "--concurrency", "1", "--queues", TOLD["queue"]]
    app.worker_main([*words, "--loglevel", "WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"])
