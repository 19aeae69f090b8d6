"""Bodies that are too large or too slow are refused before the application has them, whatever they announce."""

import asyncio
import json
from typing import Any

import pytest

from archive import limits
from lychd.middleware import BoundedBodies, limit_of

NOTES = "/api/v1/ns/garden/notes"


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
    parts: list[bytes], headers: dict[bytes, bytes] | None = None, path: str = NOTES, *, stalls: bool = False
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

    scope = {"type": "http", "path": path, "headers": list((headers or {}).items())}
    asyncio.run(BoundedBodies(application, seconds=0.05 if stalls else 30)(scope, receive, send))
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], json.loads(content or b"{}"), dict(sent[0]["headers"]), application, taken


def test_a_body_within_its_bound_passes():
    status, _, _, application, _ = exchange([b"a" * limits.BODY_MAX_BYTES])
    assert (status, application.received) == (200, limits.BODY_MAX_BYTES)


def test_b51_a_body_that_announces_too_much_is_refused_unread():
    announced = {b"content-length": b"100000000", b"x-request-id": b"r-1"}
    status, told, headers, _, taken = exchange([b"a"], announced)
    assert (status, told["code"], taken) == (413, "body_too_large", 0)
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
    assert application.received <= limits.BODY_MAX_BYTES
    assert taken == limits.BODY_MAX_BYTES // 65_536 + 1


def test_b51_a_body_that_lies_about_its_length_is_cut_too():
    assert exchange([b"a" * 65_536] * 100, {b"content-length": b"10"})[0] == 413


def test_b51_a_body_that_dawdles_is_given_up():
    status, told, headers, _, taken = exchange([b"{"], stalls=True)
    assert (status, told["code"], taken) == (400, "invalid_request", 1)
    assert headers[b"connection"] == b"close"


def test_only_batches_may_be_large():
    assert limit_of(NOTES) == limits.BODY_MAX_BYTES
    assert limit_of(NOTES + "/batch") == limits.BATCH_BODY_MAX_BYTES
    assert limit_of("/api/v1/ns/garden/transitions") == limits.BATCH_BODY_MAX_BYTES
    assert limit_of("/api/v1/ns/garden/recalls/batch") == limits.BODY_MAX_BYTES
    assert limit_of("/api/nowhere") == limits.BODY_MAX_BYTES


def test_what_is_no_http_passes():
    seen = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(BoundedBodies(application)({"type": "lifespan"}, None, None))
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

    async def whole() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    async def crowd() -> None:
        bounded = BoundedBodies(application, at_once=3)
        scope = {"type": "http", "path": NOTES, "headers": []}
        # Whoever is still sending takes no place.
        dawdling = [asyncio.create_task(bounded(scope, never, never)) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.gather(*(bounded(scope, whole, never) for _ in range(20)))
        for one in dawdling:
            one.cancel()
        await asyncio.gather(*dawdling, return_exceptions=True)

    asyncio.run(crowd())

    assert (most, answered) == (3, 20)
