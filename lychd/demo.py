"""The demonstration: an instance of its own with a small handbook in it, a story told in the terminal, and a way out.

Everything goes through the operations, as the handbook's agents and curators. Starting again finds what is there: the
load reads how each note stands and does what is missing, so it can be interrupted anywhere.
"""

import argparse
import contextlib
import fcntl
import json
import os
import shlex
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connections
from django.urls import reverse
from psycopg import sql

from archive import bindings, seals
from archive.authority import Caller
from archive.lifecycle import Reason, State
from archive.operations import host
from archive.operations.intake import intake_many
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.operations.review import review
from archive.operations.transition import promote, transition_many
from archive.records import NoteRecord
from archive.refusals import Conflict, SourceRevisionRevoked
from archive.requests import Intake, LexicalRecall, Transition
from archive.selections import Source
from archive.transactions import reading
from inspection.cursors import PageRequest
from inspection.reads import list_notes
from lychd import databases, demo_meaning, embedded, handbook, serving, upgrades
from lychd.commands.host import ending_by_signal, give, make_password, require_fences, switch_on
from lychd.commands.telling import Told, Unready, indented, remark, tell
from lychd.console import database
from lychd.demo_instance import INSTANCE, MEANING, SUFFIX
from lychd.environment import written
from lychd.handbook import HandbookNote

NAMESPACE: Final = "handbook"
OWNER: Final = "ticket-office"
POLICY: Final = "policy-1"
LEAD: Final = "lead-curator"
READER: Final = "answer-agent"
WRITER: Final = "incident-agent"
ROLES: Final[dict[str, tuple[str, ...]]] = {
    "incident-agent": ("writer",),
    "release-agent": ("writer",),
    "support-agent": ("writer",),
    READER: ("recaller",),
    LEAD: ("curator", "inspector", "recaller"),
    "oncall-curator": ("curator", "inspector"),
    demo_meaning.OPERATOR: demo_meaning.ROLES,
}
_TOKEN_DAYS: Final = 7
_PATIENCE: Final = 20.0
_EXCERPT: Final = 2
_WIDTH: Final = 100


# --- its own database ------------------------------------------------------------------------------------------------


def _command() -> str:
    """Write the command as it can be typed here: by its name where the shell finds it, else by its path."""
    program = Path(sys.argv[0])
    if program.name != "lychd" or shutil.which("lychd"):
        return "lychd"
    try:
        return str(program.relative_to(Path.cwd()))
    except ValueError:
        return str(program)


@contextlib.contextmanager
def _database() -> Iterator[None]:
    if settings.LYCHD_EMBEDDED:
        remark("Starting PostgreSQL …")
    else:
        _create_beside()
    with database(broker=True):
        yield


def _create_beside() -> None:
    wanted = connections["owner"].get_connection_params()["dbname"]
    try:
        with _as_owner(wanted.removesuffix(SUFFIX)) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [wanted]).fetchone():
                remark(f"Making the database {wanted} …")
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(wanted)))
        with _as_owner(wanted) as connection:
            for extension in ("vector", "pg_trgm"):
                connection.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(extension)))
    except psycopg.Error as error:
        raise Unready(
            f"The owner's login cannot make the database {wanted} with its extensions (SQLSTATE {error.sqlstate})."
            " Let it (CREATEDB), or unset DATABASE_URL to use the embedded server."
        ) from None


def _as_owner(database: str) -> "psycopg.Connection[Any]":
    found = connections["owner"].get_connection_params()
    login = {name: found[name] for name in ("user", "password", "host", "port") if found.get(name)}
    return psycopg.connect(**login, dbname=database, autocommit=True)


# --- one that serves -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _serving(state: Path) -> Iterator[None]:
    """Leave word of this process for `--remove`: the lock says that it lives, the number in it who it is."""
    descriptor = os.open(state / "serving", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            remark(f"A demo runs already. This one works beside it, and {LEAD} gets a new password.")
        else:
            os.truncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        os.close(descriptor)


def _stop_serving(state: Path) -> bool:
    """End a demonstration that serves; its number is believed only while its lock is held."""
    stopped = False
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            descriptor = os.open(state / "serving", os.O_RDWR)
        except FileNotFoundError:
            return stopped
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            number = os.read(descriptor, 32)
            if not stopped and number.isdigit():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(number), signal.SIGTERM)
                    stopped = True
        else:
            return stopped
        finally:
            os.close(descriptor)
        if time.monotonic() > until:
            raise Unready("The running demo does not end; stop it with Ctrl-C and remove it then.")
        time.sleep(0.05)


