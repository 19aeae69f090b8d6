"""One journey over a real socket: a server process, bytes on the wire, and an end that leaves nothing running."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections

from archive.models import Note
from archive.operations import host
from lychd import embedded
from tests import cast

CHECKOUT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


class Wire:
    """A caller that speaks HTTP/1.1 itself."""

    def __init__(self, port: int, secret: str | None) -> None:
        self.port = port
        self.secret = secret

    def __call__(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.secret is not None:
            sent["Authorization"] = f"Bearer {self.secret}"
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        connection.request(method, path if path.startswith("/") else f"/api/v1/ns/garden/{path}", content, sent)
        answer = connection.getresponse()
        told = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        return answer.status, json.loads(told) if told else {}, found

    def raw(self, content: bytes) -> bytes:
        """Send bytes as they are and read until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as wire:
            # The server may answer and hang up before it has everything.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                wire.sendall(content)
            found = b""
            with contextlib.suppress(ConnectionResetError):
                while part := wire.recv(65_536):
                    found += part
            return found


@pytest.fixture
def server(garden: cast.Garden, tmp_path: Path) -> Iterator[tuple[int, "subprocess.Popen[bytes]", Path]]:
    """The service as it is started in earnest, on the suite's database and as the serving role."""
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("the suite knows the serving role's login of its own embedded server alone")
    database = embedded.Server(settings.LYCHD_STATE_DIR, embedded.socket_dir(settings.LYCHD_STATE_DIR))
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL") if name in os.environ}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    log = tmp_path / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "lychd.asgi:application", "--port", str(port), "--lifespan", "off"],
            env={
                **kept,
                "LYCHD_STATE_DIR": str(tmp_path / "state"),
                "LYCHD_ARCHIVE_PROFILE": "local-public-notes@1",
                "LYCHD_ALLOWED_HOSTS": "127.0.0.1",
                "DATABASE_URL": database.url(str(connections["default"].settings_dict["NAME"])),
            },
            cwd=CHECKOUT,
            stdout=written,
            stderr=written,
        )
        try:
            _wait_for(port, process, log)
            yield port, process, log
        finally:
            process.kill()
            process.wait(30)


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        with socket.socket() as knocking:
            if knocking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("nobody listens")


TEXT = "Roses want morning sun. <b>Truly</b> \U0001f339"


def test_a_note_travels_from_intake_to_revocation(server):
    port, process, log = server
    alice, bob, ivy = (
        Wire(port, host.issue_token(name, by="host:tests", namespaces=None).secret) for name in ("alice", "bob", "ivy")
    )
    stranger = Wire(port, None)

    status, told, headers = stranger("GET", "/healthz", x_request_id="probe-1")
    assert (status, told, headers["x-request-id"]) == (200, {"status": "ok"}, "probe-1")
    assert stranger("GET", "/readyz")[0] == 200
    status, told, headers = stranger("GET", "notes")
    assert (status, told["code"], headers["www-authenticate"]) == (401, "unauthenticated", "Bearer")

    # A candidate that nobody can recall yet.
    sent = {"request_id": "r1", "source_key": "roses", "source_revision": "1", "text": TEXT}
    status, told, headers = alice("POST", "notes", sent)
    assert (status, told["outcome"], headers["cache-control"]) == (201, "created", "no-store")
    note = told["note"]["id"]
    assert bob("POST", "recalls", {"request_id": "q0", "query": "roses"})[1]["receipt"]["outcome"] == "miss"

    # Judged on the version that was seen, by the tag that the record had.
    assert alice("GET", f"notes/{note}/text")[1] == {"text": TEXT, "promoted": None}
    status, told, headers = ivy("GET", f"notes/{note}")
    assert (status, headers["etag"]) == (200, f'"{note}.1"')
    assert ivy("GET", f"notes/{note}", if_none_match=headers["etag"])[0] == 304
    status, told, _ = alice("POST", f"notes/{note}/promote", if_match=headers["etag"])
    assert (status, told["note"]["state"]) == (200, "promoted")
    assert alice("POST", f"notes/{note}/promote", {"expected_version": 1})[1]["code"] == "lifecycle_version_conflict"

    # Recalled, and resolved for one use.
    status, told, _ = bob("POST", "recalls", {"request_id": "q1", "query": "morning roses"})
    assert (status, told["outcome"]) == (201, "published")
    assert TEXT not in json.dumps(told, ensure_ascii=False)
    status, resolved, _ = bob("POST", "recalls/q1/resolve")
    assert (status, resolved["sources"][0]["data"]["text"]) == (200, TEXT)
    status, told, _ = ivy("GET", "receipts/q1")
    assert (status, told["current_eligibility"]) == (200, "not_assessed")

    # Withdrawn: nothing is resolved any more, and the feed says so.
    alice("POST", f"notes/{note}/revoke", {"expected_version": 2, "reason": "wrong"})
    assert bob("POST", "recalls/q1/resolve")[1]["code"] == "selection_stale"
    assert [event["to_state"] for event in ivy("GET", "events")[1]["items"]] == ["candidate", "promoted", "revoked"]
    assert Note.objects.get(id=note).text is None

    # What the wire may bring: a length that is a lie, chunks without end, two headers where one is meant.
    address = b"POST /api/v1/ns/garden/notes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    token = f"Authorization: Bearer {alice.secret}\r\n".encode()
    large = alice.raw(address + token + b"Content-Length: 100000000\r\n\r\n{")
    assert large.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in large
    chunk = b"10000\r\n" + b"a" * 65_536 + b"\r\n"
    endless = alice.raw(address + token + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 4 + b"1\r\na\r\n")
    assert endless.startswith(b"HTTP/1.1 413")
    small = json.dumps({**sent, "request_id": "r2", "source_key": "chunked"}).encode()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(small), small)
    whole = alice.raw(address + token + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunked)
    assert whole.startswith(b"HTTP/1.1 201")
    twice = alice.raw(address + token + token + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}")
    assert twice.startswith(b"HTTP/1.1 400")
    types = alice.raw(
        address + b"Content-Type: application/json\r\n" + token + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}"
    )
    assert types.startswith(b"HTTP/1.1 400")
    bomb = alice.raw(
        address + token + b"Content-Encoding: gzip\r\nContent-Length: 2\r\nConnection: close\r\n\r\n\x1f\x8b"
    )
    assert bomb.startswith(b"HTTP/1.1 415")

    # The end is clean, and the log has neither text nor token.
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) in (0, -signal.SIGTERM)
    written = log.read_text()
    assert "Traceback" not in written
    for secret in ("morning sun", alice.secret, bob.secret):
        assert secret not in written
