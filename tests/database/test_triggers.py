"""Each trigger of the schema, tripped by raw SQL as the serving role: the SQLSTATE, and which trigger said it."""

from typing import Any

import psycopg
import pytest
from psycopg import sql

from archive.lifecycle import NOTE_EDGES, State
from tests import flushing
from tests.database import catalogue, trips
from tests.database.trips import Pass, Trip
from tests.database.world import FRESH, SHARED_SPACE, hold, no_trace, settle, tried, write_again

pytestmark = pytest.mark.django_db

# Rules that many tables share; each has a test below that goes through the catalogue.
SHARED_RULES = {"a_nslock", "space", "nodelete", "append", "truth"}
# Rules that write something instead of refusing.
WRITING_RULES = {("lychd_binding", "history"), ("archive_note", "postings")}

# Kept equal to the notes by one trigger, and written by nobody else.
DERIVED = {"archive_posting", "archive_corpus"}


def hold_both(world):
    return lambda connection: hold(connection, world, "garden", "meadow")


def spoken_by(error: psycopg.Error) -> str:
    return (error.diag.context or "").split("(", 1)[0].removeprefix("PL/pgSQL function ").removeprefix("public.")


def of_rule(connection, rule: str) -> list[catalogue.Trigger]:
    return [trigger for trigger in catalogue.triggers(connection) if trigger.rule == rule]


def test_every_trigger_has_its_case(as_owner):
    found = {(trigger.table, trigger.rule) for trigger in catalogue.triggers(as_owner)}
    special = {(table, rule) for table, rule in found if rule not in SHARED_RULES or (table, rule) in trips.CASES}
    assert special == {*trips.CASES, *WRITING_RULES}
    assert all(any(isinstance(case, Trip) for case in cases) for cases in trips.CASES.values())
    assert all(any(isinstance(case, Pass) for case in cases) for cases in trips.CASES.values())


def test_every_trigger_is_switched_on(as_owner):
    asleep = catalogue.ask(
        as_owner, "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'O' ORDER BY 1"
    )
    assert asleep == []


TRIPS = [(*key, number) for key, cases in trips.CASES.items() for number in range(len(cases))]


@pytest.mark.parametrize(("table", "rule", "number"), TRIPS)
def test_a_trigger_refuses_what_breaks_its_rule_and_nothing_beside_it(as_serving, world, table, rule, number):
    case = trips.CASES[table, rule][number]
    if isinstance(case, Pass):
        assert tried(as_serving, world, hold_both(world), *case.right) is None
        return
    refusal = tried(as_serving, world, hold_both(world), *case.wrong)
    assert refusal, case
    assert (refusal.sqlstate, refusal.diag.message_primary) == (case.sqlstate, case.says)
    assert [spoken_by(refusal)] == [one.pgid for one in of_rule(as_serving, rule) if one.table == table]


def test_every_column_of_a_note_is_fenced_or_moves_with_a_decision(as_owner):
    columns = set(catalogue.columns(as_owner, "archive_note"))
    assert columns == trips.FENCED_COLUMNS | trips.MOVING_COLUMNS | {"note_number"}


def test_the_edges_are_tried_from_every_state_to_every_state(world, as_serving):
    assert set(trips.ROW_OF) == set(State)
    for state, row in trips.ROW_OF.items():
        assert catalogue.ask(as_serving, "SELECT state FROM archive_note WHERE id = %s", world[row]) == [(state.value,)]
    assert len(NOTE_EDGES) == 5


