"""Killed with -9 in the middle of an attempt: a worker's child, the broker, the database. Each is seen to be there.

Nothing is lost and nothing published twice; what was begun shows as expired by the database's clock alone, and goes on
when somebody asks for it and not before (RELIABILITY 2.3, R-L-178..180).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from django.conf import settings as configured

from archive.operations import host
from inspection import derivations
from lychd import broker, doctor, embedded, places
from lychd.environment import CHECKOUT
from semantic.models import Derivation
from semantic.operations.generations import register
from tests import cast
from tests.commands.conftest import PATIENCE, environment, on_test_database, until
from tests.semantic import acts
from tests.semantic.ageing import age
from tests.semantic.test_worker import Workers

pytestmark = pytest.mark.skipif(not configured.LYCHD_EMBEDDED, reason="needs the embedded servers")


@pytest.fixture
def record(meaning, alice, otto, dora):
    note = cast.promoted(alice, "Roses want morning sun.")
    register(otto)
    return acts.prepared(dora, note)


class Broker:
    """A broker of the test's own, to be killed."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.address = broker.start_broker(state)

    def kill_and_empty(self) -> None:
        """Kill it with all it holds in memory and on disk, and start another in its place."""
        with redis.Redis.from_url(self.address) as client:
            pid = int(client.info("server")["process_id"])
        os.kill(pid, signal.SIGKILL)
        until(lambda: not broker.answers(places.broker_socket(self.state)), "the killed broker still answers")
        shutil.rmtree(self.state / "broker" / "appendonlydir")
        assert broker.start_broker(self.state) == self.address


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    state = tmp_path / "instance"
    embedded.make_state(state)
    yield Broker(state)
    broker.stop_broker(state)


@pytest.fixture
def workers(meaning: cast.Garden, own_broker: Broker, tmp_path: Path) -> Iterator[Workers]:
    folder = tmp_path / "worker"
    folder.mkdir()
    found = Workers(folder, own_broker.address, "embedding")
    yield found
    for worker in found.running:
        if worker.poll() is None:
            # The parent tells its children, which a kill would leave behind.
            worker.terminate()
            (folder / "go").touch()
            worker.wait()


def row_of(record: Any) -> Derivation:
    return Derivation.objects.get(id=record.id)


def left(record: Any) -> tuple[str, int, bool]:
    """The state, the attempt and whether there is a vector."""
    row = row_of(record)
    return row.state, row.attempt, row.vector is not None


def received(workers: Workers) -> int:
    gates = workers.folder / "gates"
    return gates.read_text().count("attempt.received") if gates.exists() else 0


def waiting() -> list[str]:
    """What the doctor says waits for somebody."""
    checks = ("derivations of", "attempts of")
    return [one.seen for one in doctor.examine() if one.check.startswith(checks)]


@pytest.mark.parametrize(("gate", "embedded_then"), [("attempt.claimed", 0), ("embedder.working", 1), ("commit#2", 1)])
def test_a_childs_death_leaves_its_attempt_to_the_clock(workers, record, dora, superuser, gate, embedded_then):
    parent = workers.start(gate, pool="prefork")
    workers.send(dora, record.id, 1)
    workers.at_its_gate()
    child = int((workers.folder / "there").read_text())
    assert child != parent.pid

    os.kill(child, signal.SIGKILL)

    until(lambda: idle(superuser), "the killed child's session stays")
    # Whoever comes next stands nowhere; a message that can do nothing shows that the parent goes on with another child.
    (workers.folder / "go").touch()
    workers.send(dora, record.id, 999)
    until(lambda: received(workers) == 2, "the parent took no other message")
    assert parent.poll() is None
    assert (left(record), workers.embedded) == (("running", 1, False), embedded_then)
    assert derivations.derivation(dora, record.id).state == "running"
    age(superuser, record.id)
    assert derivations.derivation(dora, record.id).state == "expired"
    assert waiting() == ["1 attempts in notes-1 expired and 0 failed"]
    # Without being asked for a retry it stays, and with it there is one vector.
    workers.send(dora, record.id, 2)
    until(lambda: received(workers) == 3, "the worker took no other message")
    workers.send(dora, record.id, 2, retry=True)
    until(lambda: left(record) == ("complete", 2, True), "the explicit retry never ended")
    assert workers.embedded == embedded_then + 1


def idle(superuser: "psycopg.Connection[Any]") -> bool:
    count = superuser.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
    ).fetchone()
    return count == (0,)


