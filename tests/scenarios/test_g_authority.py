"""G. Authority rechecks."""

import hashlib
import io
import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from django.contrib.auth import get_user_model

from archive import authority, limits
from archive.authority import Action, AuthorityQuestion, Caller, subject_of_user
from archive.lifecycle import Reason, State
from archive.models import IntakeRequest, Note, Recall
from archive.operations import host
from archive.operations.flag import flag
from archive.operations.intake import Outcome, intake, intake_many
from archive.operations.migration import migrate
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.operations.review import review
from archive.operations.transition import archive, promote, revoke, transition_many
from archive.refusals import AuthorityRefused
from archive.requests import Intake, LexicalRecall, Transition
from inspection import discovery, reads
from inspection.cursors import PageRequest
from lychd.logs import formatter
from tests import cast
from tests.scenarios.acts import ACTS, SNAPSHOTS, Scene, scene
from tests.scenarios.counting import Counts, refused


def test_s100_a_user_without_a_principal_is_nobody(garden, counts: Counts):
    user = get_user_model().objects.create_user("frank")
    with counts.refused(403, "authority_refused"):
        intake(Caller.in_namespace(subject_of_user(user.pk), cast.GARDEN), cast.wanted())
    assert subject_of_user(user.pk) is None
    assert subject_of_user(None) is None


def test_s100_a_principal_that_is_switched_off_is_nobody_too(garden, wanda, counts: Counts):
    user = get_user_model().objects.create_user("wanda")
    host.map_principal("wanda", user_id=user.pk)
    assert subject_of_user(user.pk) == "wanda"
    host.set_active("wanda", active=False)

    assert subject_of_user(user.pk) is None
    with counts.refused(403, "authority_refused"):
        intake(wanda, cast.wanted())


def test_s101_a_superuser_without_a_grant_may_nothing(garden, alice, counts: Counts):
    user = get_user_model().objects.create_superuser("root", password="a long enough secret")
    host.map_principal("root", user_id=user.pk)
    note = cast.admitted(alice)
    root = Caller.in_namespace(subject_of_user(user.pk), cast.GARDEN)

    with counts.refused(403, "authority_refused"):
        reads.list_notes(root, PageRequest())
    with counts.refused(403, "authority_refused"):
        promote(root, cast.step(note, State.PROMOTED))
    with counts.refused(403, "authority_refused"):
        cast.asked(root)


@pytest.mark.parametrize("name", ACTS)
def test_s101_neither_may_anybody_else_without_a_grant(garden, alice, bob, counts: Counts, name):
    at = scene(alice, bob)
    with counts.refused(403, "authority_refused"):
        ACTS[name].call(garden.caller("charlie"), at)


def test_s102_a_refusal_under_the_hold_leaves_no_trace(wanda, scripted, counts: Counts):
    scripted.script = [True, False]
    with counts.refused(403, "authority_refused"):
        intake(wanda, Intake("r1", "s", "1", "Roses."))
    assert scripted.calls == 2
    assert (counts.last["archive_note"][0], counts.last["archive_namespace"][0]) == (0, 0)


def test_s103_a_refusal_after_the_commit_withholds_and_undoes_nothing(wanda, scripted, counts: Counts):
    scripted.script = [True, True, False]
    with refused(403, "authority_refused"):
        intake(wanda, Intake("r1", "s", "1", "Roses."))
    counts.grew(
        archive_namespace=1, archive_source=1, archive_note=1, archive_lifecycle_event=1, archive_intake_request=1
    )

    scripted.script, scripted.calls = [True], 0
    again = intake(wanda, Intake("r1", "s", "1", "Roses."))

    assert (again.outcome, again.note.id) == (Outcome.REPLAYED, Note.objects.get().id)
    counts.unchanged()