def test_a_binding_changes_by_a_migration_of_the_same_transaction_alone(as_owner, world):
    """The record of an earlier migration opens nothing, even for the very change that it records."""
    with no_trace(as_owner):
        as_owner.execute("ALTER TABLE archive_namespace DISABLE TRIGGER USER")
        as_owner.execute(
            "UPDATE archive_namespace n SET policy_revision = m.old_policy_revision,"
            " binding_digest = m.old_binding_digest FROM archive_binding_migration m WHERE m.namespace_id = n.id"
        )
        as_owner.execute("ALTER TABLE archive_namespace ENABLE TRIGGER USER")
        refusal = tried(
            as_owner,
            world,
            "SELECT set_config('lychd.binding_migration', %(meadow)s::text, true)",
            "UPDATE archive_namespace n SET row_version = row_version + 1, policy_revision = m.new_policy_revision,"
            " binding_digest = m.new_binding_digest FROM archive_binding_migration m WHERE m.namespace_id = n.id",
        )
    assert refusal
    assert (refusal.sqlstate, refusal.diag.message_primary) == ("LY001", "namespace_binding")


# --- rules that many tables share ------------------------------------------------------------------------------------


def test_nothing_of_the_archive_can_be_deleted(as_owner, as_serving, world):
    """S-026, S-069: the owner meets LY004, the serving role the missing privilege."""
    guarded = {trigger.table: trigger.pgid for trigger in of_rule(as_owner, "nodelete")}
    kept = {name for name in catalogue.tables(as_owner) if name not in {*DERIVED, "lychd_role"}}
    assert set(guarded) == kept
    for table, pgid in guarded.items():
        delete = sql.SQL("DELETE FROM {}").format(sql.Identifier(table))
        refusal = tried(as_owner, world, hold_both(world), delete)
        assert refusal, table
        assert (refusal.sqlstate, refusal.diag.message_primary, spoken_by(refusal)) == ("LY004", "no_delete", pgid)
        refusal = tried(as_serving, world, hold_both(world), delete)
        assert refusal, table
        assert refusal.sqlstate == "42501"


WRITTEN_ONCE = {
    *("archive_source", "archive_intake_request", "archive_lifecycle_event", "archive_flag", "archive_recall"),
    *("archive_binding_migration", "lychd_binding_history"),
}


def test_a_row_that_is_written_once_stays_as_it_was(as_owner, as_serving, world):
    """S-069: whatever the column, and even where nothing would change."""
    appended = {trigger.table: trigger.pgid for trigger in of_rule(as_owner, "append")}
    assert set(appended) == WRITTEN_ONCE
    for table, pgid in appended.items():
        for column in catalogue.columns(as_serving, table):
            change = sql.SQL("UPDATE {0} SET {1} = {1}").format(sql.Identifier(table), sql.Identifier(column))
            refusal = tried(as_serving, world, hold_both(world), change)
            assert refusal, (table, column)
            assert (refusal.sqlstate, refusal.diag.message_primary, spoken_by(refusal)) == (
                "LY010",
                "append_only",
                pgid,
            )


# One new row in each table that belongs to a namespace, as copies of what is there.
COPIES: dict[str, tuple[str, dict[str, Any]]] = {
    "archive_source": ("id = %(roses)s", {"source_key": "tulips"}),
    "archive_note": ("id = %(candidate)s", {"id": FRESH, "source_revision": "9"}),
    "archive_intake_request": ("note_id = %(promoted)s", {"request_id": "another"}),
    "archive_lifecycle_event": ("note_id = %(promoted)s", {"from_version": 8, "to_version": 9}),
    "archive_flag": ("true", {"subject": "wanda"}),
    "archive_recall": ("true", {"id": FRESH, "request_id": "asked-again"}),
    "archive_binding_migration": ("true", {"id": FRESH}),
}


def belonging(connection) -> set[str]:
    return {
        table
        for table in catalogue.tables(connection)
        if "namespace_id" in catalogue.columns(connection, table) and table not in DERIVED
    }


