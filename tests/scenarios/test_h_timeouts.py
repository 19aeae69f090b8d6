"""H. Time-outs, and a database that goes away."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from archive import gates
from archive.lifecycle import State
from archive.models import IntakeRequest, Note, Recall
from archive.operations.intake import Outcome, intake
from archive.operations.recall import recall
from archive.operations.transition import promote
from archive.publication import Publication
from archive.refusals import OutcomeUnknown, Unavailable
from archive.requests import Intake, LexicalRecall
from inspection import discovery, reads
from inspection.cursors import PageRequest
from inspection.namespaces import choose
from tests import cast
from tests.scenarios.acts import ACTS, Scene, scene
from tests.scenarios.counting import Counts, refused
from tests.scenarios.together import held_elsewhere
from tests.scenarios.wire import through_a_wire, without_a_database

Q1 = LexicalRecall("q1", "roses")
R1 = Intake("r1", "s", "1", "Roses want morning sun.")


def test_s120_a_promotion_beside_a_long_hold_gives_up_after_two_seconds(alice, counts: Counts):
    note = cast.admitted(alice)
    with held_elsewhere(cast.GARDEN):
        # B holds until A has answered, so the lock time-out alone can end this.
        began = time.monotonic()
        with counts.refused(503, "archive_timeout"):
            promote(alice, cast.step(note, State.PROMOTED))
        waited = time.monotonic() - began
    assert 2.0 <= waited < 4.0
    assert promote(alice, cast.step(note, State.PROMOTED)).note.lifecycle_version == 2


@pytest.mark.parametrize("name", ["intake", "promote", "recall", "resolve", "review", "flag", "archive", "migrate"])
def test_s120_no_act_waits_for_ever_for_a_held_namespace(garden, alice, bob, settings, counts: Counts, name):
    at = scene(alice, bob)
    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, "lock": 50}
    caller = garden.caller({"resolve": "bob", "migrate": "otto"}.get(name, "alice"))
    with held_elsewhere(cast.GARDEN), counts.refused(503, "archive_timeout"):
        ACTS[name].call(caller, at)


def test_s120_a_read_takes_no_lock_and_waits_for_nobody(alice, bob, ivy):
    at = scene(alice, bob)
    with held_elsewhere(cast.GARDEN):
        assert reads.note_record(ivy, at.promoted).state == "promoted"


@contextmanager
def slowed(owner, table: str) -> Iterator[None]:
    """Make every insert into a table take half a minute, by the database itself."""
    owner.execute(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(30); RETURN NEW; END $$"
    )
    owner.execute(f"CREATE TRIGGER zz_dawdle BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION dawdle()")
    try:
        yield
    finally:
        owner.execute("DROP FUNCTION dawdle CASCADE")


def test_s121_a_statement_of_more_than_five_seconds_is_a_failure_and_no_miss(alice, bob, owner, counts: Counts):
    cast.promoted(alice)
    with slowed(owner, "archive_recall"):
        began = time.monotonic()
        with counts.refused(503, "archive_timeout"):
            recall(bob, Q1)
        assert time.monotonic() - began >= 5.0
    assert not Recall.objects.exists()
    assert recall(bob, Q1).outcome is Publication.PUBLISHED


@pytest.mark.parametrize("limit", ["statement", "transaction"])
@pytest.mark.parametrize(("name", "table"), [("recall", "archive_recall"), ("intake", "archive_note")])
def test_s121_each_limit_of_its_own_ends_it(alice, bob, owner, settings, counts: Counts, limit, name, table):
    scene(alice, bob)
    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, limit: 300}
    with slowed(owner, table), counts.refused(503, "archive_timeout"):
        ACTS[name].call(alice, Scene.empty())


def test_s121_an_act_that_idles_in_its_transaction_is_ended_too(alice, settings, owner, counts: Counts):
    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, "idle": 50}

    def dawdle(name: str) -> None:
        if name == "intake.looked":
            gates.occupy(None)
            # Until the server has hung up; whoever is gone from the list has been ended.
            while _backends(owner, connection.connection.info.backend_pid):
                pass

    gates.occupy(dawdle)
    try:
        with counts.refused(503, "archive_timeout"):
            intake(alice, R1)
    finally:
        gates.occupy(None)
    assert intake(alice, R1).outcome is Outcome.CREATED, "the next act gets a connection that works"


def _backends(owner, pid: int) -> int:
    return owner.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()[0]


SESSION = {"statement_timeout": "11s", "lock_timeout": "7s", "idle_in_transaction_session_timeout": "13s"}


def session() -> tuple[int, dict[str, str]]:
    """Which connection this is, and what it shows."""
    shown = {}
    with connection.cursor() as cursor:
        for name in (*SESSION, "lychd.hold", "transaction_timeout"):
            cursor.execute("SELECT current_setting(%s, true)", [name])
            shown[name] = cursor.fetchone()[0] or ""
    return connection.connection.info.backend_pid, shown


def test_s122_an_act_leaves_the_session_as_it_was(alice, bob, ivy, counts: Counts, settings):
    note = cast.promoted(alice)
    with connection.cursor() as cursor:
        for name, value in SESSION.items():
            cursor.execute("SELECT set_config(%s, %s, false)", [name, value])
    before = session()
    assert before[1] == {**SESSION, "lychd.hold": "", "transaction_timeout": "0"}

    recall(bob, Q1)
    assert session() == before
    reads.note_record(ivy, note.id)
    assert session() == before
    with refused(409, "lifecycle_version_conflict"):
        promote(alice, cast.step(note, State.PROMOTED, expected=7))
    assert session() == before
    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, "lock": 50}
    with held_elsewhere(cast.GARDEN), refused(503, "archive_timeout"):
        cast.asked(bob)
    assert session() == before


def test_s122_inside_the_act_its_own_limits_hold(alice):
    seen = {}

    def look(name: str) -> None:
        if name == "intake.looked":
            seen.update(session()[1])

    gates.occupy(look)
    try:
        intake(alice, R1)
    finally:
        gates.occupy(None)
    assert seen == {
        "statement_timeout": "5s",
        "lock_timeout": "2s",
        "idle_in_transaction_session_timeout": "5s",
        "transaction_timeout": "15s",
        "lychd.hold": "exclusive",
    }


# --- the database goes away ------------------------------------------------------------------------------------------


def test_s124_without_a_database_the_door_says_so(garden, ivy):
    with without_a_database():
        with refused(503, "storage_unavailable"):
            garden.caller("ivy")
        with refused(503, "storage_unavailable"):
            choose("ivy")
        with refused(503, "storage_unavailable"):
            discovery.configuration("ivy")
    assert reads.list_notes(ivy, PageRequest()).items == ()


@pytest.mark.parametrize("name", ACTS)
def test_s124_without_a_database_no_act_answers_empty(alice, scripted, name):
    with without_a_database(), refused(503, "storage_unavailable"):
        ACTS[name].call(alice, Scene.empty())


@pytest.mark.parametrize("name", ACTS)
def test_s124_authority_that_lies_in_the_lost_database_is_unavailable_too(alice, name):
    with without_a_database(), pytest.raises(Unavailable) as no:
        ACTS[name].call(alice, Scene.empty())
    assert no.value.code == "authority_unavailable"


class Ended:
    """Ends this thread's own backend at one gate, as an administrator or a crash would."""

    def __init__(self, owner, gate: str) -> None:
        self.owner, self.gate, self.done = owner, gate, False

    def __call__(self, name: str) -> None:
        if name == self.gate and not self.done:
            self.done = True
            pid = connection.connection.info.backend_pid
            assert self.owner.execute("SELECT pg_terminate_backend(%s, 10000)", [pid]).fetchone() == (True,)


