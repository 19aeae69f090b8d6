"""The addresses of generations, derivations and semantic recall, over HTTP."""

import json
from types import SimpleNamespace

import pytest
from django.test import Client

from archive.operations import host
from semantic import tasks
from semantic.operations.generations import register, retire
from semantic.refusals import CoordinationUnavailable
from semantic.tasks import run_derivation_attempt
from tests import cast
from tests.semantic import acts
from tests.semantic.conftest import GENERATION

BASE = "/api/v1"


class Agent:
    """Somebody with a token."""

    def __init__(self, subject: str) -> None:
        self.client = Client()
        self.headers = {"Authorization": f"Bearer {host.issue_token(subject, by='host:tests', namespaces=None).secret}"}

    def get(self, path: str):
        return self.client.get(BASE + path, headers=self.headers)

    def post(self, path: str, body):
        content = body if isinstance(body, str) else json.dumps(body)
        return self.client.post(BASE + path, content, content_type="application/json", headers=self.headers)


@pytest.fixture
def ready(meaning, alice, otto):
    note = cast.promoted(alice, "Roses want morning sun.")
    register(otto)
    return note


@pytest.fixture
def sent(monkeypatch):
    """Messages instead of a broker."""
    messages = []

    def remember(**how):
        messages.append(how["kwargs"])

    monkeypatch.setattr(tasks, "run_derivation_attempt", SimpleNamespace(apply_async=remember))
    return messages


@pytest.fixture
def agents(ready):
    return {subject: Agent(subject) for subject in ("bob", "dora", "otto", "ivy")}


def test_a_note_is_prepared_asked_for_and_read_over_http(agents, ready, sent, dora):
    made = agents["dora"].post("/ns/garden/derivations", {"note_id": str(ready.id)})
    again = agents["dora"].post("/ns/garden/derivations", {"note_id": str(ready.id)})
    assert (made.status_code, again.status_code) == (201, 200)
    assert made.json() == again.json()
    row = made.json()
    assert (row["state"], row["attempt"], row["row_version"]) == ("prepared", 0, 1)

    asked = agents["dora"].post(f"/ns/garden/derivations/{row['id']}/attempts", {"expected_row_version": 1})

    assert asked.status_code == 202
    assert asked.json() == {"status_url": f"{BASE}/ns/garden/derivations/{row['id']}"}
    (message,) = sent
    assert set(message) == {
        *("namespace", "derivation_id", "expected_row_version", "retry", "subject", "correlation_id", "signature"),
    }
    assert "Roses" not in json.dumps(message)
    shown = agents["dora"].client.get(asked.json()["status_url"], headers=agents["dora"].headers)
    assert (shown.status_code, shown.json()["state"]) == (200, "prepared")

    run_derivation_attempt(**message)
    done = agents["dora"].get(f"/ns/garden/derivations/{row['id']}").json()
    assert done["state"] == "complete"
    once_more = agents["dora"].post(f"/ns/garden/derivations/{row['id']}/attempts", {"expected_row_version": 3})
    assert (once_more.status_code, once_more.json()) == (200, done)
    assert len(sent) == 1
    listed = agents["ivy"].get("/ns/garden/derivations?limit=1").json()
    assert listed == {"items": [done], "next_cursor": None}


def test_s186_without_a_broker_nothing_is_changed(agents, ready, dora, counts, monkeypatch):
    record = acts.prepared(dora, ready)
    counts.mark()

    def down(**how):
        from kombu.exceptions import OperationalError

        raise OperationalError("no broker")

    monkeypatch.setattr(tasks, "run_derivation_attempt", SimpleNamespace(apply_async=down))
    answer = agents["dora"].post(f"/ns/garden/derivations/{record.id}/attempts", {"expected_row_version": 1})

    assert (answer.status_code, answer.json()["code"]) == (503, CoordinationUnavailable.code)
    counts.unchanged(but=["lychd_token"])


