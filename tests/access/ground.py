"""The ground of the access tests: everybody of the table, and a namespace in each state. Planted once a module.

Nothing in a namespace depends on rows of another, so a cell that changes something gets a fresh namespace of its own.
"""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from uuid import UUID, uuid4

import psycopg
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.test import Client, override_settings
from psycopg import sql

import lychd.celery  # noqa: F401 - a message goes by the app of the service, whichever test comes first
from archive.authority import PURPOSE_OF, Action, Caller
from archive.bindings import Binding, require_profile
from archive.lifecycle import Reason, State
from archive.models import Namespace, Principal, Token
from archive.operations import host
from archive.operations.flag import flag
from archive.operations.intake import intake_many
from archive.operations.migration import migrate
from archive.operations.recall import recall
from archive.operations.transition import promote
from archive.records import NoteRecord
from archive.requests import Intake, LexicalRecall
from inspection.admin.tables import site
from semantic.operations.generations import register
from semantic.operations.preparation import prepare
from semantic.operations.recall import recall as recall_by_meaning
from semantic.presets import STAND_IN
from semantic.requests import SemanticRecall
from tests import cast
from tests.access import table

SECRET: Final = "Xylopholist"
"""A word that stands in every text and in nothing else."""
POLICY: Final = "policy-2"
EARLIER: Final = "policy-1"
PASSWORD: Final = "correct horse battery staple"

_numbers = itertools.count(1)


@dataclass
class Place:
    """One namespace and what can be named in it; in one without rows the names are names of nothing."""

    key: str
    candidate: UUID = field(default_factory=uuid4)
    promoted: UUID = field(default_factory=uuid4)
    underived: UUID = field(default_factory=uuid4)
    """Promoted, and nobody has asked for its vector."""
    intake_id: str = "taken"
    receipt_id: str = "asked"
    meant_id: str = "meant"
    derivation: UUID = field(default_factory=uuid4)
    records: dict[str, str] = field(default_factory=dict)
    """A row of each table of the admin that belongs here, by app and model."""


