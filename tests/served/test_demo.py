"""`lychd demo` as a reader of README meets it: everything that it prints is true, and Ctrl-C ends all of it."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from typing import Final

import pytest

from tests.commands.conftest import PATIENCE
from tests.served.asking import Caller
from tests.served.house import House, Running

STORY: Final = ("1. ", "2. ", "3. ", "4. ", "5. ", "6. ", "7. ")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    made = House(tmp_path_factory.mktemp("demo"))
    try:
        yield made
        assert made.faults() == []
        made.done("demo", "--remove")
        assert made.instances() == []
    finally:
        made.close()


@pytest.fixture(scope="module")
def demo(house: House) -> Iterator[Running]:
    """The demonstration, and the end that its reader gives it."""
    demo = house.start("demo", "--port", 0, name="demo")
    demo.has(lambda: "Ctrl-C ends it" in demo.out, "it is ready")
    yield demo
    assert demo.end(signal.SIGINT) == 0
    assert house.left() == [], "servers that go on"


@pytest.fixture(scope="module")
def printed(demo: Running) -> dict[str, str]:
    """The names and values under the story."""
    names = ("address", "sign in", "password", "recall token", "write token", "generations")
    found = dict(re.findall(rf"^  ({'|'.join(names)}) +(\S+)$", demo.out, re.MULTILINE))
    assert set(found) == set(names)
    return found


def in_shell(house: House, line: str) -> str:
    """Paste a line into another terminal of the same user."""
    ran = subprocess.run(
        ["/bin/sh", "-c", line],
        env=house.environment(),
        cwd=house.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def test_the_story_is_told_whole(demo: Running) -> None:
    places = [demo.out.index(f"\n{number}" if number != "1. " else number) for number in STORY]
    assert places == sorted(places)
    assert "it matches" in demo.out
    assert "searched 41 of 41 promoted notes" in demo.out
    assert "searched 25 of 41 promoted notes" in demo.out


def test_the_printed_curl_line_gets_a_receipt(house: House, demo: Running) -> None:
    (line,) = re.findall(r"^  (curl (?:.*\\\n)*.*)$", demo.out, re.MULTILINE)
    assert json.loads(in_shell(house, line))["receipt"]["selected"]


def test_the_printed_commands_work_in_another_terminal(house: House, demo: Running) -> None:
    (verified,) = re.findall(r"^ +(\S+ receipt verify .+)$", demo.out, re.MULTILINE)
    in_shell(house, verified)
    (block,) = re.findall(r"^In a second terminal.*\n\n((?:  .+\n)+)", demo.out, re.MULTILINE)
    assert "runbooks/" in in_shell(house, f"set -e\n{block}")


def test_the_printed_user_signs_in_and_sees_the_generations(printed: dict[str, str]) -> None:
    browser = Caller(printed["address"])
    browser.sign_in(printed["sign in"], printed["password"])
    shown = browser.ask("GET", printed["generations"].removeprefix(printed["address"]))
    assert shown.status == 200
    assert "stand-in-1" in shown.text


def test_the_printed_tokens_take_in_and_recall_by_words_and_by_meaning(printed: dict[str, str]) -> None:
    namespace = printed["generations"].split("/ns/")[1].split("/")[0]
    ns = f"/api/v1/ns/{namespace}"
    writer, reader = (Caller(printed["address"], printed[name]) for name in ("write token", "recall token"))
    note = {"request_id": "n", "source_key": "a/note", "source_revision": "1", "text": "A note of the reader's own."}
    assert writer.send("POST", f"{ns}/notes", note).status == 201
    asked = {"request_id": "w", "query": "What unfreezes a barcode scanner at the pier gate?"}
    assert reader.send("POST", f"{ns}/recalls", asked).document["receipt"]["selected"]
    meant = {**asked, "request_id": "m", "min_cosine": 0.2}
    assert reader.send("POST", f"{ns}/semantic-recalls", meant).document["receipt"]["selected"]
    for how, name in (("recalls", "w"), ("semantic-recalls", "m")):
        assert reader.send("POST", f"{ns}/{how}/{name}/resolve", {}).document["sources"]


def test_a_program_is_told_the_same(house: House, demo: Running) -> None:
    told = house.done("demo", "--no-serve")
    assert told["verified"] is True
    assert told["address"] is None
