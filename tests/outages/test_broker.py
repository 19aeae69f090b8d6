"""The embedded broker killed, and one that cannot be reached."""

import os
import signal

import pytest

from lychd import broker, embedded
from tests.commands.conftest import until
from tests.outages.test_worker import queue, queued, states

__all__ = ["queued"]

pytestmark = pytest.mark.slow


def test_a_killed_broker_comes_back_with_what_waited_and_the_worker_goes_on(queued):
    happened = "the embedded broker is killed"
    queue(queued).rename("aside", "embedding")
    queue(queued).execute_command("WAITAOF", 1, 0, 1000)
    waiting = queue(queued).llen("embedding")
    worker = queued.begin("worker")
    os.kill(queue(queued).info("server")["process_id"], signal.SIGKILL)
    queued.says(happened, worker)
    until(lambda: states(queued)["complete"] == waiting, worker.said())
    queued.require(happened, "doctor", queued.run("doctor").out)
    assert broker.answers(embedded.broker_socket(queued.instance))
    worker.end(signal.SIGTERM)