@dataclass
class Ground:
    """Users, tokens and namespaces; `owner` is a connection of its own, as the owner of the tables."""

    owner: "psycopg.Connection[Any]"
    secrets: dict[str, str]
    users: dict[str, User]
    shelf: Path
    """A folder with one text in it, to be taken in."""
    browsers: dict[str, Client] = field(default_factory=dict)
    """Everybody who can sign in, signed in."""
    sent: list[object] = field(default_factory=list)
    """Every message to the worker; none is delivered."""
    nobody: Client = field(default_factory=lambda: Client(raise_request_exception=False))
    places: dict[str, Place] = field(default_factory=dict)
    bodies: dict[tuple[str, ...], bytes] = field(default_factory=dict)
    """The first refusal of each kind; every other one is compared with it."""

    def fresh(self, state: str) -> Place:
        """Another namespace in this state, which nobody else will look at."""
        # In the order of their making: the standing ones come first in every list.
        key = f"{state}-{next(_numbers):06}"
        if state == "unknown":
            return Place(key)
        retained = EARLIER if state == "changed" else POLICY
        binding = host.configure_namespace(key, owner=cast.OWNER, policy_revision=retained, by="host:tests")
        place = Place(key)
        if state != "absent":
            with _open():
                _furnish(place, binding, "neighbour" if state == "others" else "recaller")
        if state == "changed":
            binding = host.configure_namespace(key, owner=cast.OWNER, policy_revision=POLICY, by="host:tests")
        self._grant(binding, ["neighbour"] if state == "others" else [*table.GRANTED, "inactive"])
        if state != "others":
            self._grant_with_flaws(binding)
        if state == "disabled":
            host.disable_namespace(key, by="host:tests")
        return place

    def _grant(self, binding: Binding, subjects: Iterable[str]) -> None:
        rows = [(subject, action) for subject in subjects for action in _ACTIONS[subject]]
        self._write_grants(binding, rows, "clock_timestamp(), NULL, NULL")

    def _grant_with_flaws(self, binding: Binding) -> None:
        everything = tuple(Action)
        self._write_grants(
            binding,
            [("expired", action) for action in everything],
            "clock_timestamp() - interval '2 days', clock_timestamp() - interval '1 day', NULL",
        )
        self._write_grants(
            binding,
            [("withdrawn", action) for action in everything],
            "clock_timestamp() - interval '2 days', NULL, clock_timestamp() - interval '1 day'",
        )
        earlier = Binding(binding.namespace, binding.owner, "policy-0")
        self._write_grants(earlier, [("outdated", action) for action in everything], "clock_timestamp(), NULL, NULL")

    def _write_grants(self, binding: Binding, rows: list[tuple[str, Action]], life: str) -> None:
        self.owner.execute(
            "INSERT INTO lychd_grant (subject, namespace_key, owner, purpose, policy_revision, action, granted_by,"
            " valid_from, valid_until, revoked_at)"
            f" SELECT subject, %s, %s, purpose, %s, action, 'host:tests', {life}"
            " FROM unnest(%s::text[], %s::text[], %s::text[]) AS given (subject, action, purpose)",
            [
                binding.namespace,
                binding.owner,
                binding.policy_revision,
                [subject for subject, _ in rows],
                [action.value for _, action in rows],
                [PURPOSE_OF[action].value for _, action in rows],
            ],
        )

    def withdraw(self, subject: str, place: Place) -> None:
        """Take everything back that a subject was granted in a namespace, on this other connection."""
        self.owner.execute(
            "UPDATE lychd_grant SET revoked_at = clock_timestamp()"
            " WHERE subject = %s AND namespace_key = %s AND revoked_at IS NULL",
            [subject, place.key],
        )

    def give_back(self, role: str, place: Place) -> None:
        """Give a role again what it holds in a namespace of its own."""
        self.withdraw(role, place)
        self._grant(Binding(place.key, cast.OWNER, POLICY), [role])

    def digest(self, *prefixes: str) -> dict[str, str]:
        """One digest a table over every row in it: of all tables, or of those whose names begin so."""
        query = sql.SQL(" UNION ALL ").join(
            # A sum over the rows' own digests needs no order.
            sql.SQL("SELECT {}, sum(hashtextextended(t::text, 0))::text FROM {} t").format(
                sql.Literal(name), sql.Identifier(name)
            )
            for name in _tables(self.owner)
            if not prefixes or name.startswith(prefixes)
        )
        return dict(self.owner.execute(query, prepare=True).fetchall())


_ACTIONS: Final[dict[str, tuple[Action, ...]]] = {"neighbour": tuple(Action), "inactive": tuple(Action)}
_names: list[str] = []


def _tables(owner: "psycopg.Connection[Any]") -> list[str]:
    if not _names:
        _names[:] = [
            name
            for (name,) in owner.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1"
            )
        ]
    return _names


@contextmanager
def _open() -> Iterator[None]:
    """Let the beginning of a place be no act that anybody asks about."""
    with override_settings(LYCHD_ARCHIVE={**require_profile(), "authorizer": "tests.racing.world.Open"}):
        yield


def _furnish(place: Place, binding: Binding, reader: str) -> None:
    writer = Caller("writer", binding)
    taken: list[NoteRecord] = [
        answer.given().note
        for answer in intake_many(
            writer,
            [
                Intake("taken", "roses", "1", f"{SECRET} roses want morning sun."),
                Intake("taken-2", "roses", "2", f"{SECRET} roses want evening sun."),
                Intake("taken-3", "ferns", "1", f"{SECRET} ferns want shade."),
            ],
        )
    ]
    place.promoted, place.candidate, place.underived = (note.id for note in taken)
    for note in (taken[0], taken[2]):
        promote(writer, cast.step(note, State.PROMOTED))
    recall(Caller(reader, binding), LexicalRecall("asked", "roses sun"))
    register(Caller("operator", binding))
    recall_by_meaning(Caller(reader, binding), SemanticRecall("meant", "roses sun", -1.0))
    place.derivation = prepare(Caller("deriver", binding), place.promoted).derivation.id


