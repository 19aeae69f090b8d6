"""The worker as a process of its own: killed at each step, told twice, left without a broker."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery
from django.conf import settings as configured
from django.db import connections

from archive.refusals import Refusal
from inspection import derivations
from lychd import broker
from lychd.environment import CHECKOUT
from semantic import leases, tasks
from semantic.models import Derivation
from semantic.operations.attempts import Attempt, run_attempt
from semantic.operations.generations import register
from semantic.refusals import CoordinationUnavailable, LeaseCleanupFailed, LeaseUnavailable
from tests import cast
from tests.commands.conftest import until
from tests.semantic import acts
from tests.semantic.ageing import age

pytestmark = pytest.mark.skipif(not configured.LYCHD_EMBEDDED, reason="needs the embedded broker")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The broker of the test instance."""
    yield broker.start_broker(configured.LYCHD_STATE_DIR)
    broker.stop_broker(configured.LYCHD_STATE_DIR)


class Workers:
    """Starts workers, sends messages, and counts what was embedded."""

    def __init__(self, folder: Path, address: str, queue: str) -> None:
        self.folder, self.address, self.queue = folder, address, queue
        self.broker = address.replace("unix://", "redis+socket://", 1)
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, gate: str = "", **more: Any) -> "subprocess.Popen[bytes]":
        for left in ("there", "go", "gates"):
            (self.folder / left).unlink(missing_ok=True)
        told = {
            "database": connections["default"].settings_dict["NAME"],
            "role": configured.LYCHD_SERVING_ROLE,
            "archive": configured.LYCHD_ARCHIVE,
            "redis": self.address,
            "broker": self.broker,
            "queue": self.queue,
            "gate": gate,
            "folder": str(self.folder),
            "transport": {},
            "late": False,
            **more,
        }
        environment = {**os.environ, "TEST_WORKER": json.dumps(told)}
        environment["DJANGO_SETTINGS_MODULE"] = "tests.semantic.worker_settings"
        log = (self.folder / f"worker-{len(self.running)}.log").open("wb")
        self.running.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.semantic.worker"],
                cwd=CHECKOUT,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        )
        return self.running[-1]

    def send(self, caller: Any, derivation_id: Any, row_version: int, *, retry: bool = False, times: int = 1) -> None:
        with Celery(broker=self.broker, set_as_current=False) as app:
            for _ in range(times):
                self.send_as_it_is(
                    app,
                    tasks.message(caller.namespace, caller.subject, Attempt(derivation_id, row_version, retry), "c-1"),
                )

    def send_as_it_is(self, app: Celery, message: dict[str, Any]) -> None:
        app.send_task(tasks.NAME, kwargs=message, queue=self.queue)

    def at_its_gate(self) -> None:
        until((self.folder / "there").exists, "the worker never came to its gate")

    def kill(self) -> None:
        worker = self.running[-1]
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    @property
    def embedded(self) -> int:
        file = self.folder / "embedded"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def waiting(self) -> int:
        with redis.Redis.from_url(self.address) as client:
            return int(client.llen(self.queue))


@pytest.fixture
def workers(meaning: cast.Garden, address: str, tmp_path: Path) -> Iterator[Workers]:
    found = Workers(tmp_path, address, cast.fresh(f"queue-{os.getpid()}"))
    yield found
    for worker in found.running:
        if worker.poll() is None:
            worker.kill()
            worker.wait()


@pytest.fixture
def record(meaning, alice, otto, dora):
    note = cast.promoted(alice, "Roses want morning sun.")
    register(otto)
    return acts.prepared(dora, note)


def row_of(record) -> Derivation:
    return Derivation.objects.get(id=record.id)


def state_of(record) -> str:
    return row_of(record).state


def test_a_message_becomes_a_vector_in_another_process(workers, record, dora):
    workers.start()
    workers.send(dora, record.id, 1)

    until(lambda: state_of(record) == "complete", "never complete")
    assert workers.embedded == 1


