"""When more come than there is room for, a stranger asks once a connection, and whoever is known goes on.

A stranger who asks again at once never keeps us waiting, so nothing else would make room for who is left in the line.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.server import ServerState

from lychd import access_log, serving
from lychd.connections import Loop, Protocol

# Whatever takes longer does not come at all.
PATIENCE = 15.0


async def answer(scope: Any, send: Any) -> None:
    scope["known"] = scope["path"] == "/known"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def served(act: Callable[[Loop, int, asyncio.Event], Coroutine[Any, Any, None]], *, most: int) -> None:
    """Serve in this process with room for so many; `/slow` is answered once the event is set."""
    door = serving.open_door("127.0.0.1", 0)

    async def whole(loop: Loop) -> None:
        go = asyncio.Event()

        async def application(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/slow":
                await go.wait()
            await answer(scope, send)

        config = uvicorn.Config(
            application, http=Protocol, ws="none", lifespan="off", log_config=None, timeout_keep_alive=60
        )
        config.load()
        state = ServerState()
        server = await loop.create_server(lambda: Protocol(config, state, {}), sock=door.listening)
        try:
            await asyncio.wait_for(act(loop, door.port, go), PATIENCE)
        finally:
            server.close()

    with contextlib.closing(Loop()) as loop:
        loop.connections.most = most
        loop.run_until_complete(whole(loop))


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> bytes:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return (await reader.readuntil(b"ok"))[:15]


def test_in_a_crowd_a_stranger_asks_once_and_whoever_is_known_goes_on() -> None:
    async def act(loop: Loop, port: int, go: asyncio.Event) -> None:
        stranger = await asyncio.open_connection("127.0.0.1", port)
        known = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            assert await ask(*stranger, "/") == b"HTTP/1.1 200 OK"
        loop.connections.crowded = True
        assert await ask(*stranger, "/") == b"HTTP/1.1 200 OK"
        assert await stranger[0].read() == b""
        for _ in range(3):
            assert await ask(*known, "/known") == b"HTTP/1.1 200 OK"
        for _, writer in (stranger, known):
            writer.close()

    served(act, most=100)


def test_there_is_a_crowd_as_long_as_somebody_is_left_in_the_line() -> None:
    async def act(loop: Loop, port: int, go: asyncio.Event) -> None:
        async def until(crowded: bool) -> None:
            while loop.connections.crowded is not crowded:
                await asyncio.sleep(0.01)

        first = await asyncio.open_connection("127.0.0.1", port)
        slow = asyncio.ensure_future(ask(*first, "/slow"))
        # Its answer is ours to give, so it makes no room.
        left = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await until(crowded=True)
        go.set()
        assert await slow == b"HTTP/1.1 200 OK"
        for one in left:
            assert await ask(*one, "/") == b"HTTP/1.1 200 OK"
        await until(crowded=False)
        for _, writer in (first, *left):
            writer.close()

    served(act, most=1)


@pytest.mark.parametrize("principal", [7, None])
def test_the_ring_around_everything_says_whether_who_was_answered_is_known(principal: int | None) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        with access_log.entry_of("GET", "/") as entry:
            entry.principal = principal
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def nothing(*_: Any) -> Any:
        return {}

    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/"}
    asyncio.run(cast(Any, access_log.AccessLog(application)(scope, nothing, nothing)))
    assert scope["known"] is (principal is not None)