def test_s104_so_it_is_with_a_promotion(alice, ivy, scripted):
    note = cast.admitted(alice)
    scripted.script, scripted.calls = [True, True, False], 0
    with refused(403, "authority_refused"):
        promote(alice, cast.step(note, State.PROMOTED))

    scripted.script, scripted.calls = [True], 0
    record = reads.note_record(ivy, note.id)
    assert (record.state, record.lifecycle_version) == ("promoted", 2)


@pytest.mark.parametrize("name", [name for name in ACTS if name not in SNAPSHOTS])
@pytest.mark.parametrize("point", [0, 1, 2])
def test_s102_to_s104_hold_for_every_act_and_every_point(garden, alice, bob, scripted, counts: Counts, name, point):
    at = scene(alice, bob)
    scripted.script, scripted.calls = [*[True] * point, False], 0
    counts.mark()
    caller = garden.caller("bob" if name in {"replay", "resolve"} else "alice")

    with refused(403, "authority_refused"):
        ACTS[name].call(caller, at)

    assert scripted.calls == point + 1
    if point < 2:
        counts.unchanged()


@pytest.mark.parametrize("name", SNAPSHOTS)
@pytest.mark.parametrize("point", [0, 1])
def test_s102_reads_are_asked_before_and_after(alice, bob, scripted, counts: Counts, name, point):
    at = scene(alice, bob)
    scripted.script, scripted.calls = [*[True] * point, False], 0
    with counts.refused(403, "authority_refused"):
        ACTS[name].call(alice, at)
    assert scripted.calls == point + 1


@pytest.mark.parametrize("point", [0, 1, 2])
@pytest.mark.parametrize("raised", [RuntimeError("down"), TimeoutError(), AuthorityRefused()], ids=repr)
def test_s106_an_authorizer_that_fails_is_no_miss_and_no_allowance(alice, bob, scripted, counts: Counts, point, raised):
    cast.promoted(alice)
    scripted.script, scripted.calls = [*[True] * point, raised], 0
    counts.mark()

    with refused(503, "authority_unavailable"):
        recall(bob, LexicalRecall("q1", "roses"))

    # The last point stands after the commit: what was published stays, and the answer is withheld.
    counts.grew(archive_recall=1 if point == 2 else 0)


@pytest.mark.parametrize("name", ACTS)
def test_s106_holds_for_every_act(alice, bob, scripted, counts: Counts, name):
    at = scene(alice, bob)
    scripted.script, scripted.calls = [RuntimeError("down")], 0
    with counts.refused(503, "authority_unavailable"):
        ACTS[name].call(alice, at)


class Dawdler:
    """Says yes, and takes so many seconds over it, by a clock that nobody waits for."""

    now: ClassVar[float] = 1_000.0
    durations: ClassVar[list[float]] = []

    def decide_many(self, questions):
        Dawdler.now += Dawdler.durations.pop(0)
        return [True] * len(questions)


@pytest.mark.parametrize(
    ("durations", "allowed"),
    [
        ([0.0, limits.AUTHORITY_ANSWER_SECONDS, 0.0], True),
        ([0.0, limits.AUTHORITY_ANSWER_SECONDS + 0.25, 0.0], False),
        ([9.0, 0.0, 9.0], True),
    ],
    ids=["just in time", "too late under the hold", "late where nobody waits"],
)
def test_s106_an_answer_under_the_hold_has_to_come_within_half_a_second(
    wanda, settings, counts: Counts, monkeypatch, durations, allowed
):
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "authorizer": f"{__name__}.Dawdler"}
    monkeypatch.setattr(authority, "time", SimpleNamespace(monotonic=lambda: Dawdler.now))
    monkeypatch.setattr(Dawdler, "durations", list(durations))
    if allowed:
        assert intake(wanda, cast.wanted()).outcome is Outcome.CREATED
        return
    with counts.refused(503, "authority_unavailable"):
        intake(wanda, cast.wanted())


