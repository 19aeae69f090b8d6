"""`lychd serve` on real sockets: what HTTP promises, a connection that is kept, and an end that leaves nothing."""

import asyncio
import contextlib
import signal
import socket

import pytest

from archive import limits
from archive.operations import host
from lychd import bounds, serving
from lychd.connections import Loop
from tests.cast import GARDEN
from tests.commands.conftest import PATIENCE, until
from tests.front.serving import ask

STYLE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
NOTES = f"/api/v1/ns/{GARDEN}/notes"


def test_no_answer_waits_for_the_acknowledgement_of_another():
    """Where the listening socket leaves its protocol open, asyncio leaves Nagle's algorithm on: 44 ms an answer."""
    accepted = asyncio.Queue()

    class Noting(asyncio.Protocol):
        def connection_made(self, transport):
            accepted.put_nowait(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.abort()

    async def one_caller():
        door = serving.open_door("127.0.0.1", 0)
        server = await asyncio.get_running_loop().create_server(Noting, sock=door.listening)
        with socket.create_connection(("127.0.0.1", door.port)):
            found = await asyncio.wait_for(accepted.get(), PATIENCE)
        server.close()
        return found

    with contextlib.closing(Loop()) as loop:
        assert loop.run_until_complete(one_caller()) != 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_one_connection_carries_many_requests_and_the_end_leaves_nothing(serve, garden, workers):
    served = serve("--workers", workers)
    token = host.issue_token("alice", by="host:tests", namespaces=None).secret
    with contextlib.closing(served.connect()) as connection:
        for number in range(5):
            note = {"request_id": f"r-{number}", "source_key": "roses", "source_revision": str(number), "text": "Sun."}
            answer = ask(connection, NOTES, "POST", note, Authorization=f"Bearer {token}", X_Request_ID=f"id-{number}")
            assert (answer.status, answer.headers["x-request-id"]) == (201, f"id-{number}")
            assert ask(connection, "/sign-in").status == 200
            assert ask(connection, "/api/v1/ns/garden/notes").status == 401
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(PATIENCE) == 0
    with socket.socket() as knocking:
        assert knocking.connect_ex(("127.0.0.1", served.port)) != 0
    assert "Traceback" not in served.log.read_text()


def test_static_files_are_whole_conditional_and_in_parts(serve):
    served = serve()
    whole = served.ask(STYLE)
    assert (whole.status, len(whole.body)) == (200, int(whole.headers["content-length"]))
    assert len(whole.body) > 1_000_000
    assert whole.headers["x-content-type-options"] == "nosniff"
    head = served.ask(STYLE, "HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", whole.headers["content-length"])
    assert served.ask(STYLE, If_None_Match=whole.headers["etag"]).status == 304
    assert served.ask(STYLE, If_Modified_Since=whole.headers["last-modified"]).status == 304
    part = served.ask(STYLE, Range="bytes=70000-70009")
    assert (part.status, part.body) == (206, whole.body[70_000:70_010])
    assert part.headers["content-range"] == f"bytes 70000-70009/{len(whole.body)}"
    assert served.ask(STYLE, Range="bytes=9999999-").status == 416
    assert served.ask(STYLE, "POST").status == 405
    for nothing in ("/static/", "/static/nothing.js", "/static/../settings.py", "/static/%2e%2e/settings.py"):
        assert served.ask(nothing).status == 404


def test_pages_have_a_head_too(serve):
    served = serve()
    page, head = served.ask("/sign-in"), served.ask("/sign-in", "HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(page.body)))


@pytest.mark.parametrize("chunked", [False, True])
def test_b51_a_sender_of_too_much_reads_why(serve, garden, chunked):
    """A connection that is closed over unread bytes is reset, and the answer with it."""
    served = serve()
    token = host.issue_token("alice", by="host:tests", namespaces=None).secret
    body = b"a" * (limits.BATCH_BODY_MAX_BYTES + 1_000_000)
    parts = iter([body[:65_536], body[65_536:]]) if chunked else body
    with contextlib.closing(served.connect()) as connection:
        # http.client sends everything before it reads anything.
        answer = ask(connection, f"{NOTES}/batch", "POST", parts, Authorization=f"Bearer {token}")
    assert (answer.status, answer.json()["code"]) == (413, "body_too_large")
    assert answer.headers["connection"] == "close"


def test_a_batch_within_its_bound_arrives_whole(serve, garden):
    served = serve()
    token = host.issue_token("alice", by="host:tests", namespaces=None).secret
    text = "rose " * 3_000
    items = [
        {"request_id": f"b-{n}", "source_key": f"s-{n}", "source_revision": "1", "text": f"{n} {text}"}
        for n in range(limits.BATCH_INTAKE_MAX)
    ]
    answer = served.ask(f"{NOTES}/batch", "POST", {"items": items}, Authorization=f"Bearer {token}")
    assert (answer.status, len(answer.json()["items"])) == (200, len(items)), answer.body[:300]


def test_sign_in_is_where_the_line_for_it_expects_it():
    from django.urls import reverse

    assert reverse("sign-in") == bounds.SIGN_IN


def test_what_anybody_can_cause_is_logged_once_a_minute(serve):
    served = serve()
    for _ in range(20):
        with contextlib.closing(served.raw()) as stranger:
            stranger.sendall(b"nonsense\r\n\r\n")
            assert stranger.recv(100).startswith(b"HTTP/1.1 400")
        assert served.ask("/sign-in", "POST", b"a" * (bounds.STRANGER_BODY_BYTES + 1)).status == 413
    until(lambda: served.log.read_text().count('"route": "/sign-in", "status": 413') == 20, "a line for each refusal")
    assert served.log.read_text().count("Invalid HTTP request received.") == 1
