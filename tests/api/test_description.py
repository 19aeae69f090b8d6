"""The description says what the service does, and the committed pages say what the code says."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import get_resolver
from jsonschema import Draft4Validator  # type: ignore[import-untyped]

from archive import limits, refusals
from archive.api import description, schema
from archive.lifecycle import Reason, State
from archive.management.commands import errors_page, openapi
from tests.api.conftest import Api, body, problem

DOCS = Path(__file__).resolve().parents[2] / "docs"

ADDRESSES = {
    "generation-configuration": {"get": "readGenerationConfiguration"},
    "ns/{ns}/generations": {"get": "listGenerations"},
    "ns/{ns}/generations/{reference}": {"get": "readGeneration"},
    "ns/{ns}/derivations": {"get": "listDerivations", "post": "prepareDerivation"},
    "ns/{ns}/derivations/{derivation_id}": {"get": "readDerivation"},
    "ns/{ns}/derivations/{derivation_id}/attempts": {"post": "requestAttempt"},
    "ns/{ns}/semantic-recalls": {"post": "recallByMeaning"},
    "ns/{ns}/semantic-recalls/{request_id}/resolve": {"post": "resolveByMeaning"},
    "interface-projection": {"get": "readInterfaceProjection"},
    "configuration": {"get": "readConfiguration"},
    "ns/{ns}/events": {"get": "followEvents"},
    "ns/{ns}/intakes": {"get": "listOwnIntakes"},
    "ns/{ns}/intakes/{request_id}": {"get": "readIntake"},
    "ns/{ns}/notes": {"get": "listNotes", "post": "takeIn"},
    "ns/{ns}/notes/batch": {"post": "takeInMany"},
    "ns/{ns}/notes/{note_id}": {"get": "readNote"},
    "ns/{ns}/notes/{note_id}/archive": {"post": "archive"},
    "ns/{ns}/notes/{note_id}/events": {"get": "readNoteEvents"},
    "ns/{ns}/notes/{note_id}/flags": {"post": "flag"},
    "ns/{ns}/notes/{note_id}/promote": {"post": "promote"},
    "ns/{ns}/notes/{note_id}/revoke": {"post": "revoke"},
    "ns/{ns}/notes/{note_id}/text": {"get": "review"},
    "ns/{ns}/recalls": {"post": "recall"},
    "ns/{ns}/recalls/{request_id}/resolve": {"post": "resolve"},
    "ns/{ns}/receipts/{request_id}": {"get": "readReceipt"},
    "ns/{ns}/transitions": {"post": "decideMany"},
}


def test_the_committed_description_is_current():
    assert (DOCS / "openapi.json").read_text(encoding="utf-8") == openapi.written(), (
        "run: lychd openapi --out docs/openapi.json"
    )


def test_the_committed_page_of_errors_is_current():
    assert (DOCS / "errors.md").read_text(encoding="utf-8") == errors_page.written(), (
        "run: lychd errors_page --out docs/errors.md"
    )


def test_every_code_stands_on_the_page_of_errors_once():
    page = errors_page.written()
    for kind in refusals.every():
        assert len(re.findall(rf"^\| `{kind.code}` \|", page, re.MULTILINE)) == 1


def test_these_addresses_are_described_and_no_other():
    found = {
        path.removeprefix("/api/v1/"): {method: told["operationId"] for method, told in methods.items()}
        for path, methods in description.document()["paths"].items()
    }
    assert found == ADDRESSES


def test_these_addresses_are_served_and_no_other():
    served = set()

    def walk(patterns, prefix):
        for one in patterns:
            here = prefix + str(one.pattern)
            if hasattr(one, "url_patterns"):
                walk(one.url_patterns, here)
            elif here.startswith("api/v1/"):
                served.add(re.sub(r"<(?:str|path):(\w+)>", r"{\1}", here).removeprefix("api/v1/"))

    walk(get_resolver(settings.ROOT_URLCONF).url_patterns, "")
    assert served == {*ADDRESSES, "schema", "docs"}


def test_each_refusal_is_described_with_the_problem_and_its_codes():
    known = {kind.code: kind.status for kind in refusals.every()}
    for path, methods in description.document()["paths"].items():
        for method, told in methods.items():
            errors = {status: said for status, said in told["responses"].items() if int(status) >= 400}
            assert {"400", "401", "403", "429", "500", "503"} <= set(errors), (path, method)
            for status, said in errors.items():
                (problem_schema,) = said["content"].values()
                reference, codes = problem_schema["schema"]["allOf"]
                assert reference == schema.PROBLEM
                assert {known[code] for code in codes["properties"]["code"]["enum"]} == {int(status)}


def test_enumerations_are_those_of_the_code():
    named = description.document()["components"]["schemas"]
    assert named["State"]["enum"] == list(State)
    assert named["Reason"]["enum"] == list(Reason)
    assert named["Problem"]["properties"]["code"]["enum"] == [kind.code for kind in refusals.every()]
    assert named["Intake"]["properties"]["text"]["maxLength"] == limits.NOTE_TEXT_MAX_CHARS
    assert named["Recall"]["properties"]["top_k"] == {
        "type": "integer",
        "minimum": limits.TOP_K_MIN,
        "maximum": limits.TOP_K_MAX,
        "default": limits.TOP_K_DEFAULT,
    }


def test_both_ways_to_sign_in_are_described():
    schemes = description.document()["components"]["securitySchemes"]
    assert schemes["token"]["scheme"] == "bearer"
    assert (schemes["session"]["in"], schemes["session"]["name"]) == ("cookie", settings.SESSION_COOKIE_NAME)
    for methods in description.document()["paths"].values():
        for told in methods.values():
            assert told["security"] == [{"token": []}, {"session": []}]


def resolved(described):
    """A described schema as plain JSON Schema: references followed, nullable spelled out."""
    if isinstance(described, list):
        return [resolved(item) for item in described]
    if not isinstance(described, dict):
        return described
    if "$ref" in described:
        return resolved(description.document()["components"]["schemas"][described["$ref"].rpartition("/")[2]])
    found = {name: resolved(value) for name, value in described.items() if name != "nullable"}
    return {"anyOf": [found, {"type": "null"}]} if described.get("nullable") else found


def conforms(response, name):
    told = description.document()["components"]["schemas"][name]
    Draft4Validator(resolved(told)).validate(response.json())


def test_answers_have_exactly_the_described_fields(api):
    """The shapes are closed and everything in them is required, so a field more or less fails here."""
    alice, bob, ivy = api("alice"), api("bob"), api("ivy")
    made = alice.post("notes", body(request_id="r1", retention={"retain_until": "2030-01-01T00:00:00Z"}))
    conforms(made, "Admitted")
    note = made.json()["note"]["id"]
    conforms(alice.post(f"notes/{note}/promote", {"expected_version": 1, "reason": "other"}), "Moved")
    later = alice.post("notes", body(source_revision="2", text="Roses want evening sun.")).json()["note"]["id"]
    conforms(alice.get(f"notes/{later}/text"), "Reviewed")
    conforms(alice.post(f"notes/{later}/promote", {"expected_version": 1}), "Moved")
    conforms(bob.post("recalls", {"request_id": "q1", "query": "roses", "char_budget": 10}), "Recalled")
    conforms(bob.post("recalls", {"request_id": "q2", "query": "roses"}), "Recalled")
    conforms(bob.post("recalls/q2/resolve"), "Resolved")
    conforms(bob.post(f"notes/{later}/flags", {"reason": "wrong"}), "Flagged")
    conforms(ivy.get("notes"), "Notes")
    conforms(ivy.get(f"notes/{note}"), "Note")
    conforms(ivy.get(f"notes/{note}/events"), "NoteEvents")
    conforms(ivy.get("events"), "Events")
    conforms(ivy.get("intakes/r1"), "IntakeRecord")
    conforms(ivy.get("receipts/q1"), "HistoricalReceipt")
    conforms(alice.get("intakes?mine"), "OwnIntakes")
    conforms(api("otto").get("/api/v1/configuration"), "Configuration")
    items = {"items": [body(source_key="tulips"), body(source_revision="2", text="Another.")]}
    conforms(alice.post("notes/batch", items), "AdmittedBatch")
    moves = {"items": [{"note_id": later, "action": "revoke", "expected_version": n} for n in (2, 2)]}
    conforms(alice.post("transitions", moves), "MovedBatch")
    refused = ivy.post("recalls", {"request_id": "q1", "query": "roses"})
    problem(refused, 403, "authority_refused")
    conforms(refused, "Problem")


def test_the_description_is_for_whoever_is_signed_in(api, anonymous, signed_in):
    problem(anonymous.get("/api/v1/schema"), 401, "unauthenticated")
    problem(anonymous.get("/api/v1/docs"), 401, "unauthenticated")
    assert api("charlie").get("/api/v1/schema").json() == description.document()
    assert signed_in(None).get("/api/v1/docs").status_code == 200


def test_in_development_the_description_is_open(settings, anonymous):
    settings.LYCHD_OPEN_DESCRIPTION = True
    assert anonymous.get("/api/v1/schema").status_code == 200
    assert anonymous.get("/api/v1/docs").status_code == 200


def test_the_page_of_the_description_runs_under_the_strict_policy(signed_in):
    answer = signed_in(None).get("/api/v1/docs", headers={"accept": "text/html,*/*;q=0.8"})
    page = answer.content.decode()
    assert answer["Content-Type"].startswith("text/html")
    assert "'unsafe-inline'" not in answer["Content-Security-Policy"]
    assert "style=" not in page
    assert "<style" not in page
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert 'data-schema="/api/v1/schema"' in page
    assert answer.cookies["csrftoken"].value


@pytest.mark.parametrize("file", ["swagger-ui.css", "swagger-ui-bundle.js"])
def test_what_the_page_loads_is_installed(file):
    from django.contrib.staticfiles import finders

    assert finders.find(f"drf_spectacular_sidecar/swagger-ui-dist/{file}")
    assert finders.find("lychd/api-docs.js")


def test_nobody_can_register_over_http(anonymous):
    for path in ("/api/v1/register", "/api/v1/principals", "/api/v1/tokens", "/api/v1/ns", "/api/v1/ns/new"):
        problem(anonymous.post(path), 404, "not_found")


def test_the_helper_follows_addresses_below_a_namespace():
    assert Api(ns="shed").at("notes") == "/api/v1/ns/shed/notes"
