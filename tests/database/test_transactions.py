"""What an archive transaction promises: the order of its locks, its four limits, and that it stands alone (5.9)."""

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from archive import transactions
from archive.bindings import Binding
from archive.lifecycle import Reason, State
from archive.models import Namespace, Note, Principal, Source
from archive.operations import host
from archive.operations.desk import Queue, desk
from archive.operations.flag import flag
from archive.operations.intake import intake, intake_many
from archive.operations.migration import migrate
from archive.operations.rebuild import rebuild_lexical
from archive.operations.resolution import resolve
from archive.operations.review import review
from archive.operations.transition import archive, promote, revoke, transition_many
from archive.refusals import ArchiveTimeout, BindingMismatch, LifecycleVersionConflict, NamespaceAbsent
from archive.requests import Transition
from archive.transactions import DatabaseFault
from inspection import discovery, reads
from tests import cast, flushing

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def recorded() -> Iterator[list[str]]:
    """Every statement that the service sends, in order."""
    said: list[str] = []

    def listen(execute: Callable[..., Any], statement: Any, *rest: Any) -> Any:
        said.append(" ".join(str(statement).split()))
        return execute(statement, *rest)

    with connection.execute_wrapper(listen):
        yield said


LIMITS_SET = "SELECT set_config('statement_timeout'"

# Specification 5.9, from left to right; what no rank fits takes no lock that another could wait for.
RANKS = (
    (0, re.compile(r"^SELECT pg_advisory_xact_lock(_shared)?\(hashtextextended\('lychd:' ")),
    (1, re.compile(r'^SELECT .* FROM "?archive_namespace"? .* FOR (UPDATE|SHARE)$')),
    (1, re.compile(r"^INSERT INTO archive_namespace ")),
    (1, re.compile(r'^UPDATE "archive_namespace" ')),
    (4, re.compile(r'^INSERT INTO "?archive_source"? ')),
    (5, re.compile(r'^SELECT .* FROM "archive_note" .* FOR UPDATE OF "archive_note"$')),
    (5, re.compile(r'^INSERT INTO "?archive_note"? ')),
    (5, re.compile(r"^UPDATE archive_note ")),
    (10, re.compile(r'^INSERT INTO "?archive_(intake_request|lifecycle_event|recall|flag|binding_migration)"? ')),
)
NOTES_HELD = RANKS[5][1]
TAKES_A_LOCK = re.compile(r"\bFOR (NO KEY )?UPDATE|\bFOR (KEY )?SHARE|advisory|^LOCK|^DELETE|^INSERT INTO|^UPDATE")


def rank_of(statement: str) -> int | None:
    return next((rank for rank, form in RANKS if form.match(statement)), None)


def in_transactions(said: list[str]) -> list[list[str]]:
    """Cut a recording where the limits are set: once at the start of each transaction."""
    starts = [place for place, statement in enumerate(said) if statement.startswith(LIMITS_SET)]
    return [said[start:end] for start, end in itertools.pairwise([*starts, len(said)])]


def ranks(statements: list[str]) -> list[int]:
    """The ranks of the locks that these statements newly take, in order."""
    taken: list[int] = []
    notes_held = namespace_held = False
    for statement in statements:
        rank = rank_of(statement)
        if rank is None:
            continue
        # An update of a row that is held already takes nothing new.
        if (statement.startswith("UPDATE archive_note ") and notes_held) or (
            statement.startswith('UPDATE "archive_namespace"') and namespace_held
        ):
            continue
        notes_held = notes_held or bool(NOTES_HELD.match(statement))
        namespace_held = namespace_held or (rank == 1 and statement.startswith("SELECT"))
        taken.append(rank)
    return taken