def test_semantic_recall_and_resolution_over_http(agents, ready, dora):
    acts.derived(dora, ready)
    body = {"request_id": "s1", "query": "roses in the sun", "min_cosine": 0}

    first = agents["bob"].post("/ns/garden/semantic-recalls", body)
    again = agents["bob"].post("/ns/garden/semantic-recalls", {**body, "min_cosine": 0.0})
    texts = agents["bob"].post("/ns/garden/semantic-recalls/s1/resolve", "")

    assert (first.status_code, again.status_code, texts.status_code) == (201, 200, 200)
    assert set(first.json()) == {"outcome", "receipt", "caller_execution"}
    assert first.json()["caller_execution"]["tokens"] == 4
    assert (again.json()["outcome"], again.json()["caller_execution"]) == ("replayed", None)
    assert [source["data"]["text"] for source in texts.json()["sources"]] == ["Roses want morning sun."]
    kept = agents["ivy"].get("/ns/garden/receipts/s1").json()
    assert kept["receipt"] == first.json()["receipt"]
    assert agents["bob"].post("/ns/garden/recalls/s1/resolve", "").json()["code"] == "receipt_schema_mismatch"


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"min_cosine": "0.5"},
        {"min_cosine": 1.5},
        {"min_cosine": True},
        {"min_cosine": None},
        {"min_cosine": 0.5, "vector": [1.0]},
        {"min_cosine": 0.5, "embedder": "mine"},
        {"min_cosine": 0.5, "namespace": "garden"},
        {"min_cosine": 0.5, "min_rank": 0},
        {"min_cosine": 0.5, "top_k": 21},
        {"min_cosine": 0.5, "top_k": 5.0},
        {"min_cosine": 0.5, "char_budget": 0},
        {"min_cosine": 0.5, "query": "x" * 1_025},
        {"min_cosine": 0.5, "request_id": "a/b"},
    ],
)
def test_s203_s204_s225_a_request_is_exactly_what_may_be_asked(agents, script, counts, wrong):
    body = {"request_id": "s1", "query": "roses", **wrong}

    answer = agents["bob"].post("/ns/garden/semantic-recalls", body)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    counts.unchanged(but=["lychd_token", *GROWN])
    assert script.opened == 0


GROWN = ("archive_note", "archive_source", "archive_intake_request", "archive_lifecycle_event", "archive_namespace",
         "archive_corpus", "archive_posting", "semantic_generation")  # fmt: skip


def test_s203_no_number_is_not_a_number(agents):
    for number in ("NaN", "Infinity", "-Infinity", "1e999"):
        body = f'{{"request_id": "s1", "query": "roses", "min_cosine": {number}}}'
        assert agents["bob"].post("/ns/garden/semantic-recalls", body).status_code == 400


def test_generations_are_read_and_not_registered_over_http(agents, ready, otto):
    configured = agents["otto"].get("/generation-configuration?namespace=garden")
    listed = agents["ivy"].get("/ns/garden/generations")
    one = agents["ivy"].get(f"/ns/garden/generations/{GENERATION}")

    assert configured.json()["reference"] == GENERATION
    assert listed.json()["items"] == [one.json()]
    assert one.json()["manifest_digest"] == configured.json()["manifest_digest"]
    assert one.json()["coverage"] == {"promoted": 1, "complete": 0}
    assert agents["ivy"].get("/ns/garden/generations/none").json()["code"] == "generation_absent"
    assert agents["otto"].post("/ns/garden/generations", {}).status_code == 405
    assert agents["otto"].get("/generation-configuration").status_code == 400
    retire(otto, GENERATION)
    assert agents["ivy"].get(f"/ns/garden/generations/{GENERATION}").json()["state"] == "retired"


@pytest.mark.parametrize("reference", ["notes%00", "n%C3%B6tes", "x" * 129, "-notes"])
def test_a_generation_that_nothing_can_be_called_is_a_wrong_request(agents, reference):
    answer = agents["ivy"].get(f"/ns/garden/generations/{reference}")

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/reference"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/ns/garden/generations"),
        ("get", "/ns/garden/derivations"),
        ("get", "/ns/garden/derivations/00000000-0000-4000-8000-000000000001"),
        ("post", "/ns/garden/derivations"),
        ("post", "/ns/garden/derivations/00000000-0000-4000-8000-000000000001/attempts"),
    ],
)
def test_whoever_may_only_recall_reads_and_derives_nothing(agents, ready, method, path):
    bodies = {True: {"expected_row_version": 1}, False: {"note_id": str(ready.id)}}
    answer = agents["bob"].get(path) if method == "get" else agents["bob"].post(path, bodies[path.endswith("attempts")])
    assert (answer.status_code, answer.json()["code"]) == (403, "authority_refused")


def test_whoever_may_only_derive_recalls_nothing(agents, ready):
    body = {"request_id": "s1", "query": "roses", "min_cosine": 0}
    for path, given in (("/ns/garden/semantic-recalls", body), ("/ns/garden/semantic-recalls/s1/resolve", "")):
        answer = agents["dora"].post(path, given)
        assert (answer.status_code, answer.json()["code"]) == (403, "authority_refused")
