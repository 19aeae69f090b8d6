"""What `/readyz` and `lychd doctor` see beside the database's answer: its disk, the broker, a worker for what waits."""

import contextlib
import json
import socket
import threading
import time

import psycopg
import pytest
import redis
from django.db import OperationalError, connection
from django.test import Client

from lychd import console, dependencies, embedded, health
from lychd.broker import start_broker, stop_broker
from lychd.celery import app

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """Nothing known from another test, and time to look."""
    monkeypatch.setattr(health, "_beside", health._Beside())
    monkeypatch.setattr(health, "BESIDE_SECONDS", 30)


@pytest.fixture
def broker(tmp_path, settings):
    """A real broker of its own, where the settings of this test point."""
    url = start_broker(tmp_path)
    settings.REDIS_URL = url
    before = app.conf.broker_url
    lead_to(url.replace("unix://", "redis+socket://", 1))
    yield redis.Redis.from_url(url)
    lead_to(before)
    stop_broker(tmp_path)
    embedded.remove(tmp_path)


def lead_to(address):
    """Let the worker's application send elsewhere; it keeps two pools of connections."""
    app.conf.broker_url = app.conf.broker_read_url = app.conf.broker_write_url = address
    app._pool = app.amqp._producer_pool = None


@pytest.fixture
def findings(capsys):
    def run():
        capsys.readouterr()
        console.run(["doctor", "--json"])
        return {one["check"]: one for one in json.loads(capsys.readouterr().out)["findings"]}

    return run


def ready():
    answer = Client().get("/readyz")
    return answer.status_code, answer.json()["checks"]


def test_a_broker_that_answers_and_nothing_that_waits(meaning, broker, findings):
    assert ready()[1] | {"broker": "ok", "worker": "ok"} == ready()[1]
    assert findings()["broker"]["seen"] == "answers; 0 messages wait"
    assert "worker" not in findings()


def test_messages_that_wait_and_nobody_who_takes_them(meaning, broker, findings):
    broker.rpush("embedding", "a message")
    status, checks = ready()
    # Intake, review and recall go on, so the web is not taken out of service.
    assert (status, checks["broker"], checks["worker"]) == (200, "ok", "warning")
    found = findings()
    assert found["worker"]["verdict"] == "failed"
    assert found["worker"]["seen"] == "1 messages wait and no worker answers."
    assert "`lychd worker`" in found["worker"]["fix"]


def test_a_worker_that_answers_while_messages_wait(meaning, broker, findings, worker_answers):
    broker.rpush("embedding", "a message")
    assert ready()[1]["worker"] == "ok"
    assert findings()["worker"]["verdict"] == "ok"


@pytest.fixture
def worker_answers(broker):
    """A real consumer of the worker's commands that takes no message."""
    ended, begun = threading.Event(), threading.Event()

    def answer():
        with app.connection_for_read() as connected:
            handlers = {"ping": lambda state, **how: {"ok": "pong"}}
            node = app.control.mailbox.Node("tests@here", handlers=handlers, channel=connected.channel())
            node.listen()
            begun.set()
            while not ended.is_set():
                with contextlib.suppress(TimeoutError, OSError):
                    connected.drain_events(timeout=0.1)

    thread = threading.Thread(target=answer)
    thread.start()
    begun.wait(30)
    yield
    ended.set()
    thread.join()


def test_a_broker_that_is_gone(meaning, settings, tmp_path, findings):
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    status, checks = ready()
    assert (status, checks["broker"]) == (200, "warning")
    assert "worker" not in checks
    found = findings()["broker"]
    assert (found["verdict"], found["fix"]) == ("failed", "Start Redis, or correct REDIS_URL.")


def test_a_broker_that_hangs_is_given_up_in_time(settings, meaning):
    silent = socket.create_server(("127.0.0.1", 0))
    settings.REDIS_URL = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
    began = time.monotonic()
    assert ready()[1]["broker"] == "warning"
    assert time.monotonic() - began < 30
    silent.close()


def test_readiness_is_not_late_for_a_slow_look_and_the_next_has_its_answer(meaning, monkeypatch):
    """Of a broker that hangs, or a worker that is long in answering."""
    monkeypatch.setattr(health, "BESIDE_SECONDS", 0)
    looked = threading.Event()

    def slowly():
        assert looked.wait(30)
        return {"broker": "warning"}

    monkeypatch.setattr(health, "_look_beside", slowly)
    status, checks = ready()
    assert (status, "broker" in checks) == (200, False)
    looked.set()
    health._beside._looking.result(30)
    assert ready()[1]["broker"] == "warning"


def test_nothing_is_said_of_a_broker_that_nothing_needs(settings, db, findings):
    settings.REDIS_URL = ""
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": None}
    assert set(ready()[1]) == {"database", "migrations", "roles", "disk"}
    assert "broker" not in findings()


# --- the disk --------------------------------------------------------------------------------------------------------


def full(execute, sql, params, many, context):
    """The server where it has no room for a file."""
    if "generate_series" in str(sql):
        raise OperationalError("quotes") from psycopg.errors.DiskFull("quotes")
    return execute(sql, params, many, context)


def test_a_disk_that_is_full_takes_the_service_out(garden, findings):
    with connection.execute_wrapper(full):
        answer = Client().get("/readyz")
        found = findings()["disk"]
    assert (answer.status_code, answer.json()["checks"]["disk"]) == (503, "failed")
    assert answer.json()["title"] == "The disk of the database is full"
    assert answer["Retry-After"] == "30"
    assert found["verdict"] == "failed"
    assert found["seen"] == "The disk of the database is full (SQLSTATE 53100)."


def test_a_disk_that_is_nearly_full_is_told_in_time(garden, findings, monkeypatch):
    assert findings()["disk"]["verdict"] == "ok"
    monkeypatch.setattr(dependencies, "LOW_BYTES", 1 << 62)
    assert findings()["disk"]["verdict"] == "notice"


def test_the_probe_really_writes_a_file_and_leaves_none(garden, superuser):
    """Half of what it is for: a probe that stays in memory would never meet a full disk."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()")
        (before,) = cursor.fetchone()
    dependencies.try_disk()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()")
        (after,) = cursor.fetchone()
    assert after - before >= 100_000
    assert superuser.execute("SELECT count(*) FROM pg_ls_tmpdir()").fetchone() == (0,)