def _everything(garden: cast.Garden) -> dict[str, tuple[int, Callable[[], object]]]:
    """Each operation as a deed, with the number of transactions that 5.9 gives it."""
    alice, bob, otto = garden.caller("alice"), garden.caller("bob"), garden.caller("otto")
    first = cast.promoted(alice, source="roses")
    second = cast.admitted(alice, "Roses want evening sun.", source="roses", revision="2")
    third = cast.admitted(alice, "Oaks take their time.", source="oaks")
    many = [cast.admitted(alice, f"Note {number}.", source=f"many-{number}") for number in range(6)]
    elms = cast.promoted(alice, "Elms fail.", source="elms")
    cast.asked(bob, request_id="asked-once")

    def rebind() -> object:
        moved = host.configure_namespace("garden", owner=cast.OWNER, policy_revision="policy-2", by="host:tests")
        host.grant("otto", moved, host.actions_of(["operator"]), by="host:tests")
        return cast.Garden(moved).caller("otto")

    return {
        "intake of a new source": (1, lambda: intake(alice, cast.wanted(source="ash"))),
        "intake again": (1, lambda: intake(alice, cast.wanted(source="roses"))),
        "intake of many": (1, lambda: intake_many(alice, [cast.wanted(source=f"more-{n}") for n in range(5)])),
        "flag": (1, lambda: flag(bob, first.id, Reason.OUTDATED)),
        "recall": (1, lambda: cast.asked(bob, request_id="asked-now")),
        "recall again": (1, lambda: cast.asked(bob, request_id="asked-now")),
        "resolution": (1, lambda: resolve(bob, "asked-once")),
        "review": (1, lambda: review(alice, second.id)),
        "desk": (1, lambda: desk(alice, Queue())),
        "metadata": (1, lambda: reads.note_record(alice, first.id)),
        "receipt": (1, lambda: reads.receipt(garden.caller("ivy"), "asked-once")),
        "configuration": (0, lambda: discovery.configuration("otto", "garden")),
        "promotion": (1, lambda: promote(alice, cast.step(third, State.PROMOTED))),
        "promotion of a successor": (1, lambda: promote(alice, cast.step(second, State.PROMOTED))),
        "archiving": (1, lambda: archive(alice, cast.step(elms, State.ARCHIVED))),
        "revocation": (1, lambda: revoke(alice, cast.step(first, State.REVOKED, expected=3))),
        "many transitions": (
            1,
            lambda: transition_many(alice, [cast.step(note, State.PROMOTED) for note in reversed(many)]),
        ),
        "rebuild": (4, lambda: rebuild_lexical("garden", slice_size=5)),
        "migration": (1 + 2, lambda: migrate(rebind(), reason="a second edition")),  # type: ignore[arg-type]
        "refused under the old binding": (1, lambda: _refused(lambda: intake(otto, cast.wanted(source="fern")))),
    }


def _refused(deed: Callable[[], object]) -> None:
    with pytest.raises(Exception, match=r"authority_refused|binding_mismatch"):
        deed()


def test_locks_are_taken_in_the_one_order_by_every_operation(garden):
    """0 queue, 1 namespace, 4 source, 5 notes by id, 10 what is only inserted; nothing goes back to the left."""
    for name, (count, deed) in _everything(garden).items():
        with recorded() as said:
            deed()
        found = in_transactions(said)
        if name == "refused under the old binding":
            assert len(found) <= count
        elif name != "rebuild":
            assert len(found) == count, name
        for statements in found:
            taken = ranks(statements)
            assert taken == sorted(taken), (name, taken)
            if "set_config('lychd.hold'" in statements[0] and any(rank > 0 for rank in taken):
                assert taken[:2] == [0, 1], name


def test_every_lock_that_is_taken_by_a_statement_is_known_to_the_order(garden):
    """No operation locks or writes a row of the archive by a statement that the order above does not rank."""
    unknown = []
    for _, deed in _everything(garden).values():
        with recorded() as said:
            deed()
        unknown += [
            statement
            for statement in said
            if rank_of(statement) is None and "archive_" in statement and TAKES_A_LOCK.search(statement)
        ]
    assert unknown == []


