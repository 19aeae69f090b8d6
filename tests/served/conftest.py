"""Installations for the served suite; whatever their processes said is judged when they are gone."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.served.asking import Caller
from tests.served.described import Drive
from tests.served.house import CANARY, MEANING, House


@dataclass
class Settled:
    """An installation after its first day, with whom it has."""

    house: House
    first: dict[str, Any]
    """What `lychd init` told."""
    curator_token: str

    @property
    def namespace(self) -> str:
        return str(self.first["namespace"])

    def drive(self, address: str, **beside: str) -> Drive:
        """Whoever drives the API of a process of this installation."""
        agent = Caller(address, self.first["token"], beside)
        return Drive(self.namespace, agent, Caller(address, self.curator_token, beside))

    def browser(self, address: str, **beside: str) -> Caller:
        """The curator's browser, signed in."""
        found = Caller(address, beside=beside)
        found.sign_in(self.first["curator"], self.first["password"])
        return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts processes, so that none of it is run by accident with the rest."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.path.stem != "test_complete":
            item.add_marker("served")


def shelf(folder: Path, *names: str) -> Path:
    """A folder of Markdown."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.md").write_text(f"# {name.title()}\n\n{CANARY} planting: {name} want shade.\n")
    return folder


def settle(house: House, **owner: str) -> Settled:
    """What a first day is: `init`, a folder, more roles and a token for the curator, the generation."""
    first = house.done("init", **owner)
    house.done("ingest", shelf(house.folder / "shelf", "roses", "ferns"), "--as", "agent")
    house.done("grant", "give", "curator", "deriver", "writer")
    token = house.done("token", "create", "curator")["secret"]
    house.done("generation", "register", "--as", "curator")
    return Settled(house, first, token)


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settled]:
    """An installation with the default settings and with meaning on."""
    house = House(tmp_path_factory.mktemp("house"), dict(MEANING["stand-in"]))
    try:
        yield settle(house)
        for one in house.running:
            if one.process.poll() is None:
                one.end()
        assert house.faults() == []
    finally:
        house.close()
