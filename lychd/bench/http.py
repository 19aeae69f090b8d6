"""What agents and curators meet: the served process over HTTP on kept connections, beside one served plainly.

Both are processes of their own on the same archive, taken in turns: `lychd serve`, and uvicorn with Django's own ASGI
handler and a connection to the database for every request. A recall is also taken in turns with the same operation in
this process, which says what HTTP adds to it.
"""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import quote, urlencode

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client, override_settings

from archive import bindings, limits
from archive.operations import host
from archive.operations.recall import recall
from archive.requests import LexicalRecall
from lychd import scratch
from lychd.bench.figures import Figure, clocked, spread
from lychd.bench.ground import NAMESPACE, Ground, fresh
from lychd.evaluation.metrics import percentile

CLIENTS: Final = (1, 4, 24)
ADDED_MS: Final = 4.0
_READER: Final = "reader"
_WARM: Final = 5
_PATIENCE: Final = 60.0
_NS: Final = f"/api/v1/ns/{NAMESPACE}"

Act = Callable[[http.client.HTTPConnection], None]


def measure(ground: Ground, seconds: float, rounds: int) -> list[Figure]:
    """Every act at one, four and two dozen clients, then what HTTP adds to a recall."""
    acts = _Acts(ground)
    figures: list[Figure] = []
    with _served(ground.database, _SERVE) as ours, _served(ground.database, _PLAIN) as plain:
        for name, act in acts.every().items():
            for clients in CLIENTS:
                ground.progress(f"http: {name}, {clients} clients", 0, rounds)
                figures += _in_turns(f"http.{name}.{clients}", act, clients, (ours, plain), seconds, rounds)
                ground.progress(f"http: {name}, {clients} clients", rounds, rounds)
        return figures + _added(ground, acts.recall, ours, max(_WARM, int(40 * seconds * rounds)))


def _in_turns(name: str, act: Act, clients: int, ports: tuple[int, int], seconds: float, rounds: int) -> list[Figure]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for found, port in zip(times, ports, strict=True):
            found += _loop(act, clients, port, seconds / 2)
    ours, plain = times
    note = f"{clients} kept connections to 1 process; baseline: as many to 1 of uvicorn with Django's ASGI handler"
    took = seconds / 2 * rounds
    return [
        *spread(name, ours, plain, note),
        Figure(f"{name}.rate", len(ours) / took, "requests/s", len(plain) / took, note),
    ]


def _loop(act: Act, clients: int, port: int, seconds: float) -> list[float]:
    """Let so many clients ask for so long, each on a connection that it keeps."""
    times: list[float] = []
    line = threading.Barrier(clients)

    def client() -> None:
        with contextlib.closing(_connect(port)) as connection:
            act(connection)
            line.wait()
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                times.append(clocked(act, connection)[0])

    with ThreadPoolExecutor(clients) as pool:
        for one in [pool.submit(client) for _ in range(clients)]:
            one.result()
    return times


def _added(ground: Ground, act: Act, port: int, count: int) -> list[Figure]:
    """One recall over HTTP and one in this process, in turns, with the questions of the set."""
    over, inside = [], []
    with contextlib.closing(_connect(port)) as connection:
        for place, query in enumerate(ground.asked(_WARM + count)):
            wanted = LexicalRecall(fresh("q"), query, top_k=limits.TOP_K_DEFAULT)
            took_inside, _ = clocked(recall, ground.caller, wanted)
            took_over, _ = clocked(act, connection)
            if place >= _WARM:
                inside.append(took_inside)
                over.append(took_over)
    note = "at most; the median over HTTP less the median in this process, in turns"
    return [
        *spread("http.recall", over, inside, "1 kept connection; baseline: the operation in this process"),
        Figure("http.recall.added", percentile(over, 0.5) - percentile(inside, 0.5), "ms", ADDED_MS, note),
    ]