def remove() -> Told:
    """Stop the demonstration and delete everything that it made."""
    state: Path = settings.LYCHD_STATE_DIR
    there = (state / "serving").exists()
    stopped = _stop_serving(state)
    if settings.LYCHD_EMBEDDED:
        embedded.remove(state)
    else:
        _drop_beside()
        shutil.rmtree(state, ignore_errors=True)
    text = f"Everything in {state} is gone, and its database." if there else f"There is no demo in {state}."
    if stopped:
        text = f"The running demo was stopped. {text}"
    return Told({"removed": str(state) if there else None, "stopped": stopped}, text)


def _drop_beside() -> None:
    name = connections["owner"].get_connection_params()["dbname"]
    try:
        with _as_owner(name.removesuffix(SUFFIX)) as connection:
            databases.drop(connection, name)
    except psycopg.Error as error:
        raise Unready(f"The database {name} cannot be dropped (SQLSTATE {error.sqlstate}).") from None


# --- the load --------------------------------------------------------------------------------------------------------


def load() -> int:
    """Bring every note of the handbook to where the handbook leaves it; returns how many acts that took."""
    notes = handbook.notes()
    standing = _standing()
    acts = 0
    for agent in sorted({note.by for note in notes}):
        missing = [note for note in notes if note.by == agent and _key(note) not in standing]
        if missing:
            acts += _admit(Caller.in_namespace(agent, NAMESPACE), missing)
    if acts:
        standing = _standing()
    # A source's revisions are decided in their order: each promotion archives the one before it.
    rounds: dict[str, int] = {}
    ordered: dict[int, list[HandbookNote]] = {}
    for note in notes:
        rounds[note.source_key] = rounds.get(note.source_key, 0) + 1
        ordered.setdefault(rounds[note.source_key], []).append(note)
    for _, turn in sorted(ordered.items()):
        waiting = [note for note in turn if standing[_key(note)].state == State.CANDIDATE]
        acts += _decide([note for note in waiting if note.end_state in ("promoted", "archived")], State.PROMOTED)
        acts += _decide([note for note in waiting if note.end_state == "revoked"], State.REVOKED)
    if acts:
        standing = _standing()
    by_hand = [note for note in notes if note.archived_by_hand and standing[_key(note)].state == State.PROMOTED]
    return acts + _decide(by_hand, State.ARCHIVED)


def _key(note: HandbookNote | NoteRecord) -> tuple[str, str]:
    return note.source_key, note.source_revision


def _standing() -> dict[tuple[str, str], NoteRecord]:
    """How every note of the namespace stands now, by source and revision."""
    lead = Caller.in_namespace(LEAD, NAMESPACE)
    found: dict[tuple[str, str], NoteRecord] = {}
    page = list_notes(lead, PageRequest(limit=100))
    while True:
        found |= {_key(note): note for note in page.items}
        if page.next_cursor is None:
            return found
        page = list_notes(lead, PageRequest(limit=100, cursor=page.next_cursor))


def _admit(agent: Caller, notes: Sequence[HandbookNote]) -> int:
    wanted = [
        Intake(
            request_id=f"demo-{note.source_key.replace('/', '.')}-{note.source_revision}",
            source_key=note.source_key,
            source_revision=note.source_revision,
            text=note.text,
            asserted_origin=note.asserted_origin,
        )
        for note in notes
    ]
    for answer in intake_many(agent, wanted):
        answer.given()
    return len(wanted)


def _decide(notes: Sequence[HandbookNote], state: State) -> int:
    """Let each note's own curator take it to a state; one that moved meanwhile was decided by somebody else."""
    standing = _standing() if notes else {}
    for curator in sorted({note.curator or LEAD for note in notes}):
        changes = [
            Transition(
                standing[_key(note)].id,
                state,
                standing[_key(note)].lifecycle_version,
                Reason(note.reason) if note.reason is not None and state is not State.PROMOTED else None,
            )
            for note in notes
            if (note.curator or LEAD) == curator
        ]
        for answer in transition_many(Caller.in_namespace(curator, NAMESPACE), changes):
            if answer.refusal is not None and not isinstance(answer.refusal, Conflict):
                raise answer.refusal
    return len(notes)