class Hanging:
    """Says yes until `hangs_at`, counted from 0, and then nothing until it is let go."""

    hangs_at: ClassVar[int] = 0
    calls: ClassVar[int] = 0
    go: ClassVar[threading.Event] = threading.Event()

    def decide_many(self, questions):
        Hanging.calls += 1
        if Hanging.calls > Hanging.hangs_at:
            Hanging.go.wait(15)
        return [True] * len(questions)


def hanging_threads() -> int:
    return sum(thread.name == "authorizer" for thread in threading.enumerate())


@pytest.fixture
def hanging(settings, monkeypatch):
    monkeypatch.setattr(Hanging, "calls", 0)
    monkeypatch.setattr(Hanging, "go", threading.Event())
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "authorizer": f"{__name__}.Hanging"}
    yield Hanging
    Hanging.go.set()
    until(lambda: hanging_threads() == 0)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("point", range(3), ids=["A0", "A1", "A2"])
def test_s106_an_authorizer_that_hangs_is_given_up_at_every_point(wanda, hanging, counts: Counts, point):
    hanging.hangs_at = point
    begun = time.monotonic()
    with refused(503, "authority_unavailable"):
        intake(wanda, cast.wanted())
    assert time.monotonic() - begun < 10
    assert hanging_threads() == 1
    # What was committed before the last point stays.
    stays = {
        "archive_namespace": 1,
        "archive_note": 1,
        "archive_source": 1,
        "archive_intake_request": 1,
        "archive_lifecycle_event": 1,
    }
    counts.grew(**(stays if point == 2 else {}))


def test_s106_authorizers_that_hang_take_no_more_threads_than_are_allowed(wanda, hanging, monkeypatch):
    monkeypatch.setattr(limits, "AUTHORITY_ANSWER_SECONDS", 0.01)
    hanging.hangs_at = 0
    for _ in range(limits.AUTHORITY_ASKED_AT_ONCE + 3):
        with refused(503, "authority_unavailable"):
            intake(wanda, cast.wanted())
    assert hanging_threads() == hanging.calls == limits.AUTHORITY_ASKED_AT_ONCE
    monkeypatch.setattr(limits, "AUTHORITY_ANSWER_SECONDS", 30.0)
    hanging.go.set()
    until(lambda: hanging_threads() == 0)
    assert intake(wanda, cast.wanted()).outcome is Outcome.CREATED


class Truthy:
    """Answers whatever stands in `answer`, once a question."""

    answer: Any = None

    def decide_many(self, questions):
        return [self.answer] * len(questions)


class Short:
    def decide_many(self, questions):
        return []


class Vague:
    def decide_many(self, questions):
        return None


class Unmade:
    def __init__(self) -> None:
        raise RuntimeError("cannot be made")


@pytest.mark.parametrize("answer", [1, "yes", None, [True], object], ids=repr)
def test_s106_an_answer_that_is_not_true_is_no(wanda, settings, counts: Counts, answer, monkeypatch):
    monkeypatch.setattr(Truthy, "answer", answer)
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "authorizer": f"{__name__}.Truthy"}
    with counts.refused(403, "authority_refused"):
        intake(wanda, cast.wanted())


@pytest.mark.parametrize("kind", ["Short", "Vague", "Unmade", "NoSuchThing"])
def test_s106_an_authorizer_that_answers_too_little_or_cannot_be_made(wanda, settings, counts: Counts, kind):
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "authorizer": f"{__name__}.{kind}"}
    with counts.refused(503, "authority_unavailable"):
        intake(wanda, cast.wanted())


def test_r_l_035_a_grant_withdrawn_between_two_points_is_seen_by_the_later_one(wanda, counts: Counts):
    from archive import gates

    def withdraw_at(name: str) -> None:
        if name == "intake.A2":
            gates.occupy(None)
            host.withdraw("wanda", cast.GARDEN, [Action.INTAKE])

    gates.occupy(withdraw_at)
    try:
        with refused(403, "authority_refused"):
            intake(wanda, cast.wanted())
    finally:
        gates.occupy(None)
    assert Note.objects.count() == 1