def test_every_row_of_a_namespace_gets_its_space_from_the_namespace(as_serving, world):
    filled = {trigger.table for trigger in of_rule(as_serving, "space")}
    # These three are spaced by their own rule.
    spaced = {"archive_note", "archive_lifecycle_event", "archive_intake_request"}
    assert filled == {*belonging(as_serving), "archive_namespace"} - spaced
    forged = {"space_id": world["nowhere"], "space_generation": 7}
    for table, (where, changes) in {
        **COPIES,
        "archive_namespace": ("id = %(garden)s", {"key": "hedge"}),
    }.items():
        with no_trace(as_serving):
            hold(as_serving, world, "garden", "meadow")
            assert write_again(as_serving, table, where, world, {**changes, **forged}) == 1
            found = as_serving.execute(
                sql.SQL("SELECT DISTINCT space_id::text, space_generation FROM {}").format(sql.Identifier(table))
            ).fetchall()
            assert found == [(SHARED_SPACE, 1)], table


def test_a_receipt_is_written_in_its_form_alone(as_serving, world):
    """T-RECEIPT; tests/operations/test_forged.py has every kind of forgery."""
    assert "archive_recall" in {trigger.table for trigger in of_rule(as_serving, "truth")}
    where, changes = COPIES["archive_recall"]

    def again(forged: dict[str, Any]) -> Any:
        return lambda connection: write_again(connection, "archive_recall", where, world, {**changes, **forged})

    assert tried(as_serving, world, hold_both(world), again({})) is None
    for forged, rule in (
        ({"receipt": {"schema": 1, "text": "all of it"}}, "receipt_form"),
        ({"subject": "mallory", "receipt_digest": "0" * 64}, "receipt_row"),
        ({"namespace_id": world["meadow"]}, "receipt_binding"),
    ):
        refusal = tried(as_serving, world, hold_both(world), again(forged))
        assert refusal
        assert (refusal.sqlstate, refusal.diag.message_primary) == ("LY011", rule)


# --- T-NSLOCK --------------------------------------------------------------------------------------------------------


def insert(table: str, world):
    where, changes = COPIES[table]
    return lambda connection: write_again(connection, table, where, world, changes)


def update(table: str):
    return sql.SQL("UPDATE {0} SET namespace_id = namespace_id").format(sql.Identifier(table))


def delete(table: str):
    return sql.SQL("DELETE FROM {}").format(sql.Identifier(table))


@pytest.fixture
def elsewhere(world):
    """Another connection in another transaction."""
    with psycopg.connect(**flushing.parameters(), autocommit=True) as connection, no_trace(connection):
        yield connection


def test_every_table_of_a_namespace_asks_for_the_hold_first(as_owner):
    locked = {trigger.table for trigger in of_rule(as_owner, "a_nslock")}
    assert locked == belonging(as_owner) == set(COPIES)
    for table in locked:
        before = [
            name
            for (name,) in catalogue.ask(
                as_owner,
                "SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND NOT tgisinternal AND tgtype & 2 = 2"
                ' ORDER BY tgname COLLATE "C"',
                f"public.{table}",
            )
        ]
        assert before[0].startswith("pgtrigger_a_nslock_")


@pytest.mark.parametrize("table", COPIES)
def test_a_write_beside_another_hold_is_refused_at_once(as_owner, as_serving, elsewhere, world, table):
    """S-040. Whoever waited would meet the lock time-out of a millisecond instead."""
    hold(elsewhere, world, "garden", "meadow")
    for connection, deed in (
        (as_serving, insert(table, world)),
        (as_serving, update(table)),
        (as_owner, delete(table)),
    ):
        refusal = tried(connection, world, "SET LOCAL lock_timeout = '1ms'", deed)
        assert refusal
        assert (refusal.sqlstate, refusal.diag.message_primary) == ("LY005", "namespace_not_held")
        assert spoken_by(refusal).startswith("pgtrigger_a_nslock_")


@pytest.mark.parametrize("table", COPIES)
def test_a_shared_hold_writes_a_receipt_and_nothing_else(as_owner, as_serving, world, table):
    """The row could be taken here, and still is not."""
    shared = "SELECT set_config('lychd.hold', 'shared', true)"
    deeds = [(as_serving, update(table)), (as_owner, delete(table))]
    if table == "archive_recall":
        assert tried(as_serving, world, shared, insert(table, world)) is None
    else:
        deeds.append((as_serving, insert(table, world)))
    for connection, deed in deeds:
        refusal = tried(connection, world, shared, deed)
        assert refusal
        assert (refusal.sqlstate, refusal.diag.message_primary) == ("LY005", "namespace_held_shared")


