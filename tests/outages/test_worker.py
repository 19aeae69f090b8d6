"""The worker and its broker through an outage: what nobody can work on stays where it is, and goes on by itself."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter

import psycopg
import pytest
import redis

from lychd import broker, embedded
from lychd.environment import CHECKOUT
from semantic import leases
from tests.commands.conftest import environment, until
from tests.outages.conftest import DERIVING, Process
from tests.semantic.ageing import age

pytestmark = pytest.mark.slow

NOTES = 60


@pytest.fixture
def queued(house):
    """An installation whose service runs, with messages set aside that nobody has seen yet."""
    broker.start_broker(house.instance)
    serving = house.serve()
    house.run("grant", "give", "curator", "writer", "operator", "deriver", "recaller")
    house.token = json.loads(house.run("token", "create", "curator", "--json").out)["secret"]
    for number in range(NOTES):
        status, note = house.note(f"note-{number}")
        assert status == 201, note
        status, moved = house.ask(f"/api/v1/ns/notes/notes/{note['note']['id']}/promote", {"expected_version": 1})
        assert status == 200, moved
    house.run("generation", "register", "--as", "curator")
    sent = house.run("derive", "--all", "--queue", "--as", "curator", "--json").out
    assert json.loads(sent)["outcomes"] == {"sent": NOTES}
    queue(house).rename("embedding", "aside")
    yield house
    assert serving.end() == 0


def queue(house) -> "redis.Redis":
    return redis.Redis.from_url(embedded.broker_url(house.instance))


def superuser(house) -> "psycopg.Connection":
    server = embedded.Server(house.instance, embedded.socket_dir(house.instance))
    return psycopg.connect(server.url(role=embedded.SUPERUSER))


def states(house) -> Counter[str]:
    with superuser(house) as connection:
        return Counter(state for (state,) in connection.execute("SELECT state FROM semantic_derivation"))


@pytest.fixture(params=["prefork", "solo"])
def worker(queued, request):
    if request.param == "prefork":
        process = queued.begin("worker")
    else:
        words = ["--app", "lychd.celery", "worker", "--queues", "embedding", "--pool", "solo", "--loglevel", "WARNING"]
        process = Process(
            subprocess.Popen(
                [sys.executable, "-m", "celery", *words],
                env=environment(queued.state, LYCHD_ARCHIVE_PROFILE="local-public-notes@1", **DERIVING),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                cwd=CHECKOUT,
            )
        )
    # It listens to its queue, and finds nothing there.
    until(lambda: any(one["cmd"] == "brpop" for one in queue(queued).client_list()), process.said())
    yield process
    process.end(signal.SIGTERM)


def test_a_worker_takes_nothing_while_the_database_is_away_and_goes_on_by_itself(queued, worker):
    happened = "the database is away while messages wait for the worker"
    queued.data.chmod(0o777)
    queued.kill_server()
    until(lambda: "no message is taken until it does" in worker.said(), worker.said())
    queue(queued).rename("aside", "embedding")
    assert queue(queued).llen("embedding") == NOTES

    queued.data.chmod(0o700)
    until(lambda: "answers again" in worker.said(), worker.said())
    # Each would have been refused within milliseconds.
    assert "attempt refused" not in worker.said()
    until(lambda: queue(queued).llen("embedding") == 0 and states(queued)["complete"] == NOTES, worker.said())
    queued.says(happened, worker)


def test_a_database_that_is_killed_among_messages_costs_those_in_hand_alone(queued, worker):
    queue(queued).rename("aside", "embedding")
    until(lambda: queue(queued).llen("embedding") < NOTES - 3, worker.said())
    queued.data.chmod(0o777)
    queued.kill_server()
    until(lambda: "no message is taken until it does" in worker.said(), worker.said())
    left = queue(queued).llen("embedding")
    queued.data.chmod(0o700)

    until(lambda: queue(queued).llen("embedding") == 0 and "answers again" in worker.said(), worker.said())
    until(lambda: worker.said().count("attempt refused") + states(queued)["complete"] >= NOTES, str(states(queued)))
    assert left > 0
    # One at work and one that was fetched already.
    assert worker.said().count("attempt refused") <= 2
    # What was in hand waits for a person, and the doctor says how many.
    found = states(queued)
    assert sum(found.values()) == NOTES
    if found["prepared"]:
        assert f"{found['prepared']} of stand-in-1 prepared and not begun" in queued.run("doctor").out


def children(process) -> list[int]:
    listed = subprocess.run(["pgrep", "--parent", str(process.popen.pid)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listed.stdout.split()]


def runs(pid: int) -> bool:
    return subprocess.run(["kill", "-0", str(pid)], capture_output=True, check=False).returncode == 0


def test_a_worker_that_is_killed_leaves_its_messages_to_the_next_one(queued):
    happened = "the worker is killed"
    first = queued.begin("worker")
    queue(queued).rename("aside", "embedding")
    until(lambda: queue(queued).llen("embedding") < NOTES - 3, first.said())
    own = children(first)
    assert own
    first.end(signal.SIGKILL)
    until(lambda: not any(map(runs, own)), "its children go on without it")

    left = queue(queued).llen("embedding")
    assert left > 0
    queued.require(happened, "doctor", queued.run("doctor", code=4).out)
    goes_on(queued, queued.begin("worker"))


def test_a_process_of_the_worker_that_is_killed_costs_what_it_had_in_hand(queued):
    happened = "a process of the worker is killed"
    worker = queued.begin("worker")
    queue(queued).rename("aside", "embedding")
    (child,) = until(lambda: children(worker), worker.said())

    def stopped_while_it_embeds() -> bool:
        os.kill(child, signal.SIGSTOP)
        if queue(queued).zcard(leases.KEY) and states(queued)["running"]:
            return True
        os.kill(child, signal.SIGCONT)
        return False

    until(stopped_while_it_embeds, worker.said())
    os.kill(child, signal.SIGKILL)
    until(lambda: "waits for one" in worker.said(), worker.said())
    # As after its ninety seconds.
    queue(queued).delete(leases.KEY)
    goes_on(queued, worker)
    queued.says(happened, worker)
    with superuser(queued) as connection:
        ((held,),) = connection.execute("SELECT id FROM semantic_derivation WHERE state = 'running'").fetchall()
        age(connection, held)
    queued.require(happened, "doctor", queued.run("doctor").out)


def goes_on(house, worker) -> None:
    """All but what was in hand is derived."""
    until(lambda: queue(house).llen("embedding") == 0 and states(house)["complete"] >= NOTES - 2, worker.said())
    assert worker.end(signal.SIGTERM) == 0
    assert sum(states(house).values()) == NOTES
