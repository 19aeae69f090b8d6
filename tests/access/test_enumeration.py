"""What cannot be told apart: by what is said, by what is asked of the database, and by whom one waits for.

RELIABILITY 2.8, R-L-038. Statements are compared, not clocks: two askings that make the same statements on the same
indexes have nothing else to differ by. The refusal of a stranger to a namespace comes before anybody's lock on it.
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import MD5PasswordHasher
from django.db import connection, connections
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from archive.api.throttles import CourtesyLimit
from archive.models import Recall
from archive.operations import host
from tests import cast, flushing
from tests.access import doors, table
from tests.access.doors import Met
from tests.access.ground import PASSWORD, Ground, Place
from tests.access.table import ENTRANCES, Entrance

INSIDE: Final = [one for one in ENTRANCES if one.in_namespace]
AT_THE_HOST: Final = {str(one) for one in INSIDE if re.search("/(?:people|settings)", one.address)} | {
    "GET ns/<key:ns>/find"
}
NAMING: Final = [
    one
    for one in INSIDE
    if re.search(r"<\w+:(?:note_id|request_id|derivation_id)>", one.address) and "configuration" not in one.address
]
_TABLE: Final = re.compile(
    r'\b((?:archive|auth|django|lychd|semantic)_[a-z_]+)"? ?(?:AS|WHERE|WHERE EXISTS|INNER|U0|\.)?'
)
_VALUE: Final = re.compile(r"'(?:[^']|'')*'|\b\d+\b")


def watched(act: Callable[[], Met]) -> tuple[Met, list[str]]:
    """What was met, and the statements that were made, without the values in them."""
    with CaptureQueriesContext(connection) as asked:
        met = act()
    return met, [_VALUE.sub("?", one["sql"]) for one in asked]


def tables(statements: list[str]) -> list[list[str]]:
    """The tables that each statement looks into."""
    return [sorted(set(_TABLE.findall(one))) for one in statements]


# --- the same statements ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entrance", INSIDE, ids=str)
def test_a_refused_caller_costs_the_same_whatever_exists(here: Ground, entrance: Entrance) -> None:
    def ask(state: str) -> Met:
        return doors.take(entrance, "charlie", here, here.places[state])

    seen = {state: watched(partial(ask, state)) for state in table.STATES}
    assert {met.outcome for met, _ in seen.values()} == {"-"}
    served = [seen[state][1] for state in ("own", "changed", "others", "absent")]
    assert all(one == served[0] for one in served), "namespaces that are served"
    unserved = [seen[state][1] for state in ("disabled", "unknown")]
    assert unserved[0] == unserved[1], "namespaces that are not"
    # One asks whether there is this grant, the other whether there is any: as many statements, on the same tables.
    assert len(served[0]) == len(unserved[0])
    assert tables(served[0]) == tables(unserved[0])


@pytest.mark.parametrize("entrance", NAMING, ids=str)
def test_a_record_of_another_namespace_is_as_absent_as_none(here: Ground, entrance: Entrance) -> None:
    role = next(role for role in table.GRANTED if entrance.signs[role] == "+")
    own, other = here.places["own"], here.places["others"]
    absent = Place(own.key, intake_id=cast.fresh("no"), receipt_id=cast.fresh("no"), meant_id=cast.fresh("no"))
    foreign = replace(
        other, key=own.key, intake_id=cast.fresh("no"), receipt_id=cast.fresh("no"), meant_id=cast.fresh("no")
    )
    nothing, statements = watched(lambda: doors.take(entrance, role, here, absent))
    theirs, alike = watched(lambda: doors.take(entrance, role, here, foreign))
    assert nothing.outcome in ("record_absent", "receipt_absent", "derivation_absent")
    assert (theirs.outcome, theirs.alike) == (nothing.outcome, nothing.alike)
    assert alike == statements


def test_a_token_that_is_no_good_is_so_in_one_way(here: Ground) -> None:
    """Unknown, with a known beginning, revoked, at its end, of somebody switched off."""
    revoked, ended = (host.issue_token("charlie", by="host:tests", namespaces=None) for _ in range(2))
    host.revoke_token(revoked.token.prefix)
    here.owner.execute("UPDATE lychd_token SET expires_at = created_at WHERE id = %s", [ended.token.id])
    known = here.secrets["curator"]
    given = [
        "lychd_" + "a" * 43,
        known[:20] + "a" * (len(known) - 20),
        revoked.secret,
        ended.secret,
        here.secrets["inactive"],
    ]

    def ask(secret: str) -> Met:
        answer: Any = here.nobody.get("/api/v1/configuration", headers={"authorization": f"Bearer {secret}"})
        return doors.seen_at_api(answer)

    seen = [watched(partial(ask, secret)) for secret in given]
    assert {met.outcome for met, _ in seen} == {"?"}
    assert len({met.alike for met, _ in seen}) == 1
    assert all(statements == seen[0][1] for _, statements in seen)


def test_a_sign_in_that_fails_does_so_in_one_way(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown, with a wrong password, switched off: the same page, the same statements, one password hashed."""
    get_user_model().objects.create_user("asleep", password=PASSWORD, is_active=False)
    hashed: list[str] = []
    whole = MD5PasswordHasher.encode

    def counted(self: MD5PasswordHasher, password: str, salt: str) -> str:
        hashed.append(password)
        return whole(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counted)

    def ask(name: str, password: str) -> Met:
        answer: Any = Client().post("/sign-in", {"username": name, "password": password})
        assert answer.status_code == 200
        page = re.sub(rb'name="csrfmiddlewaretoken" value="[^"]*"', b"", answer.content)
        return Met("-", page.replace(name.encode(), b""), "")

    seen = []
    for name, password in (("nobody-at-all", PASSWORD), ("charlie", "wrong"), ("asleep", PASSWORD)):
        hashed.clear()
        met, statements = watched(partial(ask, name, password))
        seen.append((met.alike, statements, len(hashed)))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][2] == 1