@contextmanager
def ended_at(owner, gate: str) -> Iterator[Ended]:
    ended = Ended(owner, gate)
    gates.occupy(ended)
    try:
        yield ended
    finally:
        gates.occupy(None)


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("intake.A1", "authority_unavailable"),
        ("intake.looked", "storage_unavailable"),
        ("commit", "outcome_unknown"),
        ("intake.A2", "authority_unavailable"),
    ],
)
def test_s124_an_intake_whose_backend_is_ended_is_a_typed_failure_and_happens_once(wanda, owner, gate, code):
    with ended_at(owner, gate) as ended, pytest.raises(Unavailable) as no:
        intake(wanda, R1)
    assert ended.done
    assert no.value.code == code

    answer = intake(wanda, R1)

    assert answer.outcome is (Outcome.REPLAYED if gate == "intake.A2" else Outcome.CREATED)
    assert (Note.objects.count(), IntakeRequest.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    ("gate", "code"),
    [("recall.A1", "authority_unavailable"), ("recall.looked", "storage_unavailable"), ("commit", "outcome_unknown")],
)
def test_s124_so_is_a_recall(alice, bob, owner, gate, code):
    cast.promoted(alice)
    with ended_at(owner, gate), pytest.raises(Unavailable) as no:
        recall(bob, Q1)
    assert no.value.code == code
    assert recall(bob, Q1).outcome is Publication.PUBLISHED
    assert recall(bob, Q1).outcome is Publication.REPLAYED
    assert Recall.objects.count() == 1


@pytest.mark.parametrize("gate", ["promote.A1", "commit"])
def test_s124_so_is_a_promotion(alice, owner, counts: Counts, gate):
    note = cast.admitted(alice)
    counts.mark()
    with ended_at(owner, gate), pytest.raises(Unavailable):
        promote(alice, cast.step(note, State.PROMOTED))
    counts.unchanged()
    assert promote(alice, cast.step(note, State.PROMOTED)).note.lifecycle_version == 2


def test_a_lost_answer_to_a_commit_is_told_as_unknown_and_a_replay_learns_what_happened(wanda, counts: Counts):
    with through_a_wire() as wire:
        wire.cutting = True
        with pytest.raises(OutcomeUnknown) as no:
            intake(wanda, R1)
        wire.cutting = False
        assert (no.value.status, wire.cuts) == (503, 1)
        counts.grew(
            archive_namespace=1, archive_source=1, archive_note=1, archive_lifecycle_event=1, archive_intake_request=1
        )

        again = intake(wanda, R1)

    assert (again.outcome, again.note.id) == (Outcome.REPLAYED, Note.objects.get().id)
    counts.unchanged()


def test_a_lost_answer_to_a_promotion_is_learnt_from_the_record(alice, ivy):
    note = cast.admitted(alice)
    with through_a_wire() as wire:
        wire.cutting = True
        with refused(503, "outcome_unknown"):
            promote(alice, cast.step(note, State.PROMOTED))
        wire.cutting = False
        record = reads.note_record(ivy, note.id)
        assert (record.state, record.lifecycle_version) == ("promoted", 2)
        with refused(409, "lifecycle_version_conflict"):
            promote(alice, cast.step(note, State.PROMOTED))


def test_a_lost_answer_to_a_recall_is_replayed(alice, bob):
    cast.promoted(alice)
    with through_a_wire() as wire:
        wire.cutting = True
        with refused(503, "outcome_unknown"):
            recall(bob, Q1)
        wire.cutting = False
        again = recall(bob, Q1)
    assert again.outcome is Publication.REPLAYED
    assert again.receipt == Recall.objects.get().receipt
