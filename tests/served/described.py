"""The whole description of the API, driven: every address and method to each success that it names."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from tests.commands.conftest import until
from tests.served.asking import Answer, Caller
from tests.served.house import CANARY

DESCRIPTION: Final = Path(__file__).parents[2] / "docs" / "openapi.json"
METHODS: Final = ("get", "put", "post", "delete", "patch", "head", "options", "trace")

Success = tuple[str, str, int]


def successes() -> set[Success]:
    """Every success that the description names: method, address, status."""
    return {
        (method.upper(), path, int(status))
        for path, methods in json.loads(DESCRIPTION.read_text())["paths"].items()
        for method, told in methods.items()
        if method in METHODS
        for status in told["responses"]
        if int(status) < 400
    }


class Drive:
    """Drives one service in one namespace, and keeps which successes there were."""

    def __init__(self, namespace: str, agent: Caller, curator: Caller) -> None:
        self.namespace = namespace
        self.agent = agent
        self.curator = curator
        self.seen: set[Success] = set()

    def ask(
        self,
        who: Caller,
        method: str,
        address: str,
        body: Any = None,
        *,
        want: int,
        query: str = "",
        headers: dict[str, str] | None = None,
        **names: str,
    ) -> Answer:
        """Ask at an address of the description and want this success."""
        where = address.format(ns=self.namespace, **names) + query
        answer = who.send(method, where, body, **(headers or {}))
        assert answer.status == want, f"{method} {where}: {answer.status} {answer.text}"
        self.seen.add((method, address, want))
        return answer

    def everything(self) -> None:
        """All of it, once."""
        self.notes()
        self.words()
        self.generations()
        self.meaning()

    def taken(self, what: str, want: int = 201, **more: str) -> Any:
        """Take one note in."""
        body = {
            "request_id": f"n-{uuid4()}",
            "source_key": f"garden/{what}-{uuid4()}",
            "source_revision": "1",
            "text": f"{CANARY} planting: {what} want morning sun and sand.",
            **more,
        }
        told = self.ask(self.agent, "POST", "/api/v1/ns/{ns}/notes", body, want=want).document
        return {**told["note"], "body": body}

    def promoted(self, what: str) -> Any:
        """Take one note in and promote it."""
        note = self.taken(what)
        address = "/api/v1/ns/{ns}/notes/{note_id}/promote"
        self.ask(self.curator, "POST", address, {"expected_version": 1}, want=200, note_id=note["id"])
        return note

    def notes(self) -> None:
        """From intake to revocation, and whatever tells of it."""
        ns = "/api/v1/ns/{ns}"
        curator, agent = self.curator, self.agent
        roses = self.promoted("roses")
        again = self.ask(agent, "POST", f"{ns}/notes", roses["body"], want=200).document
        assert again["note"]["id"] == roses["id"]
        batch = [{**roses["body"], "request_id": f"b-{uuid4()}", "source_key": f"beds/{uuid4()}"} for _ in range(2)]
        told = self.ask(agent, "POST", f"{ns}/notes/batch", {"items": batch}, want=200).document
        ids = [one["note"]["id"] for one in told["items"]]
        moves = [{"note_id": one, "action": "promote", "expected_version": 1} for one in ids]
        self.ask(curator, "POST", f"{ns}/transitions", {"items": moves}, want=200)

        listed = self.ask(curator, "GET", f"{ns}/notes", want=200, query="?limit=100").document["items"]
        assert {one["id"] for one in listed} >= {roses["id"], *ids}
        record = self.ask(curator, "GET", f"{ns}/notes/{{note_id}}", want=200, note_id=roses["id"])
        match = {"If_None_Match": record.headers["etag"]}
        self.ask(curator, "GET", f"{ns}/notes/{{note_id}}", want=304, note_id=roses["id"], headers=match)
        text = self.ask(curator, "GET", f"{ns}/notes/{{note_id}}/text", want=200, note_id=self.taken("ferns")["id"])
        assert CANARY in text.text
        self.ask(curator, "GET", f"{ns}/notes/{{note_id}}/events", want=200, note_id=roses["id"])
        self.ask(agent, "GET", f"{ns}/intakes", want=200, query="?mine")
        intake = roses["body"]["request_id"]
        self.ask(curator, "GET", f"{ns}/intakes/{{request_id}}", want=200, request_id=intake)
        assert self.ask(curator, "GET", f"{ns}/events", want=200).document["items"]

        flags = f"{ns}/notes/{{note_id}}/flags"
        for want in (201, 200):
            self.ask(agent, "POST", flags, {"reason": "outdated"}, want=want, note_id=roses["id"])
        seen = {"expected_version": 2}
        self.ask(curator, "POST", f"{ns}/notes/{{note_id}}/archive", seen, want=200, note_id=ids[0])
        self.ask(curator, "POST", f"{ns}/notes/{{note_id}}/revoke", seen, want=200, note_id=ids[1])

    def words(self) -> None:
        """Recall by words, from the question to the text."""
        ns = "/api/v1/ns/{ns}"
        self.promoted("tulips")
        asked = {"request_id": f"q-{uuid4()}", "query": f"{CANARY} tulips in the morning"}
        for want in (201, 200):
            told = self.ask(self.agent, "POST", f"{ns}/recalls", asked, want=want).document
            assert told["receipt"]["selected"]
        resolved = self.ask(
            self.agent, "POST", f"{ns}/recalls/{{request_id}}/resolve", {}, want=200, request_id=asked["request_id"]
        )
        assert CANARY in resolved.text
        self.ask(self.curator, "GET", f"{ns}/receipts/{{request_id}}", want=200, request_id=asked["request_id"])

    def generations(self) -> None:
        """What is configured and registered."""
        query = f"?namespace={self.namespace}"
        self.ask(self.curator, "GET", "/api/v1/configuration", want=200, query=query)
        self.ask(self.curator, "GET", "/api/v1/generation-configuration", want=200, query=query)
        self.ask(self.curator, "GET", "/api/v1/interface-projection", want=200, query=query)
        (known,) = self.ask(self.curator, "GET", "/api/v1/ns/{ns}/generations", want=200).document["items"]
        address = "/api/v1/ns/{ns}/generations/{reference}"
        self.ask(self.curator, "GET", address, want=200, reference=known["reference"])

    def meaning(self) -> None:
        """Recall by meaning, of a note that the worker embeds."""
        ns = "/api/v1/ns/{ns}"
        note = self.promoted("irises")
        for want in (201, 200):
            told = self.ask(self.curator, "POST", f"{ns}/derivations", {"note_id": note["id"]}, want=want).document
        one = told["id"]
        self.ask(self.curator, "GET", f"{ns}/derivations", want=200)
        address = f"{ns}/derivations/{{derivation_id}}"

        def ask_for_it(want: int, version: int) -> Answer:
            seen = {"expected_row_version": version}
            return self.ask(self.curator, "POST", f"{address}/attempts", seen, want=want, derivation_id=one)

        def stands() -> Any:
            return self.ask(self.curator, "GET", address, want=200, derivation_id=one).document

        where = ask_for_it(202, stands()["row_version"]).document["status_url"]
        assert self.curator.send("GET", where).status == 200
        told = until(complete(stands), "the worker embeds it")
        ask_for_it(200, told["row_version"])

        asked = {"request_id": f"m-{uuid4()}", "query": f"{CANARY} irises in the morning", "min_cosine": 0.0}
        for want in (201, 200):
            told = self.ask(self.agent, "POST", f"{ns}/semantic-recalls", asked, want=want).document
        assert note["id"] in {chosen["note_id"] for chosen in told["receipt"]["selected"]}
        resolve = f"{ns}/semantic-recalls/{{request_id}}/resolve"
        resolved = self.ask(self.agent, "POST", resolve, {}, want=200, request_id=str(asked["request_id"]))
        assert CANARY in resolved.text


def complete(stands: Callable[[], Any]) -> Callable[[], Any]:
    """Where a derivation stands, once it is complete."""

    def seen() -> Any:
        # As often as a caller may ask: a courtesy limit counts these too.
        time.sleep(0.3)
        found = stands()
        assert found["state"] not in ("failed", "refused", "invalidated"), found
        return found if found["state"] == "complete" else None

    return seen