def test_notes_are_held_in_ascending_order_whatever_order_they_are_named_in(garden, alice):
    notes = [cast.admitted(alice, f"Note {number}.", source=f"many-{number}") for number in range(6)]
    with recorded() as said:
        transition_many(alice, [cast.step(note, State.PROMOTED) for note in reversed(notes)])
    holds = [statement for statement in said if NOTES_HELD.match(statement)]
    assert len(holds) == 1
    assert holds[0].endswith('ORDER BY "archive_note"."id" ASC FOR UPDATE OF "archive_note"')
    assert '"archive_note"."text",' not in holds[0]


def test_queue_and_row_are_locked_in_statements_of_their_own(garden, alice):
    with recorded() as said:
        cast.admitted(alice)
    (statements,) = in_transactions(said)
    assert [rank_of(statement) for statement in statements[1:4]] == [0, 1, 1]
    assert statements[2].startswith("INSERT INTO archive_namespace")
    assert "ON CONFLICT (key) DO NOTHING" in statements[2]


# --- limits ----------------------------------------------------------------------------------------------------------

SETTINGS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "transaction_timeout")
OWN = ("11s", "7s", "13s", "17s")


def show(*names: str) -> tuple[str, ...]:
    with connection.cursor() as cursor:
        answers = []
        for name in names:
            cursor.execute(f"SHOW {name}")
            answers.append(cursor.fetchone()[0])
        return tuple(answers)


@pytest.fixture
def with_its_own_limits(garden, alice):
    """A connection whose session has limits of its own, in a namespace with one promoted note."""
    note = cast.promoted(alice)
    with connection.cursor() as cursor:
        for name, value in zip(SETTINGS, OWN, strict=True):
            cursor.execute(f"SET {name} = '{value}'")
    yield note
    connection.close()


def beginnings(binding: Binding) -> dict[str, Callable[[], Any]]:
    return {
        "locked": lambda: transactions.locked(binding),
        "shared": lambda: transactions.shared(binding),
        "held": lambda: transactions.held(binding.namespace),
        "snapshot": lambda: transactions.snapshot(binding),
        "host_write": transactions.host_write,
    }


@pytest.mark.parametrize("name", ["locked", "shared", "held", "snapshot", "host_write"])
def test_each_transaction_has_its_four_limits_and_the_session_keeps_its_own(garden, with_its_own_limits, name):
    """S-122."""
    begin = beginnings(garden.binding)[name]
    with begin():
        assert show(*SETTINGS) == ("5s", "2s", "5s", "15s")
    assert show(*SETTINGS) == OWN
    with pytest.raises(LifecycleVersionConflict), begin():
        raise LifecycleVersionConflict
    assert show(*SETTINGS) == OWN
    with pytest.raises(DatabaseFault), begin(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 / 0")
    assert show(*SETTINGS) == OWN


def test_operations_that_end_well_and_badly_leave_the_session_as_it_was(garden, alice, bob, with_its_own_limits):
    """S-122, for operations."""
    note = with_its_own_limits
    cast.asked(bob)
    cast.admitted(alice, source="ash")
    with pytest.raises(LifecycleVersionConflict):
        archive(alice, Transition(note.id, State.ARCHIVED, 9))
    host.configure_namespace("garden", owner="somebody", policy_revision="policy-2", by="host:tests")
    with pytest.raises(BindingMismatch):
        archive(alice, cast.step(note, State.ARCHIVED))
    assert show(*SETTINGS) == OWN


def test_a_wait_that_is_too_long_ends_in_a_refusal_and_leaves_the_session_as_it_was(
    garden, alice, with_its_own_limits, settings
):
    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, "lock": 20}
    with psycopg.connect(**flushing.parameters()) as elsewhere:
        elsewhere.execute("SELECT 1 FROM archive_namespace FOR UPDATE")
        with pytest.raises(ArchiveTimeout):
            cast.admitted(alice, source="ash")
    assert show(*SETTINGS) == OWN


@pytest.mark.parametrize("limit", ["transaction", "idle"])
def test_a_transaction_that_goes_on_too_long_loses_its_connection_and_not_the_next_one(
    garden, alice, with_its_own_limits, settings, limit
):
    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, limit: 50}
    with pytest.raises(ArchiveTimeout):
        _dawdle(garden.binding)
    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, limit: 5_000}
    assert cast.admitted(alice, source="ash").state == State.CANDIDATE


