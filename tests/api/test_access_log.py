"""One line a request, with its pattern, whoever answers it; and nothing in any line that a caller typed."""

import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.urls import get_resolver

from archive import limits
from archive.models import Principal
from inspection import reads
from lychd import access_log, logs, settings
from lychd.access_log import AccessLog
from lychd.bounds import Bounded
from tests.api.conftest import body

TYPED = "words-of-a-note"
Lines = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    """The service's own log, with its own filters; what one event says, or all."""
    monkeypatch.setattr(access_log, "_repeats", access_log._Repeats())
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.formatter())
    root = logging.getLogger()
    root.addHandler(handler)

    def said(event: str | None = None) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in written.getvalue().splitlines()]
        return [line for line in found if event is None or line["event"] == event]

    yield said
    root.removeHandler(handler)


def number_of(subject: str) -> int:
    return Principal.objects.get(subject=subject).pk


def test_an_answered_request_leaves_one_line(api, lines):
    answer = api("wanda").post("notes", body(source_key=TYPED), x_request_id="c-1")
    assert answer.status_code == 201
    (line,) = lines("request")
    assert line["route"] == "/api/v1/ns/<str:ns>/notes"
    assert (line["method"], line["status"], line["level"]) == ("POST", 201, "info")
    assert (line["correlation_id"], line["principal"]) == ("c-1", number_of("wanda"))
    assert line["ms"] > 0
    assert "wanda" not in json.dumps(line)


def test_the_same_for_a_page_and_for_a_session(signed_in, lines):
    browser = signed_in("ivy")
    browser.get("/ns/garden/notes", {"source": TYPED})
    browser.get("/api/v1/ns/garden/notes", {"source_key": TYPED})
    page, address = lines("request")
    assert (page["route"], page["status"]) == ("/ns/<key:ns>/notes", 200)
    assert address["route"] == "/api/v1/ns/<str:ns>/notes"
    assert {page["principal"], address["principal"]} == {number_of("ivy")}


def test_who_acted_before_is_not_named_in_the_next_line(api, anonymous, lines):
    api("ivy").get("notes")
    anonymous.get("notes")
    assert [(line["status"], line["principal"]) for line in lines("request")] == [(200, number_of("ivy")), (401, None)]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", TYPED.upper()])
@pytest.mark.parametrize(
    ("path", "route"),
    [
        (f"/api/v1/ns/garden/notes/{TYPED}", "/api/v1/ns/<str:ns>/notes/<str:note_id>"),
        (f"/api/v1/ns/garden/{TYPED}", "unresolved"),
        (f"/api/{TYPED}", "unresolved"),
        (f"/{TYPED}/{TYPED}", "unresolved"),
        (f"/admin/{TYPED}/", "unresolved"),
        (f"/static/{TYPED}.css", "static"),
        (f"/ns/garden/notes/{TYPED}", "unresolved"),
    ],
)
def test_no_line_says_what_a_caller_typed(api, lines, method, path, route):
    """On 4xx Django's own lines name the path as it came."""
    api("ivy").raw(method, path, b"" if method in {"GET", "HEAD"} else b"{}")
    (line,) = lines("request")
    assert line["route"] == route
    assert line["method"] == ("other" if method == TYPED.upper() else method)
    assert TYPED not in json.dumps(lines()).lower()


def test_no_line_says_the_host_or_the_cookie_that_a_caller_typed(db, lines):
    stranger = Client(raise_request_exception=False, headers={"cookie": f"sessionid={TYPED}"})
    assert stranger.get("/api/v1/configuration", headers={"host": f"{TYPED}.example"}).status_code == 400
    assert stranger.get("/sign-in", headers={"host": f"{TYPED}.example"}).status_code == 400
    assert [line["status"] for line in lines("request")] == [400, 400]
    assert TYPED not in json.dumps(lines())


@pytest.mark.parametrize("name", logs.QUOTING)
def test_what_quotes_a_caller_says_its_name_alone(lines, name):
    """Whatever such a logger is given, in whichever part of a record."""
    error = SystemError(TYPED)
    for spoken in (name, f"{name}.SomethingOfItsOwn"):
        logging.getLogger(spoken).error("words-of-a-note: %s", TYPED, exc_info=error, extra={"request": TYPED})
    assert TYPED not in json.dumps(lines())