def may_only(*actions: Action) -> Caller:
    binding = host.configure_namespace(cast.GARDEN, owner=cast.OWNER, policy_revision=cast.POLICY, by="host:tests")
    host.map_principal("sole")
    host.grant("sole", binding, actions, by="host:tests")
    return Caller.in_namespace("sole", cast.GARDEN)


def test_s107_recall_opens_neither_lists_nor_resolution(alice, bob, counts: Counts):
    scene(alice, bob)
    sole = may_only(Action.RECALL)
    cast.asked(sole, request_id="q-sole")
    counts.mark()

    with counts.refused(403, "authority_refused"):
        reads.list_notes(sole, PageRequest())
    with counts.refused(403, "authority_refused"):
        resolve(sole, "q-sole")


def test_s108_inspection_opens_no_recall(alice, bob, counts: Counts):
    scene(alice, bob)
    sole = may_only(Action.INSPECT_METADATA)
    with counts.refused(403, "authority_refused"):
        cast.asked(sole)


@pytest.mark.parametrize("name", ACTS)
def test_one_grant_opens_one_action_and_no_other(alice, bob, counts: Counts, name):
    at = scene(alice, bob)
    needed = ACTS[name].action
    sole = may_only(*[action for action in Action if action is not needed])
    with counts.refused(403, "authority_refused"):
        ACTS[name].call(sole, at)


# --- S-109: the questions themselves ---------------------------------------------------------------------------------
# Table 5.5 and the digests of 5.3, written down again here and computed by nothing of the archive.


def digest(domain: str, value: object) -> str:
    payload = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return hashlib.sha256(domain.encode() + b"\0" + payload).hexdigest()


def text_digest(text: str) -> str:
    return hashlib.sha256(b"lychd.text@1\0" + text.encode()).hexdigest()


def lookup(action: str, **keys: object) -> str:
    return digest("lychd.lookup@1", {"action": action, "namespace": "garden", "keys": keys})


def material(wanted: Intake) -> str:
    return digest(
        "lychd.intake.material@1",
        {
            "namespace": "garden",
            "source_key": wanted.source_key,
            "source_revision": wanted.source_revision,
            "asserted_origin": None,
            "kind": "note",
            "text_digest": text_digest(wanted.text),
            "char_count": len(wanted.text),
            "byte_count": len(wanted.text.encode()),
            "classification": "public",
            "retention": {"class": "standard", "retain_until": None},
            "observed_at": None,
        },
    )


def step_digests(note_id: object, to_state: str, version: int, text: str, from_state: str, reason=None) -> list[str]:
    request = {"note_id": str(note_id), "to_state": to_state, "expected_version": version, "reason": reason}
    about = {**request, "text_digest": text_digest(text), "from_state": from_state}
    return [digest("lychd.lifecycle.request@1", request), *[digest("lychd.lifecycle@1", about)] * 2]


def zero() -> str:
    return "f64:0000000000000000"


def recall_digest(request_id: str, query: str, subject: str) -> str:
    return digest(
        "lychd.recall.lexical@1",
        {
            "profile": "local-public-notes@1",
            "namespace": "garden",
            "owner": "estate",
            "policy_revision": "policy-1",
            "subject": subject,
            "purpose": "answer",
            "request_id": request_id,
            "policy": "postgres-bm25@1",
            "text_configuration": "simple",
            "query_digest": hashlib.sha256(b"lychd.query@1\0" + query.encode()).hexdigest(),
            "min_rank": zero(),
            "top_k": 5,
            "char_budget": 16_384,
        },
    )


def binding_digest(owner: str = "estate") -> str:
    return digest(
        "lychd.binding@1",
        {
            "profile": "local-public-notes@1",
            "namespace": "garden",
            "owner": owner,
            "policy_revision": "policy-1",
        },
    )