def test_two_shared_holds_write_their_receipts_side_by_side(as_serving, elsewhere, world):
    hold(elsewhere, world, "garden", kind="shared")
    insert("archive_recall", world)(elsewhere)
    second = {"id": world["nowhere"], "request_id": "asked-elsewhere"}
    assert (
        tried(
            as_serving,
            world,
            lambda connection: hold(connection, world, "garden", kind="shared"),
            lambda connection: write_again(connection, "archive_recall", "true", world, second),
        )
        is None
    )


@pytest.mark.parametrize("table", sorted(set(COPIES) - {"archive_recall"}))
def test_a_change_beside_a_shared_hold_is_refused_at_once(as_serving, elsewhere, world, table):
    hold(elsewhere, world, "garden", "meadow", kind="shared")
    refusal = tried(as_serving, world, "SET LOCAL lock_timeout = '1ms'", insert(table, world))
    assert refusal
    assert (refusal.sqlstate, refusal.diag.message_primary) == ("LY005", "namespace_not_held")


@pytest.mark.parametrize("table", COPIES)
def test_a_namespace_that_is_not_there_is_not_held(as_serving, world, table):
    where, changes = COPIES[table]
    refusal = tried(
        as_serving,
        world,
        lambda connection: write_again(connection, table, where, world, {**changes, "namespace_id": 987654321}),
    )
    assert refusal
    assert (refusal.sqlstate, refusal.diag.message_primary) == ("LY005", "namespace_not_held")


# --- triggers that write ---------------------------------------------------------------------------------------------


def test_every_form_of_a_configured_binding_is_kept(as_serving, world):
    form = "namespace_key, owner, policy_revision, text_configuration, generation, second_person, configured_by"
    with no_trace(as_serving):
        before = as_serving.execute("SELECT count(*) FROM lychd_binding_history").fetchone()[0]
        as_serving.execute(
            "INSERT INTO lychd_binding (namespace_key, owner, policy_revision, text_configuration, second_person,"
            " configured_by) VALUES ('hedge', 'estate', 'policy-1', 'simple', false, 'host:tests')"
        )
        as_serving.execute(
            "UPDATE lychd_binding SET owner = 'other', disabled_at = now() WHERE namespace_key = 'hedge'"
        )
        kept = as_serving.execute(
            f"SELECT {form}, disabled_at IS NOT NULL FROM lychd_binding_history WHERE id > 0 ORDER BY id OFFSET %s",
            [before],
        ).fetchall()
    assert kept == [
        ("hedge", "estate", "policy-1", "simple", None, False, "host:tests", False),
        ("hedge", "other", "policy-1", "simple", None, False, "host:tests", True),
    ]


def test_words_come_with_promotion_and_leave_with_it_even_by_raw_sql(as_serving, world):
    def words(note: str) -> list[str]:
        return [
            lexeme
            for (lexeme,) in as_serving.execute(
                "SELECT lexeme FROM archive_posting p JOIN archive_note n USING (note_number) WHERE n.id = %s"
                " AND p.namespace_id = n.namespace_id ORDER BY 1",
                [world[note]],
            )
        ]

    for end in (State.ARCHIVED, State.REVOKED):
        with no_trace(as_serving):
            hold(as_serving, world)
            assert words("promoted") == ["morning", "roses", "sun", "want"]
            assert words("candidate") == []
            as_serving.execute(trips.move("promoted", end).encode(), world.names)
            as_serving.execute(trips.event_of("promoted").encode(), world.names)
            assert words("promoted") == []
            as_serving.execute(trips.move("candidate", State.PROMOTED).encode(), world.names)
            as_serving.execute(trips.event_of("candidate").encode(), world.names)
            assert words("candidate") == ["evening", "roses", "sun", "want"]
            settle(as_serving)
