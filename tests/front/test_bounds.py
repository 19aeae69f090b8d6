"""Bodies that are too large or too slow are refused before the application has them, whatever they announce."""

import asyncio
import json
from typing import Any

import pytest

from archive import limits
from lychd import bounds
from lychd.bounds import Bounded, Kind, Line, kind_of, limit_of

NOTES = "/api/v1/ns/garden/notes"
TOKEN = (b"authorization", b"Bearer lychd_" + b"a" * 43)
SESSION = (b"cookie", b"csrftoken=x; sessionid=" + b"a" * 32)


def whole() -> Any:
    """The receiving end of a request with an empty body, whose caller stays."""
    given = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        for message in given:
            return message
        return await asyncio.Event().wait()

    return receive


class Application:
    """Reads a body to its end and says that it did."""

    def __init__(self) -> None:
        self.received = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            self.received += len(message.get("body", b""))
            if not message.get("more_body"):
                break
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def exchange(
    parts: list[bytes],
    headers: dict[bytes, bytes] | None = None,
    path: str = NOTES,
    *,
    stalls: bool = False,
    known: tuple[bytes, bytes] | None = TOKEN,
) -> tuple[int, dict[str, Any], dict[bytes, bytes], Application, int]:
    """Send a body in parts; return the status, the problem, the headers, the application, and the parts taken."""
    application = Application()
    taken = 0
    sent: list[Any] = []

    async def receive() -> Any:
        nonlocal taken
        if taken == len(parts):
            if stalls:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}
        taken += 1
        return {"type": "http.request", "body": parts[taken - 1], "more_body": stalls or taken < len(parts)}

    async def send(message: Any) -> None:
        sent.append(message)

    told = [*((headers or {}).items()), *([known] if known else [])]
    scope = {"type": "http", "method": "POST", "path": path, "headers": told}
    asyncio.run(Bounded(application, seconds=0.05 if stalls else 30)(scope, receive, send))
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], json.loads(content or b"{}"), dict(sent[0]["headers"]), application, taken


def test_a_body_within_its_bound_passes():
    status, _, _, application, _ = exchange([b"a" * limits.BODY_MAX_BYTES])
    assert (status, application.received) == (200, limits.BODY_MAX_BYTES)


def test_b51_a_body_that_announces_too_much_is_refused_unread():
    announced = {b"content-length": b"100000000", b"x-request-id": b"r-1"}
    status, told, headers, application, _ = exchange([b"a"], announced)
    assert (status, told["code"], application.received) == (413, "body_too_large", 0)
    assert told["correlation_id"] == "r-1" == headers[b"x-request-id"].decode()
    assert headers[b"content-type"] == b"application/problem+json"
    assert headers[b"cache-control"] == b"no-store"
    assert headers[b"connection"] == b"close"


@pytest.mark.parametrize("length", [b"9" * 5_000, b"18446744073709551616"])
def test_b51_an_absurd_length_is_too_large(length):
    assert exchange([b"a"], {b"content-length": length})[0] == 413


def test_b51_a_body_in_chunks_without_a_length_is_cut_at_its_bound():
    status, told, _, application, taken = exchange([b"a" * 65_536] * 1_600)
    assert (status, told["code"]) == (413, "body_too_large")
    assert application.received == 0
    # The rest is read and thrown away up to a bound, so that the sender sees why.
    assert taken == (limits.BODY_MAX_BYTES + bounds.DRAIN_BYTES) // 65_536 + 1


def test_b51_a_body_that_lies_about_its_length_is_cut_too():
    assert exchange([b"a" * 65_536] * 100, {b"content-length": b"10"})[0] == 413


def test_b51_a_body_that_dawdles_is_given_up():
    status, told, headers, _, taken = exchange([b"{"], stalls=True)
    assert (status, told["code"], taken) == (400, "invalid_request", 1)
    assert headers[b"connection"] == b"close"