class _Acts:
    """What is asked over HTTP; any answer but the one that is meant is a fault."""

    def __init__(self, ground: Ground) -> None:
        self._lock = threading.Lock()
        self._questions = iter(ground.asked(10_000_000))
        self._ground = ground
        self._token = host.issue_token(scratch.SUBJECT, by=host.host_actor(), namespaces=None).secret
        self._session = _signed_in()
        self._receipt = fresh("q")
        recall(ground.caller, LexicalRecall(self._receipt, next(self._questions), top_k=limits.TOP_K_DEFAULT))

    def every(self) -> dict[str, Act]:
        return {
            "probe": self.probe,
            "page": self.page,
            "recall": self.recall,
            "resolve": self.resolve,
            "intake": self.intake,
        }

    def probe(self, connection: http.client.HTTPConnection) -> None:
        _ask(connection, "GET", "/healthz", 200)

    def page(self, connection: http.client.HTTPConnection) -> None:
        _ask(connection, "GET", f"/ns/{NAMESPACE}", 200, Cookie=f"{settings.SESSION_COOKIE_NAME}={self._session}")

    def recall(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            wanted = {"request_id": fresh("q"), "query": next(self._questions)}
        self._post(connection, "recalls", wanted, 201)

    def resolve(self, connection: http.client.HTTPConnection) -> None:
        self._post(connection, f"recalls/{self._receipt}/resolve", None, 200)

    def intake(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            (note,) = self._ground.wanted(1)
        wanted = {
            "request_id": note.request_id,
            "source_key": note.source_key,
            "source_revision": note.source_revision,
            "text": note.text,
        }
        self._post(connection, "notes", wanted, 201)

    def _post(self, connection: http.client.HTTPConnection, path: str, body: Any, status: int) -> None:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}"}
        if content is not None:
            headers["Content-Type"] = "application/json"
        _ask(connection, "POST", f"{_NS}/{path}", status, content, **headers)


def _ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    status: int,
    body: bytes | None = None,
    **headers: str,
) -> None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, named)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != status:
        raise AssertionError(f"{method} {path} answered {answer.status}: {content[:200]!r}")


def _connect(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)


def _signed_in() -> str:
    """The session of somebody who may look at the namespace."""
    binding = bindings.source().find(NAMESPACE)
    if binding is None:
        raise AssertionError("the namespace of the bench is configured")
    user = get_user_model()._default_manager.create_user(_READER)
    host.map_principal(_READER, user_id=user.pk)
    host.grant(_READER, binding, host.actions_of(("curator", "inspector")), by=host.host_actor())
    with override_settings(ALLOWED_HOSTS=["testserver"], SECURE_SSL_REDIRECT=False):
        client = Client()
        client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


_SERVE: Final = ("lychd.console", "serve")
_PLAIN: Final = ("uvicorn", "lychd.bench.plain:application", "--no-access-log", "--lifespan", "off")


@contextlib.contextmanager
def _served(database: str, command: tuple[str, ...]) -> Iterator[int]:
    """Serve a database in a process of its own; gives its port, and ends it at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", *command, "--port", str(port)],
            env={**_kept(), **_variables(database, folder)},
            stdout=subprocess.DEVNULL,
        )
        try:
            _await(process, port)
            yield port
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def _await(process: "subprocess.Popen[bytes]", port: int) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as knocking:
            if knocking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"{' '.join(map(str, process.args))} does not serve")  # type: ignore[arg-type]


def _kept() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("LYCHD_", "DATABASE_", "REDIS_"))}


def _variables(database: str, folder: str) -> dict[str, str]:
    login = connections["default"].settings_dict
    who = quote(login["USER"]) + (f":{quote(login['PASSWORD'], safe='')}" if login["PASSWORD"] else "")
    where = urlencode({"host": login["HOST"], **({"port": login["PORT"]} if login["PORT"] else {})})
    return {
        "DATABASE_URL": f"postgresql://{who}@/{quote(database)}?{where}",
        "LYCHD_ARCHIVE_PROFILE": limits.PROFILE,
        # The same, so that the session of this process holds there.
        "LYCHD_SECRET_KEY": settings.SECRET_KEY,
        "LYCHD_SERVING_ROLE": settings.LYCHD_SERVING_ROLE,
        "LYCHD_STATE_DIR": folder,
        **{f"LYCHD_{kind}_PER_MINUTE": "1000000000" for kind in ("READS", "WRITES", "RECALLS")},
        "LYCHD_LOG_LEVEL": "WARNING",
    }