def test_a_page_that_fails_leaves_where_it_failed(signed_in, lines, monkeypatch):
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError(TYPED)

    monkeypatch.setattr(reads, "overview", fail)
    browser = signed_in("ivy")
    browser.raise_request_exception = False
    assert browser.get("/ns/garden").status_code == 500
    (line,) = lines("request")
    assert (line["status"], line["level"]) == (500, "error")
    (failure,) = lines("from django.request")
    assert failure["error"] == "RuntimeError"
    assert any(frame.startswith("fail:") for frame in failure["frames"])
    assert TYPED not in json.dumps(lines())


def test_every_route_is_a_pattern_or_a_fixed_word():
    """No pattern of the service takes an address whole without being called unresolved."""
    routes = [access_log._route(match) for match in map(_any_match, _patterns(get_resolver().url_patterns, ""))]
    assert len(routes) > 60
    assert all(route == access_log.UNRESOLVED or ".*" not in route for route in routes)


class _any_match:
    def __init__(self, route: str) -> None:
        self.route = route


def _patterns(patterns: Any, before: str) -> Iterator[str]:
    for one in patterns:
        route = before + str(one.pattern)
        if hasattr(one, "url_patterns"):
            yield from _patterns(one.url_patterns, route)
        else:
            yield route


def test_a_database_that_is_gone_says_why_in_the_line_and_in_the_answer(api, lines):
    caller = api("ivy")

    def full(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> None:
        raise OperationalError(TYPED) from psycopg.errors.DiskFull(TYPED)

    with connection.execute_wrapper(full):
        answer = caller.get("notes", x_request_id="c-2")
    told = answer.json()
    assert (answer.status_code, told["code"]) == (503, "storage_unavailable")
    assert told["title"] == "The disk of the database is full"
    assert told["detail"].startswith("Nothing was decided. Make room on the disk")
    assert answer["Retry-After"] == "30"
    (line,) = lines("request")
    assert (line["status"], line["code"], line["sqlstate"]) == (503, "storage_unavailable", "53100")
    assert (line["correlation_id"], line["level"]) == ("c-2", "warning")
    assert TYPED not in json.dumps(lines())


def test_the_same_for_a_page(signed_in, lines):
    browser = signed_in("ivy")

    def crowded(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> None:
        raise OperationalError(TYPED) from psycopg.errors.TooManyConnections(TYPED)

    with connection.execute_wrapper(crowded):
        answer = browser.get("/ns/garden")
    assert answer.status_code == 503
    assert "The database answers: too many connections" in answer.content.decode()
    assert answer["Retry-After"] == "2"
    (line,) = lines("request")
    assert (line["code"], line["sqlstate"]) == ("storage_unavailable", "53300")


def test_probes_that_are_well_leave_no_line(db, client, lines):
    client.get("/healthz")
    client.get("/readyz")
    assert lines("request") == []
    client.post("/healthz")
    assert [(line["route"], line["status"]) for line in lines("request")] == [("/healthz", 405)]


# --- what an act leaves ----------------------------------------------------------------------------------------------


def test_an_act_that_was_allowed_leaves_its_digest(api, lines):
    api("wanda").post("notes", body(), x_request_id="c-3")
    (line,) = lines("authority")
    assert (line["point"], line["allowed"], line["action"], line["namespace"]) == ("A2", True, "intake", "garden")
    assert (line["correlation_id"], line["principal"]) == ("c-3", number_of("wanda"))
    assert len(line["object_digest"]) == 64


def test_a_batch_leaves_every_digest_in_few_lines(api, lines):
    items = [body(source_key=f"rose-{number}", text=f"Rose {number}.") for number in range(120)]
    assert api("wanda").post("notes/batch", {"items": items}).status_code == 200
    found = lines("authority")
    assert [len(line["object_digest"]) for line in found] == [50, 50, 20]
    assert len({digest for line in found for digest in line["object_digest"]}) == 120


def test_the_refused_items_of_a_batch_are_counted_in_one_line(api, lines):
    first = [body(source_key=f"rose-{number}", request_id=f"r-{number}") for number in range(60)]
    wanda = api("wanda")
    assert wanda.post("notes/batch", {"items": first}).status_code == 200
    changed = [{**one, "text": "Another text."} for one in first]
    assert wanda.post("notes/batch", {"items": [*changed, body(source_key="new")]}).status_code == 200
    (line,) = lines("items refused")
    assert line["codes"] == {"request_conflict": 60}
    assert (line["action"], line["namespace"], line["level"]) == ("intake", "garden", "info")


def test_items_that_the_database_refused_say_why(api, lines):
    """A batch of which a slice is done answers 200, so its request's line alone would hide the rest."""
    items = [body(source_key=f"rose-{number}") for number in range(120)]
    done = 0

    def full(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        nonlocal done
        if str(sql).lstrip().startswith("INSERT INTO archive_note"):
            done += 1
            if done > 1:
                raise OperationalError(TYPED) from psycopg.errors.DiskFull(TYPED)
        return execute(sql, params, many, context)

    wanda = api("wanda")
    with connection.execute_wrapper(full):
        answer = wanda.post("notes/batch", {"items": items})
    assert answer.status_code == 200
    (line,) = lines("items refused")
    assert line["codes"] == {"storage_unavailable": 70}
    assert (line["sqlstates"], line["level"]) == (["53100"], "warning")


# --- what never reaches Django ---------------------------------------------------------------------------------------


def through_rings(parts: list[bytes], *, headers: dict[bytes, bytes], path: str, hangs_up: bool = False) -> None:
    """Send one request through the rings outside of Django."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        if hangs_up:
            raise asyncio.CancelledError

    waiting = list(parts)

    async def receive() -> Any:
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def send(message: Any) -> None:
        pass

    token = (b"authorization", b"Bearer lychd_" + b"a" * 43)
    scope = {"type": "http", "method": "POST", "path": path, "headers": [token, *headers.items()]}
    asyncio.run(AccessLog(Bounded(application))(scope, receive, send))


def test_what_is_refused_before_django_sees_it_has_its_line(lines):
    announced = {b"content-length": b"100000000", b"x-request-id": b"c-4"}
    through_rings([b"a"], headers=announced, path="/api/v1/ns/garden/notes")
    through_rings([b"a" * limits.BODY_MAX_BYTES, b"a"], headers={}, path=f"/api/v1/ns/garden/{TYPED}")
    first, second = lines("request")
    assert (first["route"], first["status"], first["code"]) == ("/api/v1/ns/<str:ns>/notes", 413, "body_too_large")
    assert first["correlation_id"] == "c-4"
    assert (second["route"], second["status"]) == ("unresolved", 413)
    assert TYPED not in json.dumps(lines())


def test_whoever_hangs_up_has_a_line_too(lines):
    with pytest.raises(asyncio.CancelledError):
        through_rings([b""], headers={}, path="/api/v1/ns/garden/notes", hangs_up=True)
    assert [line["status"] for line in lines("request")] == [access_log.HUNG_UP]


def test_strangers_fill_no_log(anonymous, api, lines, monkeypatch):
    """Of what strangers are refused, so many lines a minute; the others are a number in a line."""
    monkeypatch.setattr(access_log, "_repeats", access_log._Repeats(seconds=3600, most=3))
    for _ in range(10):
        anonymous.get("notes")
    for _ in range(5):
        api("charlie").get("notes")
    assert [line["status"] for line in lines("request")] == [401] * 3 + [403] * 5
    access_log._repeats._seconds = 0
    anonymous.get("receipts")
    (counted,) = lines("requests of strangers, not told one by one")
    assert (counted["route"], counted["status"], counted["repeated"]) == ("/api/v1/ns/<str:ns>/notes", 401, 7)


def test_nor_with_what_they_are_given(client, lines, monkeypatch, db):
    """A file that is asked for over and over would fill it as well."""
    monkeypatch.setattr(access_log, "_repeats", access_log._Repeats(seconds=3600, most=3))
    for _ in range(10):
        assert client.get("/sign-in").status_code == 200
    assert [line["status"] for line in lines("request")] == [200] * 3


def test_the_rings_are_in_their_order():
    from lychd.asgi import application

    assert isinstance(application, AccessLog), "nothing may answer outside of the log"
    assert settings.MIDDLEWARE[0] == "lychd.middleware.Correlation"
