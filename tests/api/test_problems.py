"""The form of every no, the correlation id, the probes, and the courtesy limit."""

import io
import json
import logging
import uuid

import pytest
from django.core.cache import cache
from django.db import DatabaseError, OperationalError, connection
from django.test import Client, RequestFactory
from django.urls import get_resolver

from archive import refusals
from archive.api import throttles
from archive.refusals import Fault
from archive.transactions import DatabaseFault
from inspection import reads
from lychd import health, logs, problems
from tests import cast
from tests.api.conftest import body, nothing_added, problem, same_but_for_the_id


@pytest.mark.parametrize("kind", list(refusals.every()), ids=lambda kind: kind.code)
def test_every_refusal_has_its_document(kind):
    request = RequestFactory().get("/api/v1/x")
    request.correlation_id = "c-1"
    answer = problems.answer(request, kind([Fault("/a", "b")], extra={"items": []}))
    told = json.loads(answer.content)
    assert answer.status_code == kind.status == told["status"]
    assert told["type"] == f"urn:lychd:problem:{kind.code}"
    assert told["errors"] == [{"pointer": "/a", "message": "b"}]
    assert told["items"] == []
    assert told["correlation_id"] == "c-1"
    assert ("WWW-Authenticate" in answer) == (kind.status == 401)
    assert ("Retry-After" in answer) == (kind.status in {429, 503, 504})


@pytest.mark.parametrize("kind", list(refusals.every()), ids=lambda kind: kind.code)
def test_a_refusal_that_a_view_raises_is_its_answer(api, monkeypatch, kind):
    def refuse(*args: object, **kwargs: object) -> None:
        raise kind

    monkeypatch.setattr(reads, "list_notes", refuse)
    problem(api("ivy").get("notes"), kind.status, kind.code)


