"""The embedded broker killed, and one that cannot be reached."""

import os
import signal

import pytest

from lychd import broker, embedded
from tests.commands.conftest import until
from tests.outages import table
from tests.outages.test_worker import NOTES, queue, queued, states

__all__ = ["queued"]

pytestmark = pytest.mark.slow


def test_a_killed_broker_comes_back_with_what_waited_and_the_worker_goes_on(queued):
    happened = "the embedded broker is killed"
    worker = queued.begin("worker")
    until(lambda: any(one["cmd"] == "brpop" for one in queue(queued).client_list()), "it never listens")
    queue(queued).rename("aside", "embedding")
    queue(queued).execute_command("WAITAOF", 1, 0, 1000)
    assert queue(queued).llen("embedding") > 0
    os.kill(queue(queued).info("server")["process_id"], signal.SIGKILL)

    # Whoever looks first starts it; the other finds it there.
    def missing() -> list[str]:
        return table.missing(happened, "log", worker.said() + queued.serving.said())

    until(lambda: not missing(), "nobody says what became of it")
    # One that was fetched and not begun may be gone with the broker; its row waits for a person.
    until(lambda: queue(queued).llen("embedding") == 0 and states(queued)["complete"] >= NOTES - 2, worker.said())
    queued.require(happened, "doctor", queued.run("doctor").out)
    assert broker.answers(embedded.broker_socket(queued.instance))
    worker.end(signal.SIGTERM)
