"""What nobody brought down and yet does not serve: the log, the answer, the probe and doctor name the cause."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lychd import broker, embedded
from lychd.places import base
from tests.commands.conftest import PATIENCE, until
from tests.outages.conftest import House
from tests.outages.test_worker import queue

pytestmark = pytest.mark.slow

REQUEST_ID = "look-for-me"


def answer(house: House, path: str, body: Any = None) -> tuple[int, str]:
    """The status of one request, and all that its caller reads: headers and document."""
    asked = urllib.request.Request(
        f"{house.address}{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {house.token}",
            "Content-Type": "application/json",
            "X-Request-ID": REQUEST_ID,
        },
    )
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE) as given:
            return given.status, f"{given.headers}{given.read().decode()}"
    except urllib.error.HTTPError as error:
        with error:
            return error.code, f"{error.headers}{error.read().decode()}"


def note(key: str) -> tuple[str, dict[str, Any]]:
    body = {"request_id": key, "source_key": key, "source_revision": "1", "text": f"Roses number {key}. " * 300}
    return "/api/v1/ns/notes/notes", body


def warns(house: House, check: str) -> bool:
    """Whether `/readyz` warns of something, and is well otherwise."""
    status, said = answer(house, "/readyz")
    assert status == 200, said
    return bool(json.loads(said[said.index("{") :])["checks"].get(check) == "warning")


def lines(said: str) -> list[dict[str, Any]]:
    """The lines of requests in a log."""
    found = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return [line for line in found if line.get("event") == "request"]


@pytest.fixture
def small_disk(start: Any, outside: Any) -> Iterator[House]:
    """An installation whose data lies on a disk of 200 MB."""
    if os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root, to mount a small disk")
    # Not below the folder of the tests, which the server's user cannot enter.
    folder = Path(tempfile.mkdtemp(prefix="lychd-disk-"))
    folder.chmod(0o711)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200m,mode=0711", "lychd-test", str(folder)], check=False
    )
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip("this machine mounts no small disk")
    house = House(folder / "state", start, outside, folder)
    try:
        assert base(house.instance) == house.instance, "the data lies somewhere else"
        house.token = house._outside("init", "--json", state=house.state, **house.variables).document["token"]
        yield house
    finally:
        embedded.remove(house.instance)
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def fill(folder: Path) -> Path:
    """Leave no byte free."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(65_536))
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"0")
    return filler


def test_a_full_disk_says_so_and_heals_by_itself(small_disk):
    happened = "the disk of the database is full"
    house = small_disk
    serving = house.serve()
    assert answer(house, *note("before"))[0] == 201
    filler = fill(house.folder)

    status, said = 201, ""
    for number in range(500):
        # The first ones still fit into pages that are there.
        status, said = answer(house, *note(f"note-{number}"))
        if status != 201:
            break
    assert status == 503, said
    house.require(happened, "callers", said)
    house.says(happened, serving)
    (line,) = [one for one in lines(serving.said()) if one["status"] == 503]
    assert (line["correlation_id"], line["code"], line["sqlstate"]) == (REQUEST_ID, "storage_unavailable", "53100")
    assert line["principal"] is not None
    ready, told = answer(house, "/readyz")
    assert (ready, '"disk":"failed"' in told) == (503, True), told
    house.require(happened, "doctor", house.run("doctor", code=4).out)

    filler.unlink()
    until(lambda: answer(house, *note("after"))[0] in {200, 201}, serving.said())
    assert answer(house, "/readyz")[0] == 200
    serving.end()


def test_a_database_without_a_free_connection_says_that_it_answers(house):
    happened = "PostgreSQL has no connection left"
    serving = house.serve()
    server = embedded.Server(house.instance, embedded.socket_dir(house.instance))
    with contextlib.ExitStack() as held:
        # What serves keeps its connections, so they are all taken before it is asked the first time.
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                held.enter_context(psycopg.connect(server.url()))
        status, said = answer(house, *note("crowded"))
        assert status == 503, said
        house.require(happened, "callers", said)
        house.says(happened, serving)
        (line,) = lines(serving.said())
        assert (line["correlation_id"], line["status"], line["sqlstate"]) == (REQUEST_ID, 503, "53300")
        house.require(happened, "doctor", house.run("doctor", code=4).out)
    until(lambda: answer(house, *note("after"))[0] == 201, serving.said())
    serving.end()


def test_a_broker_that_cannot_be_reached_is_told_and_recall_goes_on(house):
    happened = "the broker of REDIS_URL does not answer"
    house.run("grant", "give", "curator", "writer", "operator", "deriver")
    house.token = json.loads(house.run("token", "create", "curator", "--json").out)["secret"]
    house.variables["REDIS_URL"] = "redis://127.0.0.1:1/0"
    serving = house.serve()
    _, made = house.note("oak")
    house.run("generation", "register", "--as", "curator")
    house.ask(f"/api/v1/ns/notes/notes/{made['note']['id']}/promote", {"expected_version": 1})
    status, prepared = house.ask("/api/v1/ns/notes/derivations", {"note_id": made["note"]["id"]})
    assert status == 201, prepared

    asked = {"expected_row_version": prepared["row_version"]}
    status, said = answer(house, f"/api/v1/ns/notes/derivations/{prepared['id']}/attempts", asked)
    assert status == 503, said
    house.require(happened, "callers", said)
    house.says(happened, serving)
    until(lambda: warns(house, "broker"), "readyz has a warning")
    house.require(happened, "doctor", house.run("doctor", code=4).out)
    assert answer(house, "/api/v1/ns/notes/recalls", {"request_id": "q", "query": "roses"})[0] == 201
    serving.end()


def test_messages_that_no_worker_takes_are_told(house):
    happened = "messages wait and no worker runs"
    broker.start_broker(house.instance)
    serving = house.serve()
    queue(house).rpush("embedding", "a message")
    until(lambda: warns(house, "worker"), "readyz has a warning")
    house.require(happened, "doctor", house.run("doctor", code=4).out)
    queue(house).delete("embedding")
    serving.end()
