"""One story in which every kind of secret passes through every door, well and badly; the tests look at what is left.

Whoever acts uses the operations, the API, the pages and the commands. The failures are real: rows that violate a
constraint, a trigger that fails, locks that last too long, sessions that are cancelled.
"""

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client
from django.test.utils import override_settings

from archive.lifecycle import State
from archive.models import Note, Principal
from archive.operations import host
from archive.operations.intake import intake, intake_many
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.operations.review import review
from archive.operations.transition import revoke
from archive.requests import LexicalRecall
from lychd import console
from tests import cast, flushing
from tests.canaries import sinks
from tests.canaries.canary import Canary

Answer = Any
"""What the test client gives: a response that knows more than one."""

WAITS = 4711
"""The advisory lock that a test-only trigger waits for."""


@dataclass
class Story:
    """What was planted and what was heard."""

    kept: Canary = field(default_factory=lambda: Canary.sentence("text of a note that is revoked at the end"))
    origin: Canary = field(default_factory=lambda: Canary.reference("origin of that note"))
    failed: list[Canary] = field(default_factory=list)
    """Texts and origins that never got in."""
    asked: list[Canary] = field(default_factory=list)
    """Queries."""
    credentials: list[Canary] = field(default_factory=list)
    session: Canary | None = None

    errors: list[BaseException] = field(default_factory=list)
    refused: list[Answer] = field(default_factory=list)
    answered: list[Answer] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    commands: list[tuple[int, str, str]] = field(default_factory=list)
    receipts: list[dict[str, Any]] = field(default_factory=list)
    logs: sinks.Logs = field(default_factory=sinks.Logs)

    def text(self, what: str) -> str:
        """A new text that is not going to get in."""
        canary = Canary.sentence(f"text of {what}")
        self.failed.append(canary)
        return canary.text

    def came_from(self, what: str) -> str:
        """A new origin that is not going to get in."""
        canary = Canary.reference(f"origin of {what}")
        self.failed.append(canary)
        return canary.text

    def query(self, what: str) -> str:
        canary = Canary.sentence(f"query of {what}")
        self.asked.append(canary)
        return canary.text

    @property
    def canaries(self) -> list[Canary]:
        sessions = [] if self.session is None else [self.session]
        return [self.kept, self.origin, *self.failed, *self.asked, *self.credentials, *sessions]

    def fails(self, deed: Callable[[], object]) -> None:
        """Something that must not succeed."""
        try:
            deed()
        except Exception as error:
            self.errors.append(error)
        else:
            raise AssertionError("this was to fail")


FAULTS = (
    # A CHECK and a NOT NULL quote the whole row in their detail; a trigger can be made to do so too.
    "ALTER TABLE archive_note ADD CONSTRAINT canary_check CHECK (source_revision <> 'check')",
    """CREATE FUNCTION canary_trouble() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.source_revision = 'wait' THEN
            PERFORM pg_advisory_xact_lock(4711);
        ELSIF NEW.source_revision = 'null' THEN
            NEW.kind := NULL;
        ELSIF NEW.source_revision = 'raise' THEN
            RAISE EXCEPTION 'unforeseen' USING DETAIL = NEW.text, HINT = NEW.asserted_origin;
        ELSIF NEW.source_revision = 'divide' THEN
            NEW.char_count := length(NEW.text) / 0;
        ELSIF NEW.source_revision = 'number' THEN
            NEW.char_count := 1 + 'x'::text::integer;
        END IF;
        RETURN NEW;
    END $$""",
    "CREATE TRIGGER canary_trouble BEFORE INSERT ON archive_note FOR EACH ROW EXECUTE FUNCTION canary_trouble()",
    """CREATE FUNCTION canary_recall() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.schema := 1 / 0;
        RETURN NEW;
    END $$""",
    """CREATE TRIGGER canary_recall BEFORE INSERT ON archive_recall FOR EACH ROW
    WHEN (starts_with(NEW.request_id, 'trouble')) EXECUTE FUNCTION canary_recall()""",
)
REPAIRS = (
    "DROP TRIGGER IF EXISTS canary_recall ON archive_recall",
    "DROP FUNCTION IF EXISTS canary_recall()",
    "DROP TRIGGER IF EXISTS canary_trouble ON archive_note",
    "DROP FUNCTION IF EXISTS canary_trouble()",
    "ALTER TABLE archive_note DROP CONSTRAINT IF EXISTS canary_check",
)
FAULTY = ("check", "null", "raise", "divide", "number")