def test_only_batches_may_be_large():
    assert limit_of(NOTES, Kind.API) == limits.BODY_MAX_BYTES
    assert limit_of(NOTES + "/batch", Kind.API) == limits.BATCH_BODY_MAX_BYTES
    assert limit_of("/api/v1/ns/garden/transitions", Kind.API) == limits.BATCH_BODY_MAX_BYTES
    assert limit_of("/api/v1/ns/garden/recalls/batch", Kind.API) == limits.BODY_MAX_BYTES
    assert limit_of("/api/nowhere", Kind.API) == limits.BODY_MAX_BYTES
    assert limit_of("/ns/garden/review", Kind.PAGES) == limits.BATCH_BODY_MAX_BYTES
    assert limit_of(NOTES + "/batch", Kind.STRANGER) == limit_of("/", Kind.SIGN_IN) == bounds.STRANGER_BODY_BYTES


@pytest.mark.parametrize(
    ("method", "path", "header", "kind"),
    [
        ("POST", NOTES, TOKEN, Kind.API),
        ("POST", NOTES, SESSION, Kind.API),
        ("GET", "/", SESSION, Kind.PAGES),
        ("GET", "/", TOKEN, Kind.PAGES),
        ("POST", NOTES, (b"authorization", b"Bearer lychd_short"), Kind.STRANGER),
        ("POST", NOTES, (b"cookie", b"sessionid=guess"), Kind.STRANGER),
        ("GET", "/", (b"cookie", b"xsessionid=" + b"a" * 32), Kind.STRANGER),
        ("GET", "/sign-in", (b"accept", b"*/*"), Kind.STRANGER),
        ("POST", "/sign-in", SESSION, Kind.SIGN_IN),
    ],
)
def test_who_asks_is_told_by_address_and_form(method, path, header, kind):
    assert kind_of({"method": method, "path": path, "headers": [header]}) is kind


def test_a_stranger_with_a_large_body_is_asked_for_a_token_where_one_would_help():
    large = [b"a" * bounds.STRANGER_BODY_BYTES, b"a"]
    status, told, headers, application, _ = exchange(large, known=None)
    assert (status, told["code"], headers[b"www-authenticate"]) == (401, "unauthenticated", b"Bearer")
    assert application.received == 0
    assert exchange(large, path="/sign-in", known=None)[0] == 413
    assert exchange(large)[0] == 200


def test_all_bodies_together_have_a_bound_and_strangers_little_of_it():
    async def crowd(known: tuple[bytes, bytes] | None, part: bytes, count: int) -> list[int]:
        statuses: list[int] = []
        bounded = Bounded(Application(), seconds=0.3, bodies=1_000_000)

        async def one() -> None:
            given = iter([part])

            async def receive() -> Any:
                for body in given:
                    return {"type": "http.request", "body": body, "more_body": True}
                return await asyncio.Event().wait()

            async def send(message: Any) -> None:
                statuses.extend([message["status"]] if "status" in message else [])

            scope = {"type": "http", "method": "POST", "path": NOTES, "headers": [known] if known else []}
            await bounded(scope, receive, send)

        everybody = [asyncio.ensure_future(one()) for _ in range(count)]
        await asyncio.wait(everybody, timeout=0.1)
        held = statuses.copy()
        for each in everybody:
            each.cancel()
        await asyncio.gather(*everybody, return_exceptions=True)
        # Whoever is gone has given back what they held.
        assert bounded._bodies._now == bounded._strangers_bodies._now == 0
        return held

    assert asyncio.run(crowd(TOKEN, b"a" * 100_000, 12)) == [429, 429]
    strangers = bounds.STRANGERS_BODIES_BYTES
    assert strangers < bounds.BODIES_BYTES / 4
    assert asyncio.run(crowd(None, b"a" * 10_000, 101)) == [429]


