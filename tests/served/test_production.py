"""Production as the documents start it: the commands of Dockerfile and docker-compose.yml, with what they are told."""

import json
import re
import secrets
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from lychd import embedded
from lychd.places import broker_url
from tests.commands.conftest import until
from tests.served.asking import Caller
from tests.served.conftest import Settled, settle
from tests.served.described import successes
from tests.served.house import BIN, MEANING, House

ROOT: Final = Path(__file__).parents[2]
COMPOSE: Final = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
# What a proxy in front of it adds; without it every request is sent on to HTTPS.
PROXIED: Final = {"X-Forwarded-Proto": "https", "Host": "archive.example"}


def image() -> tuple[dict[str, str], list[str]]:
    """What the last stage of Dockerfile sets, and what it starts."""
    last = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    sets = re.findall(r"\b(LYCHD_\w+|PYTHON\w+)=(\S+)", re.sub(r"^(?:#|RUN|CMD).*(?:\\\n.*)*$", "", last, flags=re.M))
    (command,) = re.findall(r"^CMD (\[.+\])$", last, re.MULTILINE)
    return dict(sets), json.loads(command)


def composed(value: str, given: Mapping[str, str]) -> str:
    """A value of docker-compose.yml with its ${NAME:-default} filled in, as compose does."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: given.get(found[1]) or found[2], value)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@dataclass
class Deployment:
    settled: Settled
    address: str


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A server and a broker that somebody else looks after, and this application in front of them."""
    folder = tmp_path_factory.mktemp("production")
    house = House(folder)
    machine = folder / "machine"
    sets, command = image()
    with embedded.sharing(machine, broker=True) as server:
        house.variables |= {
            **sets,
            **{name: composed(value, {}) for name, value in COMPOSE["web"]["environment"].items() if ":?" not in value},
            **MEANING["stand-in"],
            "LYCHD_STATE_DIR": str(house.state),
            "LYCHD_STATIC_ROOT": str(folder / "static"),
            "LYCHD_SECRET_KEY": secrets.token_urlsafe(64),
            "LYCHD_ALLOWED_HOSTS": PROXIED["Host"],
            "LYCHD_TRUSTED_PROXIES": "127.0.0.1",
            "LYCHD_ARCHIVE_PROFILE": "local-public-notes@1",
            "DATABASE_URL": server.url(),
            "REDIS_URL": broker_url(machine),
        }
        owner = {"DATABASE_OWNER_URL": server.url(role=embedded.OWNER_ROLE)}
        try:
            assert house.run("collectstatic", "--no-input").code == 0
            _, *migrate = COMPOSE["migrate"]["command"]
            assert house.run(*migrate, **owner).code == 0
            settled = settle(house, **owner)
            port = free_port()
            words = [{"0.0.0.0": "127.0.0.1", "8000": str(port)}.get(word, word) for word in command]
            web = house.start(*words[1:], program=str(BIN / words[0]), name="web")
            program, *words = (composed(word, house.variables) for word in COMPOSE["worker"]["command"])
            worker = house.start(*words, program=str(BIN / program), name="worker")
            caller = Caller(f"http://127.0.0.1:{port}", beside=PROXIED)
            web.has(lambda: _answers(caller), "it answers")
            yield Deployment(settled, caller.address)
            for one in house.running:
                one.end()
            assert worker.process.returncode == 0
            assert house.faults() == []
        finally:
            house.close()
    embedded.remove(machine)


def _answers(caller: Caller) -> bool:
    try:
        return caller.ask("GET", "/readyz").status == 200
    except ConnectionError:
        return False


def test_every_success_that_the_description_names(deployment: Deployment) -> None:
    drive = deployment.settled.drive(deployment.address, **PROXIED)
    drive.everything()
    assert drive.seen == successes()


def test_another_server_of_the_same_application_gives_the_same(deployment: Deployment) -> None:
    """What docs/operations.md says of a server that is not `lychd serve`."""
    port = free_port()
    words = ["lychd.asgi:application", "--port", port, "--no-proxy-headers", "--no-access-log"]
    web = deployment.settled.house.start(*words, program=str(BIN / "uvicorn"), name="uvicorn")
    caller = Caller(f"http://127.0.0.1:{port}", beside=PROXIED)
    web.has(lambda: _answers(caller), "it answers")
    drive = deployment.settled.drive(caller.address, **PROXIED)
    drive.everything()
    assert drive.seen == successes()


def test_a_curator_signs_in_and_the_pages_have_their_looks(deployment: Deployment) -> None:
    browser = deployment.settled.browser(deployment.address, **PROXIED)
    home = browser.ask("GET", f"/ns/{deployment.settled.namespace}")
    assert home.status == 200
    linked = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', home.text))
    assert linked
    for one in linked:
        assert browser.ask("GET", one).status == 200, one


def test_whoever_comes_without_tls_is_sent_on_to_it(deployment: Deployment) -> None:
    answer = Caller(deployment.address, beside={"Host": PROXIED["Host"]}).ask("GET", "/sign-in")
    assert answer.status == 301
    assert answer.headers["location"] == f"https://{PROXIED['Host']}/sign-in"


def test_the_checks_of_the_healthy_containers_pass(deployment: Deployment) -> None:
    program, *words = COMPOSE["worker"]["healthcheck"]["test"][1:]
    house = deployment.settled.house

    def passes() -> Any:
        return house.run(*words, program=str(BIN / program)).code == 0

    until(passes, "the worker answers its check")
