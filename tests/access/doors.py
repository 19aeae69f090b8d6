"""How each kind of entrance is taken: by which role, into which namespace, and what was met there, in one form."""

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.http import HttpResponse
from django.test import Client

from archive import bindings, refusals
from archive.operations import management
from lychd import console
from semantic import tasks
from semantic.operations.attempts import Attempt
from tests import cast
from tests.access.ground import Ground, Place
from tests.access.table import Entrance

CODES: Final = {kind.code: kind for kind in refusals.every()}


@dataclass(frozen=True)
class Met:
    """What somebody met: a sign or code of the table, the answer without what differs each time, and all of it."""

    outcome: str
    alike: bytes
    shown: str
    status: int | None = None


Content = Callable[[Place], dict[str, Any]]


def _intake(place: Place) -> dict[str, Any]:
    return {
        "request_id": cast.fresh(),
        "source_key": "tulips",
        "source_revision": cast.fresh("v"),
        "text": "Tulips want sand.",
    }


def _forged(place: Place) -> dict[str, Any]:
    return {
        "state": "promoted",
        "is_superuser": "on",
        "action": "delete_selected",
        "_selected_action": "1",
        "_save": "1",
    }


def _version(number: int) -> Content:
    return lambda place: {"expected_version": number}


def _ticked(place: Place) -> dict[str, Any]:
    return {"step": "promote", "note": str(place.candidate), f"seen-{place.candidate}": 1}


def _seen(place: Place) -> str:
    binding = bindings.source().find(place.key)
    return "" if binding is None else management.tag_of(binding)


def _known(place: Place) -> str:
    """Somebody who was granted something there."""
    return "neighbour" if place.key.startswith("others") else "writer"


_BODIES: Final[dict[str, Content]] = {
    "api/v1/ns/<str:ns>/notes": _intake,
    "api/v1/ns/<str:ns>/notes/batch": lambda place: {"items": [_intake(place), _intake(place)]},
    "api/v1/ns/<str:ns>/transitions": lambda place: {
        "items": [{"note_id": str(place.candidate), "action": "promote", "expected_version": 1}]
    },
    "api/v1/ns/<str:ns>/notes/<str:note_id>/promote": _version(1),
    "api/v1/ns/<str:ns>/notes/<str:note_id>/archive": _version(2),
    "api/v1/ns/<str:ns>/notes/<str:note_id>/revoke": _version(2),
    "api/v1/ns/<str:ns>/notes/<str:note_id>/flags": lambda place: {"reason": "outdated"},
    "api/v1/ns/<str:ns>/recalls": lambda place: {"request_id": cast.fresh("q"), "query": "roses sun"},
    "api/v1/ns/<str:ns>/recalls/<str:request_id>/resolve": lambda place: {},
    "api/v1/ns/<str:ns>/derivations": lambda place: {"note_id": str(place.underived)},
    "api/v1/ns/<str:ns>/derivations/<str:derivation_id>/attempts": lambda place: {"expected_row_version": 1},
    "api/v1/ns/<str:ns>/semantic-recalls": lambda place: {
        "request_id": cast.fresh("q"),
        "query": "roses sun",
        "min_cosine": -1.0,
    },
    "api/v1/ns/<str:ns>/semantic-recalls/<str:request_id>/resolve": lambda place: {},
    "ns/<key:ns>/find": lambda place: {"identifier": str(place.promoted)},
    "ns/<key:ns>/people/grant": lambda place: {"subject": _known(place), "role": "recaller", "confirmed": "yes"},
    "ns/<key:ns>/people/withdraw": lambda place: {"subject": "writer", "role": "writer", "confirmed": "yes"},
    "ns/<key:ns>/people/token": lambda place: {"subject": "writer"},
    "ns/<key:ns>/people/token-end": lambda place: {"prefix": "lychd_"},
    "ns/<key:ns>/settings/change": lambda place: {
        "owner": "heirs",
        "policy_revision": "p-9",
        "text_configuration": "english",
        "generation": "none",
        "second_person": "yes",
        "seen": _seen(place),
    },
    "ns/<key:ns>/settings/disable": lambda place: {"seen": _seen(place)},
    "sign-in": lambda place: {"username": "charlie", "password": "wrong"},
    "sign-out": lambda place: {},
    "ns/<key:ns>/notes/<uuid:note_id>/promote": _version(1),
    "ns/<key:ns>/notes/<uuid:note_id>/archive": _version(2),
    "ns/<key:ns>/notes/<uuid:note_id>/revoke": _version(2),
    "ns/<key:ns>/notes/<uuid:note_id>/later": lambda place: {"queue": ""},
    "ns/<key:ns>/review/preview": _ticked,
    "ns/<key:ns>/transitions": _ticked,
    "ns/<key:ns>/search": lambda place: {"query": "roses", "asker": "recaller"},
    "ns/<key:ns>/intakes": lambda place: {**_intake(place), "kind": "note", "text": '"Tulips want sand."'},
}
_QUERIES: Final = {
    "api/v1/ns/<str:ns>/intakes": "?mine",
    "ns/<key:ns>/notes/<uuid:note_id>/revocation": "?version=2",
    "ns/<key:ns>/source": "?key=roses",
}
_NOWHERE: Final = {
    "^api(?:/(?P<rest>.*))?$": "api/v1/nothing",
    "^(?!api(?:/|$)|admin$|static/|media/)(?P<address>.*)$": "admin/auth/user/",
}


