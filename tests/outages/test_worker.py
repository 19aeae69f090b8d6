"""The worker and its broker through an outage: what nobody can work on stays where it is, and goes on by itself."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter

import psycopg
import pytest
import redis

from lychd import broker, embedded
from lychd.environment import CHECKOUT
from tests.commands.conftest import environment, until
from tests.outages.conftest import DERIVING, Process

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


def states(house) -> Counter[str]:
    server = embedded.Server(house.instance, embedded.socket_dir(house.instance))
    with psycopg.connect(server.url(role=embedded.SUPERUSER)) as connection:
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
    # Long enough to have taken all of them: each is refused in milliseconds.
    time.sleep(3)
    assert queue(queued).llen("embedding") == NOTES
    assert "attempt refused" not in worker.said()

    queued.data.chmod(0o700)
    until(lambda: "answers again" in worker.said(), worker.said())
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