@contextmanager
def trouble(owner: "psycopg.Connection[Any]") -> Iterator[None]:
    """Let the database fail where no code expects it, as the owner can make it."""
    try:
        for statement in FAULTS:
            owner.execute(statement.encode())
        yield
    finally:
        for statement in REPAIRS:
            owner.execute(statement.encode())


def tell(owner: "psycopg.Connection[Any]") -> Story:
    """Tell the story up to the moment before the revocation."""
    story = Story()
    garden = cast.plant()
    host.grant("alice", garden.binding, host.actions_of(["inspector"]), by="host:tests")
    with sinks.listening() as logs:
        story.logs = logs
        _good_days(story, garden)
        with trouble(owner):
            _bad_days(story, garden, owner)
        _at_the_doors(story, garden)
        _on_the_command_line(story)
    connections["default"].close()
    return story


def _good_days(story: Story, garden: cast.Garden) -> None:
    alice, bob = garden.caller("alice"), garden.caller("bob")
    note = cast.promoted(alice, story.kept.text, source="canary", asserted_origin=story.origin.text)
    story.receipts.append(recall(bob, LexicalRecall("kept", story.query("a recall"))).receipt)
    story.receipts.append(recall(bob, LexicalRecall("found", " ".join(story.kept.pieces))).receipt)
    assert story.receipts[-1]["outcome"] == "selected"
    assert resolve(bob, "found").sources[0].text == story.kept.text
    assert review(alice, note.id).text == story.kept.text
    gone = Canary.sentence("text of a note that was revoked as a candidate")
    origin = story.came_from("a note that was revoked as a candidate")
    revoke(alice, cast.step(cast.admitted(alice, gone.text, source="gone", asserted_origin=origin), State.REVOKED))
    story.failed.append(gone)


def _bad_days(story: Story, garden: cast.Garden, owner: "psycopg.Connection[Any]") -> None:
    alice, bob = garden.caller("alice"), garden.caller("bob")
    # Who may not, what was said already, what conflicts.
    story.fails(lambda: intake(bob, cast.wanted(story.text("somebody who may not"), source="never")))
    story.fails(lambda: intake(alice, cast.wanted(story.text("a conflict"), source="canary")))
    story.fails(lambda: intake(alice, cast.wanted(story.text("a tombstone"), source="gone")))
    story.fails(lambda: cast.wanted(story.text("a NUL") + "\0"))
    story.fails(lambda: cast.wanted(story.text("too much") * 1_000))
    story.fails(lambda: recall(bob, LexicalRecall("kept", story.query("a conflict"))))
    story.fails(lambda: LexicalRecall("long", story.query("too much") * 100))
    for revision in FAULTY:
        text, origin = story.text(f"the fault {revision}"), story.came_from(f"the fault {revision}")
        wanted = cast.wanted(text, source="faulty", revision=revision, asserted_origin=origin)
        story.fails(lambda wanted=wanted: intake(alice, wanted))  # type: ignore[misc]
        text, origin = (
            story.text(f"the fault {revision} in a batch"),
            story.came_from(f"the fault {revision} in a batch"),
        )
        wanted = cast.wanted(text, source="faulty", revision=revision, asserted_origin=origin)
        story.fails(lambda wanted=wanted: intake_many(alice, [wanted]))  # type: ignore[misc]
    story.fails(lambda: recall(bob, LexicalRecall("trouble", story.query("a fault"))))
    _too_slow(story, garden, owner)


_PATIENT = {"statement": 60_000, "lock": 60_000, "idle": 60_000, "transaction": 60_000}