def test_a_message_that_died_with_the_broker_leaves_its_row_prepared(workers, own_broker, record, dora):
    workers.send(dora, record.id, 1)
    assert workers.waiting() == 1

    own_broker.kill_and_empty()

    assert workers.waiting() == 0
    workers.start()
    workers.send(dora, record.id, 999)
    until(lambda: received(workers) == 1, "the worker took no message")
    assert (left(record), workers.embedded) == (("prepared", 0, False), 0)
    assert waiting() == ["1 of notes-1 prepared and not begun; a lost message leaves them so"]
    workers.send(dora, record.id, 1)
    until(lambda: left(record) == ("complete", 1, True), "what was sent again never ended")
    assert (workers.embedded, waiting()) == (1, [])


@pytest.mark.parametrize(
    ("coordination", "ends"), [("process", ("complete", 1, True)), ("redis", ("failed", 1, False))]
)
def test_a_broker_that_dies_during_an_embedding_loses_its_leases_and_nothing_else(
    workers, own_broker, record, dora, settings, coordination, ends
):
    """Leases counted in Redis are gone with it, so that nobody knows who embedded beside: nothing is published."""
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "coordination": coordination}
    parent = workers.start("embedder.working", pool="prefork")
    workers.send(dora, record.id, 1)
    workers.at_its_gate()
    assert left(record) == ("running", 1, False)

    own_broker.kill_and_empty()
    (workers.folder / "go").touch()

    until(lambda: left(record) == ends, "the attempt never ended")
    assert row_of(record).failure_code == (None if ends[2] else "lease_cleanup_failed")
    # The worker finds the new broker by itself, and the message of the old one does not come back.
    workers.send(dora, record.id, 999)
    until(lambda: received(workers) == 2, "the worker never came back")
    assert (left(record), workers.embedded, parent.poll()) == (ends, 1, None)
    workers.send(dora, record.id, 3, retry=True)
    until(lambda: received(workers) == 3, "the worker took no other message")
    again = ("complete", 1 if ends[2] else 2, True)
    until(lambda: left(record) == again, "the explicit retry never ended")
    assert workers.embedded == again[1]


# --- as an operator does it ------------------------------------------------------------------------------------------

DERIVING = {
    "LYCHD_DERIVATION_GENERATION": "notes-1",
    "LYCHD_DERIVATION_EMBEDDER": "stand-in",
    "LYCHD_TEST_EMBEDDER": "true",
    "LYCHD_SEMANTIC": "true",
}


def test_an_operators_worker_derives_what_is_asked_for_and_ends_at_ctrl_c(
    start,
    outside,
    garden,
    alice,
    own_broker,
):
    cast.promoted(alice, "Roses want morning sun.")
    host.map_principal("dora")
    host.grant("dora", garden.binding, host.actions_of(["deriver"]), by="host:tests")
    how = {**on_test_database(), **DERIVING, "REDIS_URL": own_broker.address}
    made = outside("generation", "register", "--as", "otto", "--namespace", "garden", "--json", **how)
    assert made.code == 0, made.err

    worker = start("worker", **how)
    sent = outside("derive", "--all", "--queue", "--as", "dora", "--namespace", "garden", "--json", **how)
    assert (sent.code, sent.document["outcomes"]) == (0, {"sent": 1}), sent.err
    until(lambda: Derivation.objects.get().state == "complete", "the worker never embedded it")

    found = outside(
        *("semantic", "recall", "roses", "--min-cosine", "0.1", "--text", "--as", "bob", "--namespace", "garden"),
        "--json",
        **how,
    )
    assert [source["data"]["text"] for source in found.document["sources"]] == ["Roses want morning sun."]
    assert Derivation.objects.get().attempt == 1
    worker.send_signal(signal.SIGINT)
    _, err = worker.communicate(timeout=PATIENCE)
    assert "Traceback" not in err
    assert worker.returncode is not None


# --- the database ----------------------------------------------------------------------------------------------------


