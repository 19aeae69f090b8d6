"""Every address of the API's description, over HTTP, of `lychd serve` with the settings that a first day has."""

import signal
from importlib.util import find_spec

import pytest

from tests.served.conftest import Settled
from tests.served.described import successes
from tests.served.house import MEANING


@pytest.mark.parametrize("workers", [[], ["--workers", 2]], ids=["one process", "two processes"])
def test_every_success_that_the_description_names(settled: Settled, workers: list[object]) -> None:
    house = settled.house
    serving, address = house.serve(*workers, name=f"serve {len(house.running)}")
    working = house.work(name=f"worker {len(house.running)}")
    drive = settled.drive(address)

    drive.everything()

    assert drive.seen == successes()
    assert working.end(signal.SIGINT) == 0
    assert serving.end(signal.SIGINT) == 0
    assert house.left() == [], "servers that go on"


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="the extra `models` is not installed")
def test_recall_by_meaning_with_the_small_model(settled: Settled) -> None:
    house, minilm = settled.house, MEANING["minilm"]
    house.done("generation", "register", "--as", "curator", **minilm)
    _, address = house.serve(name="serve minilm", **minilm)
    house.work(name="worker minilm", **minilm)

    settled.drive(address).meaning()