# --- waiting for nobody ----------------------------------------------------------------------------------------------


@contextmanager
def somebody_at_work(place: Place) -> Iterator[None]:
    """Another connection holds the namespace exclusively, its queue and its row, as every change does."""
    with psycopg.connect(**flushing.parameters()) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('lychd:' || %s::text, 0))", [place.key])
        other.execute("SELECT FROM archive_namespace WHERE key = %s FOR UPDATE", [place.key])
        other.execute("LOCK TABLE archive_note, archive_recall, archive_namespace IN ACCESS EXCLUSIVE MODE")
        yield
        other.rollback()


@pytest.fixture
def impatient() -> Iterator[None]:
    """Whoever waits for a lock at all is told so: 503."""
    with override_settings(LYCHD_TIMEOUTS={"statement": 60_000, "lock": 1, "idle": 60_000, "transaction": 60_000}):
        yield


def test_whoever_is_refused_waits_for_nobody(here: Ground, impatient: None) -> None:
    """Every entrance, every kind of refusal, while each table of the archive is locked: not one wait (0.8)."""
    place = here.places["own"]
    with somebody_at_work(place):
        for entrance in INSIDE:
            for role, sign in entrance.signs.items():
                if sign in ("-", "?"):
                    met = doors.take(entrance, role, here, place)
                    assert met.outcome == sign, f"{entrance} as {role}: {met.shown}"
            assert doors.take(entrance, "charlie", here, here.places["others"]).outcome in ("-", "?")


def test_whoever_is_allowed_does_wait(here: Ground, impatient: None) -> None:
    """The counter-proof: the locks of the test above are real."""
    place = here.places["own"]
    with somebody_at_work(place):
        for entrance in INSIDE:
            if (entrance.action or "").startswith(("discover_", "inspect_interface")) or str(entrance) in AT_THE_HOST:
                # These look at the host's own tables alone, or at none.
                continue
            role = next(role for role in table.GRANTED if entrance.signs[role] == "+")
            assert doors.take(entrance, role, here, place).outcome == "archive_timeout", str(entrance)


# --- more at once than a limit allows --------------------------------------------------------------------------------


def test_calls_side_by_side_do_not_slip_past_the_courtesy_limit(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """encode/django-rest-framework#5181: counted in one step, so receipts are no more than the limit (C26)."""
    place, most, threads, each = here.fresh("own"), 20, 6, 10
    monkeypatch.setattr(CourtesyLimit, "clock", staticmethod(lambda: 1_000_000.0))
    before = Recall.objects.filter(namespace__key=place.key).count()
    started = threading.Barrier(threads)
    met: list[int] = []

    def ask() -> None:
        client = Client(raise_request_exception=False)
        headers = {"authorization": f"Bearer {here.secrets['recaller']}"}
        started.wait()
        for _ in range(each):
            body = {"request_id": f"q-{uuid4()}", "query": "roses"}
            answer = client.post(
                f"/api/v1/ns/{place.key}/recalls", body, content_type="application/json", headers=headers
            )
            met.append(answer.status_code)
        connections.close_all()

    with override_settings(LYCHD_THROTTLES={"recalls": most}):
        actors = [threading.Thread(target=ask) for _ in range(threads)]
        for actor in actors:
            actor.start()
        for actor in actors:
            actor.join()

    assert len(met) == threads * each
    assert met.count(201) == most
    assert met.count(429) == threads * each - most
    assert Recall.objects.filter(namespace__key=place.key).count() == before + most