def test_a_message_that_the_service_did_not_sign_does_nothing_and_is_not_sent_again(workers, record, dora, otto):
    """Whoever writes to the broker names dora; what they know is the form of a message and another key."""
    right = tasks.message(dora.namespace, "dora", Attempt(record.id, 1), "c-1")
    unsigned = {name: value for name, value in right.items() if name != "signature"}
    with Celery(broker=workers.broker, set_as_current=False) as app:
        for message in (unsigned, {**right, "subject": otto.subject}, {"words": "Roses want morning sun."}):
            workers.send_as_it_is(app, message)
    workers.start()
    until(lambda: workers.waiting() == 0, "not all were taken")
    log = workers.folder / "worker-0.log"
    until(lambda: log.read_text().count("did not sign it") == 3, "not all were refused")
    assert (state_of(record), workers.embedded, row_of(record).row_version) == ("prepared", 0, 1)
    said = log.read_text()
    assert said.count("message refused") == 3
    assert not [word for word in ("Roses", str(record.id), "Traceback", "otto") if word in said]

    workers.send(dora, record.id, 1)
    until(lambda: state_of(record) == "complete", "never complete")


def test_the_same_message_three_times_embeds_once(workers, record, dora):
    workers.send(dora, record.id, 1, times=3)
    workers.start()

    until(lambda: workers.waiting() == 0 and state_of(record) == "complete", "never complete")
    until(lambda: (workers.folder / "gates").read_text().count("attempt.received") == 3, "not all were delivered")
    until(lambda: (workers.folder / "gates").read_text().count("attempt.leased") == 3, "the last one has not ended")
    assert workers.embedded == 1
    assert row_of(record).row_version == 3


# RELIABILITY's steps: where the worker stood when it was killed, and how its row is left.
STEPS = {
    "S7 received": ("attempt.received", "prepared", 0),
    "S7 leased": ("attempt.leased", "prepared", 0),
    "S8 claimed": ("attempt.claimed", "running", 0),
    "S9 in inference": ("embedder.working", "running", 1),
    "S10 embedded": ("attempt.embedded", "running", 1),
    "S11 closed": ("attempt.closed", "running", 1),
    "S12 at its commit": ("commit#2", "running", 1),
    "S13 settled": ("attempt.settled", "complete", 1),
}


@pytest.mark.parametrize("step", STEPS)
def test_s185_a_worker_killed_at_any_step_loses_nothing_and_nothing_goes_on_by_itself(
    workers, record, dora, superuser, step
):
    gate, left, embedded = STEPS[step]
    workers.start(gate)
    workers.send(dora, record.id, 1)
    workers.at_its_gate()
    assert state_of(record) == left

    workers.kill()

    assert (state_of(record), workers.embedded) == (left, embedded)
    # Its database session is gone, so nothing is held and nothing half written.
    until(lambda: _idle(superuser), "the killed worker's session stays")
    assert (row_of(record).vector is not None) is (left == "complete")
    # Another worker finds nothing to do: the message is not delivered again, and nobody looks for lost rows.
    workers.start()
    workers.send(dora, record.id, 999)
    until(lambda: workers.waiting() == 0, "the second worker never came")
    until(lambda: (workers.folder / "gates").exists(), "the second worker never took its message")
    assert (state_of(record), workers.embedded) == (left, embedded)
    if left == "complete":
        return
    if left == "running":
        assert derivations.derivation(dora, record.id).state == "running"
        age(superuser, record.id)
        assert derivations.derivation(dora, record.id).state == "expired"
    version = row_of(record).row_version
    workers.send(dora, record.id, version, retry=left == "running")
    until(lambda: state_of(record) == "complete", "the explicit retry never ended")
    assert row_of(record).attempt == (2 if left == "running" else 1)


def _idle(superuser) -> bool:
    count = superuser.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
    ).fetchone()
    return count == (0,)