def _too_slow(story: Story, garden: cast.Garden, owner: "psycopg.Connection[Any]") -> None:
    """A lock that lasts too long, a statement that lasts too long, and one that is cancelled while others look on."""
    alice = garden.caller("alice")
    owner.execute("SELECT pg_advisory_lock(%s)", [WAITS])
    try:
        for limit in ("lock", "statement"):
            with override_settings(LYCHD_TIMEOUTS={**_PATIENT, limit: 20}):
                wanted = cast.wanted(story.text(f"a {limit} time-out"), source="slow", revision="wait")
                story.fails(lambda wanted=wanted: intake(alice, wanted))  # type: ignore[misc]
        with override_settings(LYCHD_TIMEOUTS=_PATIENT):
            wanted = cast.wanted(story.text("a cancelled session"), source="slow", revision="wait")
            waiting = threading.Thread(target=_wait_in_vain, args=(story, alice, wanted))
            waiting.start()
            pid = _whoever_waits(owner, waiting)
            story.statements.append(sinks.statements(owner))
            owner.execute("SELECT pg_cancel_backend(%s)", [pid])
            waiting.join()
    finally:
        owner.execute("SELECT pg_advisory_unlock(%s)", [WAITS])


def _wait_in_vain(story: Story, caller: Any, wanted: Any) -> None:
    try:
        story.fails(lambda: intake(caller, wanted))
    finally:
        connections["default"].close()


def _whoever_waits(owner: "psycopg.Connection[Any]", waiting: threading.Thread) -> int:
    while waiting.is_alive():
        found = owner.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = %s", [WAITS]
        ).fetchone()
        if found:
            return int(found[0])
    raise AssertionError("nobody waited")


def _at_the_doors(story: Story, garden: cast.Garden) -> None:
    issued = host.issue_token("alice", by="host:tests", namespaces=None)
    wrong = Canary.password("token that nobody issued")
    story.credentials += [Canary.of_secret("token", issued.secret), wrong]
    api = _Api(issued.secret)
    ns = "/api/v1/ns/garden"
    note = Note.objects.get(source__source_key="canary")

    # Well.
    story.answered += [
        api.post(f"{ns}/recalls", {"request_id": "http", "query": story.query("the API")}),
        api.get(f"{ns}/notes/{note.id}"),
        api.get(f"{ns}/events"),
        api.get(f"{ns}/notes/{note.id}/events"),
        api.get(f"{ns}/intakes?mine"),
        api.get(f"{ns}/notes"),
    ]
    assert {answer.status_code for answer in story.answered} <= {200, 201}, story.answered

    # Badly.
    def said(**changes: Any) -> dict[str, Any]:
        return {"request_id": cast.fresh(), "source_key": "canary", "source_revision": "1", **changes}

    story.refused += [
        api.post(f"{ns}/notes", said(text=story.text("a conflict over HTTP"))),
        api.post(f"{ns}/notes", said(text=[story.text("a list")])),
        api.post(f"{ns}/notes", said(text="Roses.", asserted_origin=story.came_from("a conflict over HTTP"))),
        api.post(f"{ns}/notes", said(text="Roses.", asserted_origin=story.came_from("free words") + " and words")),
        api.post(f"{ns}/notes", said(text="Roses.", asserted_origin=[story.came_from("a list")])),
        api.post(f"{ns}/notes", said(text=story.text("an unknown field"), colour=1)),
        api.post(f"{ns}/notes", said(text=story.text("a key that is none"), source_key="no key")),
        api.post(f"{ns}/notes", said(text=story.text("too much over HTTP") * 1_000)),
        api.post(f"{ns}/notes", said(text=story.text("a wide body") * 100_000)),
        api.raw(f"{ns}/notes", b'{"text": "' + story.text("no JSON").encode() + b'"'),
        api.raw(f"{ns}/notes", b'{"text": "\xff ' + story.text("no UTF-8").encode() + b'"}'),
        api.raw(f"{ns}/notes", json.dumps(said(text=story.text("other media"))).encode(), media="text/plain"),
        api.post(f"{ns}/recalls", {"request_id": "http", "query": story.query("a conflict over HTTP")}),
        api.post(f"{ns}/recalls", {"request_id": "x", "query": story.query("too much over HTTP") * 100}),
        api.post(f"{ns}/recalls", {"request_id": "x", "query": {"words": story.query("an object")}}),
        api.post("/api/v1/ns/meadow/recalls", {"request_id": "x", "query": story.query("another namespace")}),
        _Api(wrong.text).post(f"{ns}/recalls", {"request_id": "x", "query": story.query("a wrong token")}),
    ]
    with flushing.as_owner() as owner, trouble(owner):
        for revision in FAULTY:
            text, origin = (
                story.text(f"the fault {revision} over HTTP"),
                story.came_from(f"the fault {revision} over HTTP"),
            )
            wanted = said(text=text, asserted_origin=origin, source_revision=revision)
            story.refused.append(api.post(f"{ns}/notes", wanted))
        body = {"request_id": "trouble-http", "query": story.query("a fault over HTTP")}
        story.refused.append(api.post(f"{ns}/recalls", body))
        story.refused.append(
            api.post(
                f"{ns}/notes/batch",
                {"items": [said(text=story.text("a fault in a batch over HTTP"), source_revision="check")]},
            )
        )
    _with_a_browser(story, note)