class Recorder:
    """Runs one act and compares the questions it asked with what table 5.5 wants."""

    def __init__(self, scripted) -> None:
        self.scripted = scripted

    def ask(self, call, purpose: str, action: str, digests: list[str], *, subject="alice", owner="estate") -> None:
        self.scripted.asked.clear()
        call()
        expected = [(subject, "garden", owner, purpose, "policy-1", action, about) for about in digests]
        assert [seven(question) for question in self.scripted.asked] == expected, action


def seven(question: AuthorityQuestion) -> tuple[str, ...]:
    assert len(fields(question)) == 7
    found = tuple(str(getattr(question, one.name)) for one in fields(question))
    assert all(found)
    return found


def test_s109_every_act_asks_its_own_question_at_each_point(garden, alice, bob, scripted):
    at = scene(alice, bob)
    listen = Recorder(scripted)
    page = PageRequest()

    one = cast.wanted("Sage wants gravel.", source="sage")
    listen.ask(lambda: intake(alice, one), "memory", "intake", [material(one)] * 3)
    pair = [cast.wanted("Mint wants water.", source="mint"), cast.wanted("Thyme wants sun.", source="thyme")]
    listen.ask(lambda: intake_many(alice, pair), "memory", "intake", [material(item) for item in pair] * 3)

    listen.ask(
        lambda: promote(alice, Transition(at.candidate, State.PROMOTED, 1, Reason.OTHER)),
        "curation",
        "promote",
        step_digests(at.candidate, "promoted", 1, "Ferns want shade.", "candidate", "other"),
    )
    listen.ask(
        lambda: transition_many(alice, [Transition(at.waiting, State.PROMOTED, 1)]),
        "curation",
        "promote",
        step_digests(at.waiting, "promoted", 1, "Moss wants rain.", "candidate"),
    )
    listen.ask(
        lambda: archive(alice, Transition(at.waiting, State.ARCHIVED, 2)),
        "curation",
        "archive",
        step_digests(at.waiting, "archived", 2, "Moss wants rain.", "promoted"),
    )
    listen.ask(
        lambda: revoke(alice, Transition(at.archived, State.REVOKED, 3, Reason.PERSONAL_DATA)),
        "curation",
        "revoke",
        step_digests(at.archived, "revoked", 3, "Ivy wants a wall.", "archived", "personal_data"),
    )

    roses = digest(
        "lychd.projection@1",
        {
            "note_id": str(at.promoted),
            "namespace": "garden",
            "source_key": "roses",
            "source_revision": "1",
            "text_digest": text_digest("Roses want morning sun."),
            "char_count": 23,
            "classification": "public",
            "asserted_origin": None,
        },
    )
    listen.ask(
        lambda: review(alice, at.promoted),
        "curation",
        "review",
        [lookup("review", note_id=str(at.promoted)), roses, roses],
    )
    listen.ask(
        lambda: flag(alice, at.promoted, Reason.WRONG),
        "memory",
        "flag",
        [lookup("flag", note_id=str(at.promoted), reason="wrong")] * 3,
    )

    asked = LexicalRecall("q-109", "roses")
    listen.ask(
        lambda: recall(bob, asked), "answer", "recall", [recall_digest("q-109", "roses", "bob")] * 3, subject="bob"
    )
    listen.ask(
        lambda: recall(bob, asked), "answer", "recall", [recall_digest("q-109", "roses", "bob")] * 3, subject="bob"
    )
    receipt = dict(Recall.objects.get(request_id="q-109").receipt)
    sealed = receipt.pop("receipt_digest")
    assert sealed == digest("lychd.receipt@1", receipt)
    listen.ask(
        lambda: resolve(bob, "q-109"),
        "answer",
        "resolve",
        [lookup("resolve", request_id="q-109"), sealed, sealed],
        subject="bob",
    )

    looked = [
        (
            lambda: reads.list_notes(alice, page, state=State.PROMOTED, source_key="roses"),
            "inspect_metadata",
            {"list": "notes", "state": "promoted", "source_key": "roses", "limit": 50, "cursor": None},
        ),
        (lambda: reads.note_record(alice, at.promoted), "inspect_metadata", {"note_id": str(at.promoted)}),
        (
            lambda: reads.note_events(alice, at.promoted),
            "inspect_metadata",
            {"note_id": str(at.promoted), "part": "events"},
        ),
        (
            lambda: reads.namespace_events(alice, page),
            "inspect_metadata",
            {"list": "events", "limit": 50, "cursor": None},
        ),
        (lambda: reads.intake_record(alice, at.request), "inspect_metadata", {"request_id": at.request}),
        (lambda: reads.overview(alice), "inspect_metadata", {"part": "overview"}),
        (lambda: reads.decisions_by_day(alice), "inspect_metadata", {"part": "decisions"}),
        (lambda: reads.receipt(alice, "q-109"), "inspect_receipt", {"request_id": "q-109"}),
        (
            lambda: reads.list_receipts(alice, page),
            "inspect_receipt",
            {"list": "receipts", "limit": 50, "cursor": None},
        ),
    ]
    for call, action, keys in looked:
        listen.ask(call, "management", action, [lookup(action, **keys)] * 2)
    own = [
        (lambda: reads.list_own_intakes(alice, page), {"list": "own_intakes", "limit": 50, "cursor": None}),
        (
            lambda: reads.own_decisions(alice, [at.promoted]),
            {"list": "own_decisions", "note_ids": [str(at.promoted)]},
        ),
    ]
    for call, keys in own:
        listen.ask(call, "memory", "list_own_intakes", [lookup("list_own_intakes", **keys)] * 2)
    listen.ask(
        lambda: discovery.configuration("alice", "garden"),
        "management",
        "discover_configuration",
        [binding_digest()] * 2,
    )

    host.configure_namespace("garden", owner="heirs", policy_revision="policy-1", by="host:tests")
    otto = garden.caller("otto")
    listen.ask(
        lambda: migrate(otto, reason="Inherited."),
        "management",
        "migrate_binding",
        [binding_digest("heirs")] * 3,
        subject="otto",
        owner="heirs",
    )


