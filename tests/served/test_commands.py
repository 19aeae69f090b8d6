"""Every line of `lychd help`, each as a process of its own beside a service that runs."""

import json
import signal
import time

import pytest

from tests.commands.conftest import until
from tests.served.conftest import Settled
from tests.served.lines import FRAMEWORKS, USES, Desk


@pytest.fixture(scope="module")
def desk(settled: Settled) -> Desk:
    """Two services of one installation side by side: the commands here, the pages elsewhere."""
    _, address = settled.house.serve()
    return Desk(settled, settled.drive(address))


@pytest.mark.parametrize("line", USES)
def test_a_command_is_told_to_a_reader_and_to_a_program(desk: Desk, line: str) -> None:
    ran = desk.settled.house.run(*USES[line](desk))
    assert ran.code == 0, ran.out + ran.err
    assert ran.out.strip()

    ran = desk.settled.house.run(*USES[line](desk), "--json")
    assert ran.code == 0, ran.out + ran.err
    assert isinstance(json.loads(ran.out), dict)


@pytest.mark.parametrize("line", FRAMEWORKS)
def test_a_command_of_the_framework_is_done(desk: Desk, line: str) -> None:
    ran = desk.settled.house.run(*FRAMEWORKS[line])
    assert ran.code == 0, ran.out + ran.err
    assert (ran.out + ran.err).strip()


@pytest.mark.parametrize("mode", [[], ["--json"]], ids=["reader", "program"])
def test_the_worker_does_what_derive_asks_of_it(desk: Desk, mode: list[str]) -> None:
    notes = [desk.drive.promoted("lilies")["id"] for _ in range(3)]
    worker = desk.settled.house.work(*mode, name=desk.fresh("worker"))
    asked = desk.done("derive", *notes, "--queue", *desk.curator)
    assert asked["outcomes"] == {"sent": 3}

    def derived() -> bool:
        where = f"/api/v1/ns/{desk.drive.namespace}/derivations?note_id="
        time.sleep(0.3)
        found = [desk.drive.curator.send("GET", where + note).document["items"][0] for note in notes]
        return all(one["state"] == "complete" for one in found)

    worker.has(derived, "embeds what it was asked for")
    assert worker.end(signal.SIGINT) == 0


def test_the_service_tells_a_reader_where_it_is(desk: Desk) -> None:
    serving = desk.settled.house.start("serve", "--port", 0, name=desk.fresh("serve"))
    until(lambda: "LychD Archive is at http://127.0.0.1:" in serving.out, "it says where it is")
    assert serving.end(signal.SIGINT) == 0
