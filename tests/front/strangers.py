"""Strangers as a process of their own: each silent, slow or greedy, and back as soon as its connection is closed.

`python -m tests.front.strangers PORT silent=200 drip=100 ...` attacks until its standard input ends or has a line, and
tells at last how often it was answered.
"""

import asyncio
import contextlib
import re
import socket
import sys
from collections.abc import Awaitable, Callable
from itertools import count

HEAD = "Host: 127.0.0.1\r\n"
LARGE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_names = count()
_answers = count()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say nothing."""
    await reader.read()


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a head byte by byte, without end."""
    writer.write(b"GET / HTTP/1.1\r\nX-Long: ")
    while not reader.at_eof():
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(1)


async def read_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ask for a large file over and over, and read none."""
    # Paused: not even what the library would read ahead.
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(f"GET {LARGE} HTTP/1.1\r\n{HEAD}\r\n".encode() * 12)
    while True:
        await asyncio.sleep(1)
        writer.write(b"\r\n")
        await writer.drain()


async def read_no_description(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ask for a large answer of Django's, and read none."""
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(f"GET /api/v1/schema HTTP/1.1\r\n{HEAD}\r\n".encode() * 12)
    while True:
        await asyncio.sleep(1)
        writer.write(b"\r\n")
        await writer.drain()


async def large_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Announce 8 MB, send nearly all of it, and never the end."""
    length = 8 * 1024 * 1024
    writer.write(f"POST /sign-in HTTP/1.1\r\n{HEAD}Content-Length: {length}\r\n\r\n".encode())
    for _ in range(127):
        writer.write(b"a" * 65_536)
        await writer.drain()
    await reader.read()


async def unannounced_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The same in chunks, with the form of a token, so that it counts as a caller's until somebody looks."""
    token = f"Authorization: Bearer lychd_{'a' * 43}\r\n"
    writer.write(f"POST /api/v1/ns/x/notes/batch HTTP/1.1\r\n{HEAD}{token}Transfer-Encoding: chunked\r\n\r\n".encode())
    for _ in range(120):
        writer.write(b"10000\r\n" + b"a" * 65_536 + b"\r\n")
        await writer.drain()
    await reader.read()


async def sign_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sign in under names that nobody has, so that each costs the hash of a password."""
    writer.write(f"GET /sign-in HTTP/1.1\r\n{HEAD}\r\n".encode())
    page = await _answer(reader)
    cookie = re.search(rb"csrftoken=([A-Za-z0-9]+)", page)
    field = re.search(rb'name="csrfmiddlewaretoken" value="([A-Za-z0-9]+)"', page)
    while cookie and field:
        form = f"csrfmiddlewaretoken={field[1].decode()}&username=nobody{next(_names)}&password=no"
        writer.write(
            f"POST /sign-in HTTP/1.1\r\n{HEAD}Cookie: csrftoken={cookie[1].decode()}\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\n\r\n{form}".encode()
        )
        await _answer(reader)


async def greedy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ask for a page as fast as it is given."""
    while True:
        writer.write(f"GET /ns/nowhere HTTP/1.1\r\n{HEAD}\r\n".encode())
        await _answer(reader)


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    body = await reader.readexactly(int(length[1])) if length else b""
    next(_answers)
    return head + body


KINDS: dict[str, Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]] = {
    "silent": silent,
    "drip": drip,
    "read-nothing": read_nothing,
    "read-no-description": read_no_description,
    "large-body": large_body,
    "unannounced-body": unannounced_body,
    "sign-in": sign_in,
    "greedy": greedy,
}


async def stranger(port: int, kind: str) -> None:
    """Come back for ever."""
    loop = asyncio.get_running_loop()
    while True:
        caller = socket.socket()
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
        caller.setblocking(False)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            try:
                await loop.sock_connect(caller, ("127.0.0.1", port))
                reader, writer = await asyncio.open_connection(sock=caller)
            except OSError:
                caller.close()
                raise
            try:
                await KINDS[kind](reader, writer)
            finally:
                # The socket is the transport's to close by now.
                writer.transport.abort()
        # Whoever is greedy comes back at once; for the others ten times a second is enough.
        await asyncio.sleep(0 if kind == "greedy" else 0.1)


async def main() -> None:
    """Begin them all, say so, and end with whoever began us, saying how many answers there were."""
    port = int(sys.argv[1])
    crowd = [
        asyncio.ensure_future(stranger(port, kind))
        for kind, _, many in (word.partition("=") for word in sys.argv[2:])
        for _ in range(int(many))
    ]
    print(len(crowd), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    print(next(_answers), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