def address(entrance: Entrance, place: Place) -> str:
    """The address of an entrance with the names of a namespace filled in."""
    pattern = _NOWHERE.get(entrance.address, entrance.address)
    note = place.candidate if pattern.endswith(("/promote", "/text")) else place.promoted
    request = place.intake_id if "/intakes/" in pattern else place.receipt_id
    if "/semantic-recalls/" in pattern:
        request = place.meant_id
    names = {"ns": place.key, "note_id": str(note), "request_id": request, "derivation_id": str(place.derivation)}
    names["reference"] = "notes-1"
    names["object_id"] = place.records.get(pattern.removeprefix("admin/").partition("/<")[0], "")
    return "/" + re.sub(r"<\w+:(\w+)>", lambda found: names[found[1]], pattern) + _QUERIES.get(entrance.address, "")


def _client(ground: Ground, role: str, *, session: bool) -> tuple[Client, dict[str, str]]:
    if role in ("stranger", "root") or (session and role != "anonymous"):
        return ground.browsers[role], {}
    return ground.nobody, {} if role == "anonymous" else {"authorization": f"Bearer {ground.secrets[role]}"}


def content(entrance: Entrance, place: Place) -> dict[str, Any]:
    """What is sent to an entrance so that whoever is allowed succeeds; a forged form where nothing is taken."""
    return _BODIES.get(entrance.address, _forged)(place)


# --- over HTTP -------------------------------------------------------------------------------------------------------


def at_api(entrance: Entrance, role: str, ground: Ground, place: Place) -> Met:
    """Ask as a program."""
    client, headers = _client(ground, role, session=False)
    where = address(entrance, place)
    if entrance.method == "GET":
        answer: Any = client.get(where, headers=headers)
    else:
        sent = json.dumps(content(entrance, place)).encode()
        answer = client.generic(entrance.method, where, sent, content_type="application/json", headers=headers)
    return seen_at_api(answer)


def seen_at_api(answer: HttpResponse) -> Met:
    """Read an answer of the API; a problem keeps the form that all problems share."""
    shown = answer.content.decode()
    assert answer["Cache-Control"] == "no-store"
    if answer.status_code < 300:
        return Met("+", b"", shown, answer.status_code)
    told = json.loads(shown)
    code = told["code"]
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.status_code == told["status"] == CODES[code].status
    alike = answer.content.replace(answer["X-Request-ID"].encode(), b"")
    return Met(_SIGNS.get(code, code), alike, shown, answer.status_code)


_SIGNS: Final = {"authority_refused": "-", "unauthenticated": "?", "not_found": "0"}
_CODE_OF_PAGE: Final = re.compile(r"Code <code>(\w+)</code>")
_WAY_AROUND: Final = re.compile(rb'<nav .*?</nav>|<a class="place".*?</a>', re.DOTALL)
_TOKEN_OF_FORM: Final = re.compile(rb'name="csrfmiddlewaretoken" value="[^"]*"')


def at_pages(entrance: Entrance, role: str, ground: Ground, place: Place) -> Met:
    """Ask as somebody with a browser."""
    client, _ = _client(ground, role, session=True)
    if entrance.address == "sign-out" and role != "anonymous":
        # A session of its own, since it ends.
        client = Client()
        client.force_login(ground.users[role])
    # What an earlier decision left to be said would be said on the next page, whichever it is.
    client.cookies.pop("messages", None)
    where = address(entrance, place)
    answer: Any = client.get(where) if entrance.method == "GET" else client.post(where, content(entrance, place))
    if answer.status_code == 302:
        return Met("?" if answer["Location"].startswith("/sign-in") else "+", b"", "", 302)
    shown = answer.content.decode()
    if answer.status_code < 300:
        return Met("+", b"", shown, answer.status_code)
    found = _CODE_OF_PAGE.search(shown)
    assert found is not None, (answer.status_code, shown)
    assert answer.status_code == CODES[found[1]].status
    assert "no-store" in answer["Cache-Control"]
    alike = _TOKEN_OF_FORM.sub(b"", answer.content).replace(b"<span>" + role.encode() + b"</span>", b"")
    if answer.status_code == 409:
        # To somebody who is allowed: the way around is kept, and says where one is.
        alike = _WAY_AROUND.sub(b"", alike)
    return Met(_SIGNS.get(found[1], found[1]), alike, shown, answer.status_code)