# --- the story -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Story:
    """What the terminal tells: the same question before and after one decision."""

    question: str
    source_key: str
    before: dict[str, Any]
    decided: str
    text: str
    after: dict[str, Any]
    resolved: tuple[Source, ...]
    verified: bool


def tell_story() -> Story:
    """Ask, promote, ask again, resolve, verify; on a later start the first receipt is the retained one."""
    story = handbook.story()
    reader, lead = Caller.in_namespace(READER, NAMESPACE), Caller.in_namespace(LEAD, NAMESPACE)
    before = recall(reader, LexicalRecall("demo-story-before", story.question)).receipt
    note = _standing()[story.candidate.source_key, story.candidate.source_revision]
    try:
        text = review(lead, note.id).text
    except SourceRevisionRevoked:
        text = "(revoked meanwhile: its text is gone)"
    decided = f"{LEAD} has decided at an earlier start; it is {note.state} now."
    if note.state == State.CANDIDATE:
        # Another start beside this one may be quicker; the decision is the same.
        with contextlib.suppress(Conflict):
            promote(lead, Transition(note.id, State.PROMOTED, note.lifecycle_version))
        decided = f"{LEAD} reads it and promotes it, on the version that was read: {note.lifecycle_version}."
    after = recall(reader, LexicalRecall(f"demo-story-{uuid4()}", story.question)).receipt
    resolved = resolve(reader, after["request_id"]).sources if after["selected"] else ()
    for number, more in enumerate(story.more_questions, start=1):
        recall(reader, LexicalRecall(f"demo-question-{number}", more.question))
    # Through JSON and back, as somebody else would get it.
    verified = seals.verify(json.loads(json.dumps(after)))
    return Story(story.question, story.candidate.source_key, before, decided, text, after, resolved, verified)


def _story_lines(story: Story, receipt_file: Path) -> list[str]:
    paragraphs = [part for part in story.text.split("\n") if part][:_EXCERPT]
    excerpt = "\n".join(line for part in paragraphs for line in textwrap.wrap(part, _WIDTH))
    top = next((one for one in story.resolved if one.source_key == story.source_key), None)
    named = "" if top is None else f"; number {top.rank} is {top.source_key}, revision {top.source_revision}"
    outcome = "it matches" if story.verified else "IT DOES NOT MATCH"
    return [
        f'1. {READER} asks: "{story.question}"',
        *_selection(story.before, story.source_key),
        f"   The note that answers it, {story.source_key}, was a candidate then,",
        "   and what no curator has promoted is not recalled.",
        "",
        f"2. {story.decided}",
        indented(excerpt, "   | "),
        "",
        f"3. {READER} asks again:",
        *_selection(story.after, story.source_key),
        "",
        "4. A receipt holds digests and scores and not a word of text. Resolving it gives the texts,",
        f"   all of them or none: {len(story.resolved)} sources{named}.",
        "",
        f"5. Anybody can verify a receipt, without the database: {outcome}.",
        f"   {_command()} receipt verify {shlex.quote(str(receipt_file))}",
    ]


def _selection(receipt: dict[str, Any], wanted: str) -> list[str]:
    if not receipt["selected"]:
        return ["   a miss: nothing promoted shares a word with it"]
    receipt_line = f"     receipt {receipt['receipt_id']}, digest {receipt['receipt_digest'][:16]}…"
    return [*demo_meaning.chosen(receipt, wanted), receipt_line]


# --- the show --------------------------------------------------------------------------------------------------------


