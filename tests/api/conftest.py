"""Callers over HTTP, and the promise that a refusal adds no row."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.http import HttpResponse
from django.test import Client

from archive.models import Principal
from archive.operations import host
from tests import cast

_numbers = itertools.count(1)


class Api:
    """One caller with a bearer token (or with nothing), in one namespace."""

    def __init__(self, secret: str | None = None, ns: str = cast.GARDEN) -> None:
        self.secret = secret
        self.ns = ns
        self.client = Client(raise_request_exception=False)

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        return {**({} if self.secret is None else {"authorization": f"Bearer {self.secret}"}), **more}

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(self.at(path), headers=self._headers(_dashed(headers)))

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.raw("POST", path, json.dumps({} if body is None else body).encode(), **headers)

    def raw(self, method: str, path: str, content: bytes, media: str = "application/json", **headers: str) -> Any:
        return self.client.generic(
            method, self.at(path), content, content_type=media, headers=self._headers(_dashed(headers))
        )

    def at(self, path: str) -> str:
        """An address as it is, or one below the namespace."""
        return path if path.startswith("/") else f"/api/v1/ns/{self.ns}/{path}"

    def elsewhere(self, ns: str) -> "Api":
        return Api(self.secret, ns)


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def token(subject: str) -> str:
    return host.issue_token(subject, by="host:tests", namespaces=None).secret


@pytest.fixture
def api(garden: cast.Garden) -> Callable[[str], Api]:
    """A caller with a token of this member of the cast."""
    made: dict[str, Api] = {}

    def of(subject: str) -> Api:
        if subject not in made:
            made[subject] = Api(token(subject))
        return made[subject]

    return of


@pytest.fixture
def anonymous(garden: cast.Garden) -> Api:
    return Api()


@pytest.fixture
def signed_in(garden: cast.Garden) -> Callable[..., Client]:
    """A browser of a signed-in user who stands for a subject, or for nobody."""

    def of(subject: str | None, *, csrf: bool = False, **more: Any) -> Client:
        user = get_user_model().objects.create_user(f"user-{next(_numbers)}", **more)
        if subject is not None:
            Principal.objects.filter(subject=subject).update(user=user)
        client = Client(enforce_csrf_checks=csrf, raise_request_exception=False)
        client.force_login(user)
        return client

    return of


def body(**changes: Any) -> dict[str, Any]:
    """An intake that is fine; None takes a field away."""
    fields = {
        "request_id": cast.fresh(),
        "source_key": "roses",
        "source_revision": "1",
        "text": "Roses want morning sun.",
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not None}


def rows() -> dict[str, int]:
    """How many rows each table of the archive and the host has."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
            " AND (relname LIKE 'archive\\_%' OR relname LIKE 'lychd\\_%' OR relname LIKE 'semantic\\_%') ORDER BY 1"
        )
        names = [name for (name,) in cursor.fetchall()]
        cursor.execute(" UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in names))
        return dict(cursor.fetchall())


@contextmanager
def nothing_added() -> Iterator[None]:
    """Whatever happens inside leaves the row counts of every table as they were."""
    before = rows()
    yield
    assert rows() == before


def problem(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """Check that an answer is the problem with this code, in every respect that all problems share."""
    told: dict[str, Any] = json.loads(response.content)
    assert (response.status_code, told["code"]) == (status, code), told
    assert response["Content-Type"] == "application/problem+json"
    assert response["Cache-Control"] == "no-store"
    assert told["type"] == f"urn:lychd:problem:{code}"
    assert told["status"] == status
    assert told["correlation_id"] == response["X-Request-ID"]
    assert told["title"]
    assert told["detail"]
    return told


def same_but_for_the_id(one: HttpResponse, other: HttpResponse) -> bool:
    """Whether two answers are equal to the byte once the correlation ids are taken out."""
    return one.content.replace(one["X-Request-ID"].encode(), b"") == other.content.replace(
        other["X-Request-ID"].encode(), b""
    )


def pointers(told: dict[str, Any]) -> list[str]:
    """Where a problem says that something is wrong."""
    return [fault["pointer"] for fault in told.get("errors", [])]