@pytest.mark.parametrize("name", ["promote", "review", "resolve", "flag"])
def test_s109_of_what_is_not_there_the_request_is_asked_about_throughout(alice, ivy, scripted, name):
    cast.admitted(alice)
    scripted.asked.clear()
    with refused(404, "receipt_absent" if name == "resolve" else "record_absent"):
        ACTS[name].call(alice, Scene.empty())
    assert len(scripted.asked) == 2
    assert len({question.object_digest for question in scripted.asked}) == 1


# --- one refusal, and the log that tells it apart --------------------------------------------------------------------


@pytest.fixture
def log():
    """What the service would write to its log, line by line."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatter())
    spoken = logging.getLogger("archive.authority")
    before = spoken.level
    spoken.addHandler(handler)
    spoken.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    spoken.removeHandler(handler)
    spoken.setLevel(before)


def test_r_l_038_every_point_refuses_in_the_same_words_and_the_log_names_the_point(alice, scripted, log):
    note = cast.admitted(alice, "Roses want morning sun.")
    told = set()
    for point in range(3):
        scripted.script, scripted.calls = [*[True] * point, False], 0
        with pytest.raises(AuthorityRefused) as no:
            promote(alice, cast.step(note, State.PROMOTED))
        told.add((type(no.value), no.value.status, no.value.code, no.value.detail, no.value.faults, str(no.value)))
    assert len(told) == 1
    refusals = [line for line in log() if line.get("allowed") is False]
    assert [line["point"] for line in refusals] == ["A0", "A1", "A2"]
    for line in refusals:
        assert (line["subject"], line["namespace"], line["action"]) == ("alice", "garden", "promote")
        assert len(line["object_digest"]) == 64
    assert "morning" not in json.dumps(log())
    assert IntakeRequest.objects.count() == 1
