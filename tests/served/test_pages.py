"""Every page and every form of the access table, over HTTP, by somebody with a browser.

`tests/access/test_registries.py` keeps that table equal to the addresses that there are.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import pytest

from tests.access import doors, table
from tests.access.ground import Place
from tests.access.table import Entrance
from tests.served.asking import Answer, Caller
from tests.served.conftest import Settled
from tests.served.described import Drive
from tests.served.house import CANARY

# To the admin nobody may send a form, and that is shown to everybody in tests/access.
ROWS: Final = [
    one
    for one in table.ENTRANCES
    if one.door == "page"
    or (one.door == "admin" and one.method == "GET")
    # Which the description of the API does not describe.
    or one.address in ("api/v1/schema", "api/v1/docs")
]
_AGENT: Final = {"subject": "agent", "role": "inspector"}
FORMS: Final[dict[str, Callable[["Site"], dict[str, Any]]]] = {
    "ns/<key:ns>/people/grant": lambda site: _AGENT,
    "ns/<key:ns>/people/withdraw": lambda site: _AGENT,
    "ns/<key:ns>/people/token": lambda site: {"subject": "agent"},
    "ns/<key:ns>/people/token-end": lambda site: {"prefix": site.ending},
    "ns/<key:ns>/settings/change": lambda site: {**site.settings(site.drive.namespace), "second_person": "yes"},
    "ns/<key:ns>/settings/disable": lambda site: {"seen": site.settings(site.attic)["seen"]},
    "ns/<key:ns>/search": lambda site: {"query": f"{CANARY} irises", "asker": "agent"},
}
_INPUT: Final = re.compile(r'<input[^>]* name="(?!csrf)(\w+)"[^>]* value="([^"]*)"')
_SELECT: Final = re.compile(r'<select[^>]* name="(\w+)">(?:(?!</select>).)*?value="([^"]*)" selected', re.DOTALL)
_LINKED: Final = re.compile(r'(?:src|href)="(/static/[^"]+)"')


@dataclass
class Site:
    """The pages of a process, a curator in front of them, and something to look at behind each."""

    address: str
    browser: Caller
    drive: Drive
    settled: Settled
    receipt: str
    meant: str
    derivation: str
    ending: str
    """The beginning of a token that may end."""
    attic: str
    """A namespace that may end."""

    def settings(self, namespace: str) -> dict[str, str]:
        """The form on the page of a namespace's settings, as it is shown."""
        shown = self.browser.ask("GET", f"/ns/{namespace}/settings").text
        form = shown.partition('<form method="post" class="card stack"')[2].partition("</form>")[0]
        return dict(_INPUT.findall(form)) | dict(_SELECT.findall(form))

    def place(self) -> Place:
        """Notes that nobody else decides about, and what the others have left."""
        candidate, promoted = self.drive.taken("asters"), self.drive.promoted("asters")
        return Place(
            self.drive.namespace,
            candidate=UUID(candidate["id"]),
            promoted=UUID(promoted["id"]),
            intake_id=candidate["body"]["request_id"],
            receipt_id=self.receipt,
            meant_id=self.meant,
            derivation=UUID(self.derivation),
        )


@pytest.fixture(scope="module")
def site(settled: Settled) -> Site:
    """A service whose tables all have a row."""
    _, address = settled.house.serve()
    settled.house.work()
    drive = settled.drive(address)
    drive.everything()
    settled.house.done("namespace", "configure", drive.namespace, "--owner", "owner", "--policy", "policy-2")
    settled.house.done("grant", "give", "curator", "operator")
    settled.house.done("namespace", "migrate", "--carry-grants", "--reason", "the policy moved on", "--as", "curator")
    ending = settled.house.done("token", "create", "agent", "--name", "ending")["token"]["prefix"]
    settled.house.done("namespace", "configure", "attic", "--owner", "owner", "--policy", "policy-1")
    settled.house.done("grant", "give", "curator", "operator", "--namespace", "attic")
    return Site(address, settled.browser(address), drive, settled, *_asked(drive), ending, "attic")


@pytest.fixture(scope="module")
def standing(site: Site) -> Place:
    """Notes that nobody decides about at all."""
    return site.place()


def _asked(drive: Drive) -> tuple[str, str, str]:
    receipt, meant = "asked-by-words", "asked-by-meaning"
    drive.agent.send(
        "POST", f"/api/v1/ns/{drive.namespace}/recalls", {"request_id": receipt, "query": f"{CANARY} tulips"}
    )
    drive.agent.send(
        "POST",
        f"/api/v1/ns/{drive.namespace}/semantic-recalls",
        {"request_id": meant, "query": f"{CANARY} irises", "min_cosine": -1.0},
    )
    (derivation,) = drive.curator.send("GET", f"/api/v1/ns/{drive.namespace}/derivations").document["items"]
    return receipt, meant, derivation["id"]


def _taken(site: Site, entrance: Entrance, place: Place) -> Answer:
    if entrance.address == "sign-in" and entrance.method == "POST":
        return Caller(site.address).fill_in(
            "/sign-in",
            "/sign-in",
            {"username": site.settled.first["curator"], "password": site.settled.first["password"]},
        )
    if entrance.address == "sign-out":
        return site.settled.browser(site.address).fill_in(f"/ns/{place.key}", "/sign-out", {})
    if "/<path:object_id>/" in entrance.address:
        listed = entrance.address.partition("<path:object_id>")[0]
        found = re.search(rf'href="(/{listed}[^/"]+/change/)', site.browser.ask("GET", f"/{listed}").text)
        assert found is not None, f"/{listed} has no row"
        return site.browser.ask("GET", found[1])
    if entrance.address == "ns/<key:ns>/source":
        return site.browser.ask("GET", f"/ns/{place.key}/source?key=roses.md")
    if entrance.address.endswith("/settings/disable"):
        place = replace(place, key=site.attic)
    where = doors.address(entrance, place)
    if entrance.method == "GET":
        return site.browser.ask("GET", where)
    fields = FORMS[entrance.address](site) if entrance.address in FORMS else doors.content(entrance, place)
    if "/people/" in entrance.address or "/settings/" in entrance.address:
        # What would be done is shown first, and another form does it.
        shown = site.browser.fill_in(f"/ns/{place.key}", where, fields)
        assert 'name="confirmed" value="yes"' in shown.text
        fields = {**fields, "confirmed": "yes"}
    return site.browser.fill_in(f"/ns/{place.key}", where, fields)


@pytest.mark.parametrize("entrance", ROWS, ids=str)
def test_a_page_answers_and_a_form_is_taken(site: Site, standing: Place, entrance: Entrance) -> None:
    answer = _taken(site, entrance, standing if entrance.reads else site.place())

    if set(entrance.signs.values()) == {"0"}:
        assert answer.status == 404
    elif answer.status == 302:
        assert entrance.address == "sign-out" or not answer.headers["location"].startswith("/sign-in")
    else:
        assert answer.status == 200, answer.text
    for linked in set(_LINKED.findall(answer.text)):
        assert site.browser.ask("GET", linked).status == 200, linked