def test_a_line_has_an_end_and_whoever_hangs_up_leaves_it():
    """A hundred who sign in and leave again must not have their passwords hashed one after the other."""

    async def crowd() -> tuple[list[int], int]:
        statuses: list[int] = []
        worked = 0
        first = asyncio.Event()

        async def application(scope: Any, receive: Any, send: Any) -> None:
            nonlocal worked
            await receive()
            worked += 1
            await first.wait()

        lines = {kind: Line(1, 2) for kind in Kind}
        bounded = Bounded(application, lines=lines)
        gone = asyncio.Event()

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        async def one() -> None:
            given = iter([{"type": "http.request", "body": b"", "more_body": False}])

            async def receive() -> Any:
                for message in given:
                    return message
                await gone.wait()
                return {"type": "http.disconnect"}

            scope = {"type": "http", "method": "POST", "path": bounds.SIGN_IN, "headers": []}
            await bounded(scope, receive, send)

        everybody = [asyncio.ensure_future(one()) for _ in range(6)]
        await asyncio.sleep(0)
        while len(statuses) < 3:
            await asyncio.sleep(0)
        gone.set()
        while sum(each.done() for each in everybody) < 5:
            await asyncio.sleep(0)
        first.set()
        await asyncio.gather(*everybody)
        return statuses, worked

    assert asyncio.run(asyncio.wait_for(crowd(), 30)) == ([429, 429, 429], 1)


def test_a_crowd_of_one_kind_keeps_nobody_of_another_waiting():
    async def crowd() -> bool:
        stays = asyncio.Event()

        async def application(scope: Any, receive: Any, send: Any) -> None:
            if kind_of(scope) is Kind.SIGN_IN:
                await stays.wait()

        async def send(message: Any) -> None: ...

        bounded = Bounded(application)
        scope = {"type": "http", "method": "POST", "path": bounds.SIGN_IN, "headers": []}
        signing_in = [asyncio.ensure_future(bounded(scope, whole(), send)) for _ in range(10)]
        await asyncio.sleep(0)
        async with asyncio.timeout(30):
            await bounded({"type": "http", "method": "GET", "path": NOTES, "headers": [TOKEN]}, whole(), send)
        stays.set()
        await asyncio.gather(*signing_in)
        return True

    assert asyncio.run(crowd())


def test_a_reader_that_does_not_read_holds_no_place():
    async def crowd() -> int:
        reads = asyncio.Event()
        worked = 0

        async def application(scope: Any, receive: Any, send: Any) -> None:
            nonlocal worked
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            worked += 1

        async def send(message: Any) -> None:
            await reads.wait()

        bounded = Bounded(application, lines={kind: Line(1, 5) for kind in Kind})
        scope = {"type": "http", "method": "GET", "path": NOTES, "headers": [TOKEN]}
        readers = [asyncio.ensure_future(bounded(scope, whole(), send)) for _ in range(5)]
        async with asyncio.timeout(30):
            while worked < 5:
                await asyncio.sleep(0)
        reads.set()
        await asyncio.gather(*readers)
        return worked

    assert asyncio.run(crowd()) == 5


def test_what_is_no_http_passes():
    seen = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(Bounded(application)({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]


def test_only_so_many_requests_are_worked_on_at_once_and_every_one_is():
    """A hundred callers at once would take every connection that the database has."""
    inside, most, answered = 0, 0, 0

    async def application(scope: Any, receive: Any, send: Any) -> None:
        nonlocal inside, most, answered
        await receive()
        inside += 1
        most = max(most, inside)
        for _ in range(5):
            await asyncio.sleep(0)
        inside -= 1
        answered += 1

    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    async def crowd() -> None:
        bounded = Bounded(application, lines={kind: Line(3, 100) for kind in Kind})
        scope = {"type": "http", "method": "POST", "path": NOTES, "headers": [TOKEN]}
        # Whoever is still sending takes no place.
        dawdling = [asyncio.create_task(bounded(scope, never, never)) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.gather(*(bounded(scope, whole(), never) for _ in range(20)))
        for one in dawdling:
            one.cancel()
        await asyncio.gather(*dawdling, return_exceptions=True)

    asyncio.run(crowd())

    assert (most, answered) == (3, 20)