def show(options: argparse.Namespace) -> None:
    """Load, tell the story, print the credentials once, and serve until Ctrl-C."""
    state: Path = settings.LYCHD_STATE_DIR
    demo_meaning.require_embedder()
    with _database(), _serving(state):
        _prepare(state, MEANING[options.model])
        acts = load()
        remark(f"The handbook is loaded ({acts} acts)." if acts else "The handbook was loaded already.")
        story = tell_story()
        demo_meaning.derive(NAMESPACE, state)
        asked = demo_meaning.ask(NAMESPACE, READER, story.question)
        receipt_file = state / "receipt.json"
        receipt_file.write_text(json.dumps(story.after, indent=2) + "\n", encoding="ascii")
        door = None if options.no_serve else serving.open_door("127.0.0.1", options.port)
        if door is not None and door.moved:
            remark(f"Port {serving.DEFAULT_PORT} is taken, so this is port {door.port}.")
        document = {"address": None if door is None else door.address, **_credentials()}
        lines = [
            *_story_lines(story, receipt_file),
            "",
            *demo_meaning.lines(asked, READER, story.source_key),
            "",
            *_way_in(document, story.question),
        ]
        document |= {
            "question": story.question,
            "source_key": story.source_key,
            "before": story.before,
            "after": story.after,
            "verified": story.verified,
            "by_meaning": [one.as_json() for one in asked],
            "receipt_file": str(receipt_file),
        }
        connections.close_all()
        told = Told(document, "\n".join(lines))
        if door is None:
            tell(told, as_json=options.as_json)
        else:
            with ending_by_signal():
                serving.serve(door, workers=1, ready=lambda: tell(told, as_json=options.as_json), quiet=True)


def _prepare(state: Path, meaning: Mapping[str, str]) -> None:
    """Migrate, switch the profile on in the instance's file, and give everybody their roles."""
    waiting = upgrades.pending("owner")
    if waiting:
        remark(f"Making the tables ({len(waiting)} migrations) …")
        upgrades.migrate("owner")
    require_fences()
    switch_on(state)
    _write_down(meaning, state / "environment")
    with reading():
        binding = bindings.source().find(NAMESPACE)
    if binding is None:
        binding = host.configure_namespace(NAMESPACE, owner=OWNER, policy_revision=POLICY, by=host.host_actor())
    for subject, names in ROLES.items():
        give(subject, names, binding, user_id=_lead_user() if subject == LEAD else None)


def _write_down(meaning: Mapping[str, str], file: Path) -> None:
    """Let the command line that works beside the demonstration recall by meaning as well."""
    if meaning.items() <= written(file).items():
        return
    kept = [line for line in file.read_text(encoding="utf-8").splitlines() if line.partition("=")[0] not in meaning]
    draft = file.with_name(f"meaning.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text("\n".join([*kept, *map("=".join, meaning.items()), ""]), encoding="utf-8")
    draft.rename(file)


def _lead_user() -> int:
    user, _ = get_user_model().objects.get_or_create(username=LEAD, defaults={"is_staff": True})
    return int(user.pk)


def _credentials() -> dict[str, Any]:
    """A new password and new tokens; those of an earlier start go on until they end of themselves."""
    user = get_user_model().objects.get(username=LEAD)
    password = make_password()
    user.set_password(password)
    user.save(update_fields=["password"])
    by = host.host_actor()
    return {
        "namespace": NAMESPACE,
        "user": LEAD,
        "password": password,
        "recall_token": host.issue_token(
            READER, by=by, namespaces=[NAMESPACE], name="demo recall", days=_TOKEN_DAYS
        ).secret,
        "write_token": host.issue_token(
            WRITER, by=by, namespaces=[NAMESPACE], name="demo write", days=_TOKEN_DAYS
        ).secret,
    }


def _way_in(told: dict[str, Any], question: str) -> list[str]:
    address = told["address"] or "http://127.0.0.1:8000"
    body = json.dumps({"request_id": "hello-1", "query": question})
    opened = told["address"] or f"not served now; `{_command()} demo` serves it"
    again = "Ctrl-C ends it; starting" if told["address"] else "Starting"
    return [
        "Everything below is shown once.",
        "",
        f"  address       {opened}",
        f"  sign in       {told['user']}",
        f"  password      {told['password']}",
        f"  recall token  {told['recall_token']}",
        f"  write token   {told['write_token']}",
        f"  generations   {address}{reverse('generations', args=[NAMESPACE])}",
        "",
        "Ask like an agent:",
        "",
        f"  curl -s {address}/api/v1/ns/{NAMESPACE}/recalls \\",
        f"    -H 'Authorization: Bearer {told['recall_token']}' \\",
        f"    -H 'Content-Type: application/json' -d {shlex.quote(body)}",
        "",
        "In a second terminal the command line works on it too:",
        "",
        f"  export LYCHD_INSTANCE={INSTANCE}",
        f"  {_command()} notes --as {LEAD}",
        f"  {_command()} doctor",
        "",
        f"{again} again keeps what is there. Delete everything: {_command()} demo --remove",
    ]