def _with_a_browser(story: Story, note: Note) -> None:
    right, wrong = Canary.password("password"), Canary.password("password that was mistyped")
    story.credentials += [right, wrong]
    user = get_user_model().objects.create_user("rosa", password=right.text)
    Principal.objects.filter(subject="alice").update(user=user)
    client = Client(raise_request_exception=False)
    story.answered.append(client.post("/sign-in", {"username": "rosa", "password": wrong.text}))
    assert "_auth_user_id" not in client.session
    story.answered.append(client.post("/sign-in", {"username": "rosa", "password": right.text}))
    assert client.session["_auth_user_id"]
    story.session = Canary.of_secret("session key", str(client.session.session_key))
    story.answered += [client.get("/ns/garden"), client.get("/ns/garden/notes")]
    page = client.get(f"/ns/garden/notes/{note.id}")
    assert page.status_code == 200
    # Shown on purpose to whoever may review it; what follows is a decision on a version that is not there.
    story.refused.append(client.post(f"/ns/garden/notes/{note.id}/revoke", {"expected_version": "9"}))
    story.refused.append(client.get("/ns/garden/notes/7d444840-9dc0-41d1-b245-5ffdce74fad2"))


def look_again(note_id: UUID) -> list[Answer]:
    """Everything that every member of the cast is shown of the note, at every address that could show it."""
    shown: list[Answer] = []
    ns = "/api/v1/ns/garden"
    for subject in cast.ROLES:
        api = _Api(host.issue_token(subject, by="host:tests", namespaces=None).secret)
        shown += [
            *(api.get(f"{ns}/notes/{note_id}{part}") for part in ("", "/events", "/text")),
            *(
                api.get(f"{ns}/{part}")
                for part in ("notes", "events", "intakes?mine", "receipts/kept", "receipts/found")
            ),
            api.post(f"{ns}/recalls/found/resolve", {}),
            api.post(f"{ns}/recalls/kept/resolve", {}),
        ]
        client = Client(raise_request_exception=False)
        principal = Principal.objects.get(subject=subject)
        user = principal.user or get_user_model().objects.create_user(f"user-{subject}")
        Principal.objects.filter(subject=subject, user=None).update(user=user)
        client.force_login(user)
        shown += [
            client.get(f"/ns/garden{part}")
            for part in (
                *("", "/notes", f"/notes/{note_id}", f"/notes/{note_id}/revocation"),
                *("/events", "/receipts", "/receipts/found", "/receipts/found/file"),
            )
        ]
    return shown


class _Api:
    def __init__(self, secret: str) -> None:
        self.client = Client(raise_request_exception=False)
        self.headers = {"authorization": f"Bearer {secret}"}

    def get(self, path: str) -> Answer:
        return self.client.get(path, headers=self.headers)

    def post(self, path: str, body: Any) -> Answer:
        return self.raw(path, json.dumps(body).encode())

    def raw(self, path: str, content: bytes, media: str = "application/json") -> Answer:
        return self.client.generic("POST", path, content, content_type=media, headers=self.headers)


def _on_the_command_line(story: Story) -> None:
    def run(*arguments: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = console.run([*arguments, "--namespace", "garden"])
        story.commands.append((code, out.getvalue(), err.getvalue()))

    run("recall", story.query("a command"), "--as", "bob")
    run("recall", story.query("a command as JSON"), "--as", "bob", "--json")
    run("recall", story.query("a command of nobody's"), "--as", "charlie")
    run("recall", story.query("a command that asks too much") * 100, "--as", "bob")
    run("recall", story.query("a conflict of commands"), "--as", "bob", "--request-id", "kept")
    run("notes", "--as", "alice")
    run("receipt", "show", "kept", "--as", "ivy")
    run("events", "--as", "ivy")