class House:
    """An installation of its own: its server may be killed, which the suite's may not."""

    def __init__(self, state: Path, outside: Callable[..., Any], folder: Path) -> None:
        self.state, self.folder = state, folder
        self._outside = outside

    def run(self, *words: Any) -> Any:
        """One command to its end, and its document."""
        ran = self._outside(*words, "--json", state=self.state, **DERIVING)
        assert ran.code == 0, f"{words}: {ran.err}{ran.out}"
        return ran.document

    def take(self, name: str, text: str) -> None:
        """Take a note in and promote it."""
        (self.folder / f"{name}.md").write_text(text)
        self.run("ingest", self.folder / f"{name}.md", "--as", "agent")
        (note,) = [one for one in self.run("notes", "--as", "curator")["items"] if one["state"] == "candidate"]
        self.run("promote", note["id"], "--version", 1, "--as", "curator")

    def rows(self) -> list[tuple[Any, ...]]:
        """Each derivation: state, attempt, failure, whether it has a vector and whether it is searched."""
        url = embedded.Server(self.state / "main", embedded.socket_dir(self.state / "main")).url(
            role=embedded.SUPERUSER
        )
        with psycopg.connect(url, autocommit=True) as connection:
            return connection.execute(
                "SELECT d.state, d.attempt, d.failure_code, d.vector IS NOT NULL, s.derivation_id IS NOT NULL"
                " FROM semantic_derivation d LEFT JOIN semantic_scan s ON s.derivation_id = d.id ORDER BY d.prepared_at"
            ).fetchall()

    def kill_server(self) -> None:
        """Kill the postmaster, and nothing of the rest: they see for themselves that it is gone."""
        file = embedded.data_dir(self.state / "main") / "postmaster.pid"
        os.kill(int(file.read_text().splitlines()[0]), signal.SIGKILL)


@pytest.fixture
def house(outside: Callable[..., Any], tmp_path: Path) -> Iterator[House]:
    state = tmp_path / "state"
    try:
        with embedded.sharing(state / "main", broker=True):
            made = House(state, outside, tmp_path)
            made.run("init")
            made.run("grant", "give", "curator", "operator", "deriver", "recaller")
            made.take("roses", "Roses want morning sun.")
            made.run("generation", "register", "--as", "curator")
            yield made
    finally:
        embedded.remove(state / "main")


@pytest.fixture
def held_worker(house: House) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker of that house, which stops in its embedder."""
    told = {"folder": str(house.folder), "gate": "embedder.working", "queue": "embedding", "pool": "prefork"}
    variables = {
        **environment(house.state, **DERIVING),
        "DJANGO_SETTINGS_MODULE": "tests.semantic.house_settings",
        "TEST_WORKER": json.dumps(told),
    }
    with (house.folder / "worker.log").open("wb") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.semantic.worker"],
            cwd=CHECKOUT,
            env=variables,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    yield worker
    (house.folder / "go").touch()
    worker.terminate()
    worker.wait()


@pytest.mark.slow
def test_a_database_that_is_killed_during_an_embedding_keeps_the_claim_and_gets_no_vector(house, held_worker):
    again = ("derive", "--all", "--as", "curator")
    assert house.run(*again, "--queue")["outcomes"] == {"sent": 1}
    until((house.folder / "there").exists, "the worker never came to its gate")
    assert house.rows() == [("running", 1, None, False, False)]

    house.kill_server()
    embedded.start(house.state / "main")

    # What was committed is there, and nothing else; the house is sound.
    assert house.rows() == [("running", 1, None, False, False)]
    assert house.run("doctor")["passed"] is True
    (house.folder / "go").touch()
    until(lambda: "attempt.settled" in (house.folder / "gates").read_text(), "the attempt never ended")
    # Its connection died with the server: the first transaction says so, and the next one gives the claim up.
    assert house.rows() == [("failed", 1, "storage_unavailable", False, False)]
    assert house.run(*again, "--retry")["outcomes"] == {"complete": 1}
    assert house.rows() == [("complete", 2, None, True, True)]
    # The same worker goes on with what is sent to it.
    house.take("oaks", "Oaks take their time.")
    assert house.run(*again, "--queue")["outcomes"] == {"sent": 1}
    until(lambda: house.rows()[1:] == [("complete", 1, None, True, True)], "the worker never came back")
    assert held_worker.poll() is None
    assert len((house.folder / "embedded").read_text().splitlines()) == 2


@pytest.mark.slow
def test_s240_after_a_death_of_the_database_status_and_resolution_by_meaning_answer_as_before(house):
    assert house.run("derive", "--all", "--as", "curator")["outcomes"] == {"complete": 1}
    told = house.run("semantic", "recall", "roses", "--min-cosine", "0.1", "--as", "curator")
    asked = ("semantic", "resolve", told["receipt"]["request_id"], "--as", "curator")
    before = house.rows(), house.run(*asked), house.run("generation", "status", "--as", "curator")
    assert [one["data"]["text"] for one in before[1]["sources"]] == ["Roses want morning sun."]

    house.kill_server()
    embedded.start(house.state / "main")

    assert (house.rows(), house.run(*asked), house.run("generation", "status", "--as", "curator")) == before