@pytest.mark.parametrize("given", ["a", "A-b_c.9", "x" * 64])
def test_a_correlation_id_of_the_right_form_is_kept(api, given):
    answer = api("ivy").get("notes", x_request_id=given)
    assert answer["X-Request-ID"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a,b", "<script>", "\u00e9", "a\n"])
def test_any_other_is_replaced(api, given):
    answer = api("ivy").get("notes", x_request_id=given)
    assert uuid.UUID(answer["X-Request-ID"]).version == 4


@pytest.fixture
def logged():
    """What the service writes to its log, through its own formatter."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.formatter())
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


def test_the_log_has_the_same_id(api, logged):
    api("ivy").post("notes", body(), x_request_id="look-for-me")
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert any(line.get("correlation_id") == "look-for-me" and line["event"] == "authority" for line in lines)


def test_no_answer_may_be_kept(api, anonymous):
    for answer in (api("ivy").get("notes"), anonymous.get("notes"), anonymous.get("/healthz"), anonymous.get("/api/x")):
        assert answer["Cache-Control"] == "no-store"


SECRET = "the words of a note"


@pytest.mark.parametrize("error", [RuntimeError(SECRET), DatabaseFault("23514", "x"), DatabaseError(SECRET)])
def test_what_nobody_mapped_is_internal_and_quotes_nothing(api, monkeypatch, caplog, logged, error):
    def fail(*args: object, **kwargs: object) -> None:
        held = SECRET  # noqa: F841 - a local value that no log may show
        raise error

    monkeypatch.setattr(reads, "list_notes", fail)
    told = problem(api("ivy").get("notes"), 500, "internal")
    assert SECRET not in json.dumps(told)
    assert SECRET not in caplog.text
    assert SECRET not in logged.getvalue()
    assert told["correlation_id"] in logged.getvalue()
    assert "fail:" in logged.getvalue()


def test_a_database_that_is_lost_outside_a_transaction_is_unavailable(api, monkeypatch):
    def lose(*args: object, **kwargs: object) -> None:
        raise OperationalError(SECRET)

    monkeypatch.setattr(reads, "list_notes", lose)
    assert SECRET not in json.dumps(problem(api("ivy").get("notes"), 503, "storage_unavailable"))


def test_a_database_that_is_lost_at_the_door_is_unavailable(api):
    caller = api("ivy")

    def lose(execute, sql, params, many, context):
        raise OperationalError(SECRET)

    with connection.execute_wrapper(lose):
        answer = caller.get("notes")
    problem(answer, 503, "storage_unavailable")


def test_a_session_that_cannot_be_read_is_unavailable(signed_in):
    browser = signed_in("ivy")

    def lose(execute, sql, params, many, context):
        raise OperationalError(SECRET)

    with connection.execute_wrapper(lose):
        answer = browser.get("/api/v1/ns/garden/notes")
    problem(answer, 503, "storage_unavailable")


def test_an_unknown_host_is_a_problem_too(db):
    answer = Client(raise_request_exception=False).get("/api/v1/configuration", headers={"host": "elsewhere.example"})
    told = json.loads(answer.content)
    assert (answer.status_code, told["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/api/v1/ns/garden/notes/", 404, "not_found"),
        ("POST", "/api/v1/ns/garden/note", 404, "not_found"),
        ("DELETE", "/api/v1/nowhere", 404, "not_found"),
        ("POST", "/api", 404, "not_found"),
        ("PUT", "/api/v1/ns/garden/notes", 405, "method_not_allowed"),
        ("DELETE", "/api/v1/ns/garden/notes/batch", 405, "method_not_allowed"),
        ("POST", "/healthz", 405, "method_not_allowed"),
        ("PUT", "/readyz", 405, "method_not_allowed"),
    ],
)
def test_a_wrong_address_or_method_is_told_as_one(api, method, path, status, code):
    """No form of ours is sent there, so it lacks nothing but the right address."""
    caller = api("ivy")
    caller.client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    problem(caller.raw(method, path, b"{}"), status, code)


def test_a_form_that_is_sent_to_no_page_meets_no_page(db):
    assert Client(enforce_csrf_checks=True).post("/nowhere-at-all", {"a": "b"}).status_code == 404


def test_no_address_of_programs_asks_for_a_form_token():
    """A view that asks for one does it itself, of a session alone."""
    found = dict(_callbacks(get_resolver().url_patterns, ""))
    programs = {
        route: view for route, view in found.items() if route.lstrip("^").startswith(("api", "healthz", "readyz"))
    }
    assert len(programs) >= 30
    assert [route for route, view in programs.items() if not getattr(view, "csrf_exempt", False)] == []


def _callbacks(patterns, before):
    for one in patterns:
        route = before + str(one.pattern)
        if hasattr(one, "url_patterns"):
            yield from _callbacks(one.url_patterns, route)
        else:
            yield route, one.callback


def test_pages_keep_their_own_answers(db):
    assert not problems.speaks_json(RequestFactory().get("/apiary"))
    answer = Client(raise_request_exception=False).get("/nowhere-at-all")
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")


def test_a_refusal_is_equal_to_the_byte_whatever_exists(api, alice):
    note = cast.admitted(alice)
    charlie = api("charlie")
    nothing = "7d444840-9dc0-41d1-b245-5ffdce74fad2"
    answers = [
        charlie.get(f"notes/{note.id}"),
        charlie.get(f"notes/{nothing}"),
        charlie.get("receipts/q"),
        charlie.post("notes", body()),
        charlie.elsewhere("shed").get("notes"),
        charlie.elsewhere("..").get("notes"),
        charlie.elsewhere("shed").post("recalls", {"request_id": "q", "query": "roses"}),
    ]
    for answer in answers:
        problem(answer, 403, "authority_refused")
        assert same_but_for_the_id(answer, answers[0])


def test_a_fault_in_a_body_tells_nothing_of_a_namespace(api):
    charlie = api("charlie")
    here, there = charlie.post("notes", {}), charlie.elsewhere("shed").post("notes", {})
    problem(here, 400, "invalid_request")
    assert same_but_for_the_id(here, there)


# --- probes ----------------------------------------------------------------------------------------------------------


def test_the_process_is_alive_without_a_database(monkeypatch, client):
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_the_service_is_ready_when_its_database_is(db, client):
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["checks"] == {"database": "ok", "migrations": "ok", "roles": "ok", "disk": "ok"}


@pytest.mark.parametrize("missing", ["database", "migrations", "roles", "disk"])
def test_it_is_not_ready_when_one_of_four_is_missing(db, client, monkeypatch, missing):
    monkeypatch.setitem(health.CONDITIONS, missing, lambda: False)
    told = problem(client.get("/readyz"), 503, "storage_unavailable")
    assert told["checks"][missing] == "failed"


def test_it_is_not_ready_when_the_database_does_not_answer(db, client, monkeypatch):
    def lose() -> bool:
        raise OperationalError(SECRET)

    monkeypatch.setitem(health.CONDITIONS, "database", lose)
    assert SECRET not in json.dumps(problem(client.get("/readyz"), 503, "storage_unavailable"))


@pytest.mark.parametrize("probe", ["/healthz", "/readyz"])
def test_a_probe_is_only_read(client, probe):
    answer = client.post(probe)
    problem(answer, 405, "method_not_allowed")
    assert answer["Allow"] == "GET, HEAD"


# --- the courtesy limit ----------------------------------------------------------------------------------------------


@pytest.fixture
def slow(settings, monkeypatch):
    """Two of each a minute, ten seconds into one that does not end."""
    settings.LYCHD_THROTTLES = {"reads": 2, "writes": 2, "recalls": 2}
    monkeypatch.setattr(throttles.CourtesyLimit, "clock", staticmethod(lambda: 60_000.0 + 10))


def test_too_often_is_told_when_to_come_back(api, slow):
    ivy = api("ivy")
    assert [ivy.get("notes").status_code for _ in range(2)] == [200, 200]
    answer = ivy.get("notes")
    problem(answer, 429, "limited")
    assert answer["Retry-After"] == "50"


def test_each_caller_and_each_kind_of_act_is_counted_alone(api, slow):
    alice, wanda = api("alice"), api("wanda")
    for _ in range(2):
        assert alice.post("notes", body(source_key=cast.fresh())).status_code == 201
    with nothing_added():
        problem(alice.post("notes", body()), 429, "limited")
    assert alice.post("recalls", {"request_id": "q1", "query": "roses"}).status_code == 201
    assert wanda.post("notes", body(source_key="wanda")).status_code == 201


def test_a_new_minute_begins_anew(api, slow, monkeypatch):
    ivy = api("ivy")
    for _ in range(3):
        ivy.get("notes")
    monkeypatch.setattr(throttles.CourtesyLimit, "clock", staticmethod(lambda: 60_060.0))
    assert ivy.get("notes").status_code == 200


def test_a_lost_cache_lets_requests_through(api, slow, monkeypatch):
    def lose(*args: object, **kwargs: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(cache, "add", lose)
    ivy = api("ivy")
    assert [ivy.get("notes").status_code for _ in range(4)] == [200] * 4