def test_late_acknowledgement_delivers_twice_and_still_one_vector(workers, record, dora, settings):
    """The product keeps it off; a broker that delivers again has to find the same fences."""
    settings.LYCHD_EMBED_LEASES = 4
    quick = {"visibility_timeout": 1, "unacked_restore_interval": 1, "unacked_restore_throttle": 1}
    more = {"late": True, "transport": quick}
    workers.start("embedder.working", **more)
    workers.send(dora, record.id, 1)
    workers.at_its_gate()
    first = workers.running[-1]
    # A second worker takes over what the first has not acknowledged in time.
    gates_of_first = (workers.folder / "gates").read_text()
    assert gates_of_first.count("attempt.received") == 1
    (workers.folder / "gates").unlink()
    told = workers.folder / "there"
    told.unlink()
    workers.start("never", **more)

    until(
        lambda: (
            (workers.folder / "gates").exists()
            and (workers.folder / "gates").read_text().count("attempt.received") >= 1
        ),
        "it was never delivered again, so this shows nothing",
    )
    (workers.folder / "go").touch()

    until(lambda: state_of(record) == "complete", "never complete")
    assert workers.embedded == 1
    assert row_of(record).attempt == 1
    assert first.poll() is None


# --- leases in Redis -------------------------------------------------------------------------------------------------


@pytest.fixture
def in_redis(meaning, address, settings):
    settings.REDIS_URL = settings.LYCHD_COORDINATION_URL = address
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "coordination": "redis"}
    with redis.Redis.from_url(address) as client:
        client.delete(leases.KEY)
        yield client
        client.delete(leases.KEY)


def test_leases_are_counted_in_redis(in_redis, settings):
    settings.LYCHD_EMBED_LEASES = 2
    first, second = leases.take(), leases.take()
    with pytest.raises(LeaseUnavailable):
        leases.take()

    first.close()
    third = leases.take()

    assert len({first.owner, second.owner, third.owner}) == 3
    for lease in (second, third):
        lease.close()
    assert in_redis.zcard(leases.KEY) == 0


def test_a_lease_is_free_where_one_could_be_taken(in_redis):
    assert leases.free()
    held = leases.take()
    assert not leases.free()
    in_redis.zadd(leases.KEY, {held.owner: 1})
    assert leases.free()
    assert in_redis.zcard(leases.KEY) == 1


def test_a_lease_that_ran_out_makes_room_and_cannot_be_given_back(in_redis):
    lost = leases.take()
    in_redis.zadd(leases.KEY, {lost.owner: 1})

    leases.take().close()

    with pytest.raises(LeaseCleanupFailed):
        lost.close()


def test_s186_redis_emptied_during_an_embedding_publishes_nothing_and_loses_nothing(in_redis, record, dora, script):
    script.before = in_redis.flushall

    with pytest.raises(LeaseCleanupFailed):
        run_attempt(dora, Attempt(record.id, 1))

    assert (row_of(record).state, row_of(record).failure_code) == ("failed", "lease_cleanup_failed")
    script.before = None
    assert run_attempt(dora, Attempt(record.id, 3, retry=True)).state == "complete"


def test_s186_without_redis_an_attempt_is_refused_and_never_counted_in_memory(record, dora, script, settings, counts):
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "coordination": "redis"}
    settings.LYCHD_COORDINATION_URL = "unix:///nowhere/valkey.sock"
    counts.mark()

    for _ in range(2):
        with counts.refused(503, CoordinationUnavailable.code):
            run_attempt(dora, Attempt(record.id, 1))
    with pytest.raises(Refusal):
        acts.asked(dora)

    assert script.opened == 0
    assert not leases._held


def test_s187_a_message_holds_identities_and_versions_only(workers, record, dora):
    workers.send(dora, record.id, 1)

    with redis.Redis.from_url(workers.address) as client:
        (raw,) = client.lrange(workers.queue, 0, -1)
    import base64

    message = json.loads(raw)
    _, given, _ = json.loads(base64.b64decode(message["body"]))
    assert set(given) == {
        *("namespace", "derivation_id", "expected_row_version", "retry", "subject", "correlation_id", "signature"),
    }
    assert b"Roses" not in base64.b64decode(message["body"])