def at_admin(entrance: Entrance, role: str, ground: Ground, place: Place) -> Met:
    """Look at a table, each role at a record that is its own."""
    return at_pages(entrance, role, ground, ground.places["others"] if role == "neighbour" else place)


# --- commands --------------------------------------------------------------------------------------------------------


def _words(entrance: Entrance, place: Place, shelf: Path) -> list[str]:
    given: dict[str, list[str]] = {
        "ingest": ["ingest", str(shelf)],
        "note": ["note", str(place.promoted)],
        "review": ["review", str(place.candidate)],
        "promote": ["promote", str(place.candidate), "--version", "1"],
        "archive": ["archive", str(place.promoted), "--version", "2"],
        "revoke": ["revoke", str(place.promoted), "--version", "2"],
        "events NOTE": ["events", str(place.promoted)],
        "recall": ["recall", "roses", "sun"],
        "recall --text": ["recall", "roses", "sun", "--text"],
        "resolve": ["resolve", place.receipt_id],
        "receipt show": ["receipt", "show", place.receipt_id],
        "generation retire": ["generation", "retire", "notes-1"],
        "derive": ["derive", str(place.underived)],
        "derivation show": ["derivation", "show", str(place.derivation)],
        "semantic recall": ["semantic", "recall", "roses", "sun", "--min-cosine", "-1"],
        "semantic resolve": ["semantic", "resolve", place.meant_id],
        "namespace migrate": ["namespace", "migrate", "--reason", "the policy moved on"],
    }
    return given.get(entrance.address, entrance.address.split())


def at_commands(entrance: Entrance, role: str, ground: Ground, place: Place) -> Met:
    """Run a command line."""
    who = [] if role == "anonymous" else ["--as", role]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = console.run([*_words(entrance, place, ground.shelf), "--namespace", place.key, *who, "--json"])
    shown = out.getvalue() + err.getvalue()
    if code == 0:
        return Met("+", b"", shown, code)
    told = json.loads(out.getvalue())
    if "outcomes" in told:
        # Many at once: each is told by its code alone.
        (met,) = told["outcomes"]
        return Met(_SIGNS.get(met, met), b"", shown, code)
    if told["code"] == "usage":
        assert code == 64
        return Met("?", out.getvalue().encode(), shown, code)
    assert code == CODES[told["code"]].exit_code
    return Met(_SIGNS.get(told["code"], told["code"]), out.getvalue().encode(), shown, code)


# --- tasks -----------------------------------------------------------------------------------------------------------


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def _listening(name: str) -> Iterator[_Heard]:
    logger, heard = logging.getLogger(name), _Heard()
    logger.addHandler(heard)
    try:
        yield heard
    finally:
        logger.removeHandler(heard)


def at_tasks(entrance: Entrance, role: str, ground: Ground, place: Place) -> Met:
    """Deliver a message; what it was refused for stands in the log."""
    assert entrance.address == tasks.run_derivation_attempt.name
    with _listening(tasks.__name__) as heard:
        tasks.run_derivation_attempt(**tasks.message(place.key, role, Attempt(place.derivation, 1), "access"))
    (record,) = heard.records
    code = getattr(record, "code", None)
    return Met("+" if code is None else _SIGNS.get(code, code), str(code).encode(), record.getMessage())


DOORS: Final = {"api": at_api, "page": at_pages, "admin": at_admin, "command": at_commands, "task": at_tasks}


def take(entrance: Entrance, role: str, ground: Ground, place: Place) -> Met:
    """Take an entrance as a role, into a place."""
    return DOORS[entrance.door](entrance, role, ground, place)


def raw(entrance: Entrance, method: str, role: str, ground: Ground, place: Place) -> Any:
    """Ask at the address of an entrance with any method."""
    client, headers = _client(ground, role, session=entrance.door != "api")
    return client.generic(method, address(entrance, place).partition("?")[0], headers=headers)


def numbered(pattern: str) -> str:
    """An address of the admin with a number wherever it wants a name."""
    named = re.sub(r"\(\?P<\w+>([^|)]*)[^)]*\)", r"\1", pattern)
    return re.sub(r"<[^>]*>", "1", named).replace("^", "").replace("$", "").replace("\\Z", "")