def _tell_a_story(place: Place) -> None:
    """A flag, and a change of policy that was taken back."""
    for policy in (EARLIER, POLICY):
        binding = host.configure_namespace(place.key, owner=cast.OWNER, policy_revision=policy, by="host:tests")
        migrate(Caller("operator", binding), reason="there and back")
    flag(Caller("writer", binding), place.promoted, Reason.OUTDATED)


def _records(key: str, subject: str) -> Iterator[tuple[str, str]]:
    for model in site._registry:
        rows: QuerySet[Any] = model._default_manager.all()
        names = {one.name for one in model._meta.get_fields()}
        if "namespace" in names:
            rows = rows.filter(namespace__key=key)
        elif "namespace_key" in names:
            rows = rows.filter(namespace_key=key)
        elif model is Namespace:
            rows = rows.filter(key=key)
        elif model is Principal:
            rows = rows.filter(subject=subject)
        elif model is Token:
            rows = rows.filter(principal__subject=subject)
        yield f"{model._meta.app_label}/{model._meta.model_name}", str(rows.values_list("pk", flat=True)[0])


DERIVING: Final = {
    "derivation": {
        "generation": "notes-1",
        "embed_profile": "model.embed@1",
        "embed_binding": STAND_IN,
        "attempt_seconds": 60,
    },
    "semantic": True,
}


@contextmanager
def planted(owner: "psycopg.Connection[Any]", shelf: Path) -> Iterator[Ground]:
    """Everybody of the table and a namespace in each state, with all capabilities on and no courtesy limits."""
    with (
        override_settings(
            LYCHD_ARCHIVE={**require_profile(), **DERIVING},
            LYCHD_TEST_EMBEDDER=True,
            LYCHD_THROTTLES={},
            LYCHD_TIMEOUTS=dict.fromkeys(("statement", "lock", "idle", "transaction"), 60_000),
        ),
        # Grants decide here, never how busy the machine is.
        patch("archive.limits.AUTHORITY_ANSWER_SECONDS", 60.0),
        # A command that ends closes what it opened; here the next cell goes on with it.
        patch("lychd.console.database", _already_there),
    ):
        _ACTIONS.update({role: tuple(host.actions_of([role])) for role in table.GRANTED})
        users: dict[str, User] = {}
        secrets: dict[str, str] = {}
        for role in table.ROLES.values():
            if role == "anonymous":
                continue
            make = User.objects.create_superuser if role == "root" else User.objects.create_user
            user = make(role, password=PASSWORD)
            users[role] = user
            if role != "stranger":
                host.map_principal(role, user_id=user.pk)
                secrets[role] = host.issue_token(role, by="host:tests", namespaces=None).secret
        host.set_active("inactive", active=False)
        # Their use was noted just now, so that an answer has nothing to note.
        owner.execute("UPDATE lychd_token SET last_used_at = clock_timestamp()")
        (shelf / "tulips.md").write_text("Tulips want sand.", encoding="utf-8")
        ground = Ground(owner, secrets, users, shelf)
        for role, user in users.items():
            ground.browsers[role] = Client(raise_request_exception=False)
            ground.browsers[role].force_login(user)
        ground.places = {state: ground.fresh(state) for state in table.STATES}
        for state, subject in (("own", "writer"), ("others", "neighbour")):
            with _open():
                _tell_a_story(ground.places[state])
            ground.places[state].records = dict(_records(ground.places[state].key, subject))
        with patch("semantic.tasks.run_derivation_attempt.apply_async", lambda **message: ground.sent.append(message)):
            yield ground


@contextmanager
def _already_there(*, broker: bool = False) -> Iterator[None]:
    yield