def _dawdle(binding: Binding) -> None:
    with transactions.locked(binding):
        # The end of the session is what is waited for, not a time.
        _wait_for_the_end_of(connection.connection.info.backend_pid)
        show("lock_timeout")


def _wait_for_the_end_of(pid: int) -> None:
    with psycopg.connect(**flushing.parameters(), autocommit=True) as elsewhere:
        while elsewhere.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone():
            elsewhere.execute("SELECT pg_stat_clear_snapshot()")


# --- alone -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["locked", "shared", "held", "snapshot", "host_write"])
def test_no_archive_transaction_stands_inside_another(garden, alice, name):
    cast.admitted(alice)
    begin = beginnings(garden.binding)[name]
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"), begin():
        pass
    for outer in beginnings(garden.binding).values():
        with outer(), pytest.raises(RuntimeError, match="durable"), begin():
            pass


def test_an_operation_inside_a_transaction_of_the_caller_is_refused(garden, alice, bob):
    note = cast.admitted(alice)
    deeds = [
        lambda: cast.admitted(alice, source="ash"),
        lambda: promote(alice, cast.step(note, State.PROMOTED)),
        lambda: cast.asked(bob),
        lambda: reads.overview(garden.caller("ivy")),
    ]
    for deed in deeds:
        with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
            deed()
    assert Note.objects.count() == 1


def test_a_namespace_without_a_note_is_held_by_nobody(garden):
    for begin in (transactions.locked, transactions.shared):
        with pytest.raises(NamespaceAbsent), begin(garden.binding):
            pass
    assert not Namespace.objects.exists()


# --- snapshots -------------------------------------------------------------------------------------------------------


def test_a_snapshot_is_read_only_and_the_database_says_so(garden, alice):
    note = cast.admitted(alice)
    with transactions.snapshot(garden.binding) as namespace:
        assert show("transaction_isolation", "transaction_read_only") == ("repeatable read", "on")
    writes = [
        lambda: Source.objects.create(namespace=namespace, source_key="ash"),
        lambda: Note.objects.filter(id=note.id).update(superseded_by=None),
        lambda: Principal.objects.create(subject="mallory"),
        lambda: Namespace.objects.select_for_update().get(key="garden"),
    ]
    for write in writes:
        with pytest.raises(DatabaseFault) as refusal, transactions.snapshot(garden.binding):
            write()
        assert refusal.value.sqlstate == "25006"
    assert show("transaction_isolation", "transaction_read_only") == ("read committed", "off")


@pytest.mark.parametrize("name", ["locked", "shared", "held", "host_write"])
def test_every_other_transaction_reads_what_is_committed(garden, alice, name):
    cast.admitted(alice)
    with beginnings(garden.binding)[name]():
        assert show("transaction_isolation", "transaction_read_only") == ("read committed", "off")


def test_a_snapshot_sees_one_moment(garden, alice, owner):
    cast.admitted(alice)
    with transactions.snapshot(garden.binding):
        assert Note.objects.count() == 1
        with owner.transaction():
            owner.execute("SELECT 1 FROM archive_namespace FOR UPDATE")
            owner.execute(
                "INSERT INTO archive_source (namespace_id, source_key) SELECT id, 'ash' FROM archive_namespace"
            )
        assert Source.objects.count() == 1
    assert Source.objects.count() == 2


def test_a_snapshot_takes_no_lock_and_waits_for_none(garden, alice, owner):
    note = cast.admitted(alice)
    with owner.transaction():
        owner.execute("SELECT 1 FROM archive_namespace FOR UPDATE")
        owner.execute("SELECT 1 FROM archive_note FOR UPDATE")
        with recorded() as said:
            assert reads.note_record(alice, note.id).id == note.id
    assert [rank_of(statement) for statement in said if rank_of(statement) is not None] == []
