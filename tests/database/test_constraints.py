"""Each constraint of the archive's tables, tripped by raw SQL on its own: its triggers are off while it is tried.

A constraint is the last line. Where a trigger speaks first in service, the constraint still has to hold without it.
"""

from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.database import catalogue
from tests.database.world import no_trace, settle, tried, without_triggers, write_again

pytestmark = pytest.mark.django_db

FRESH = {"id": "@fresh"}


@dataclass(frozen=True)
class Copy:
    """A copy of one row: `wrong` with these changes, legal with those. `@name` stands for a planted identity."""

    where: str
    wrong: dict[str, Any]
    right: dict[str, Any]
    both: dict[str, Any] = field(default_factory=dict)


_TOMBSTONE = "id = %(tombstone)s"
_CANDIDATE = "id = %(candidate)s"
_PROMOTED = "id = %(promoted)s"
_NEW_REVISION = {**FRESH, "source_revision": "9"}
_EVENT = "note_id = %(promoted)s AND to_version = 2"
_NEXT = {"from_version": 8, "to_version": 9}

CHECKS: dict[tuple[str, str], Copy] = {
    ("archive_memory_space", "space_kind"): Copy("true", {"kind": "public"}, {"kind": "private"}, FRESH),
    ("archive_memory_space", "space_lifecycle"): Copy(
        "true", {"lifecycle": "open"}, {"lifecycle": "sealed"}, {**FRESH, "kind": "private"}
    ),
    ("archive_memory_space", "space_generation"): Copy("true", {"generation": 0}, {"generation": 1}, FRESH),
    ("archive_memory_space", "space_shared_stays_active"): Copy(
        "true",
        {"kind": "team_shared", "sealed_at": "2026-01-01T00:00:00Z"},
        {"kind": "private", "sealed_at": "2026-01-01T00:00:00Z"},
        FRESH,
    ),
    ("archive_namespace", "namespace_public"): Copy(
        "id = %(garden)s", {"classification": "secret"}, {"classification": "public"}, {"key": "hedge"}
    ),
    ("archive_namespace", "namespace_lexical_state"): Copy(
        "id = %(garden)s", {"lexical_state": "gone"}, {"lexical_state": "rebuilding"}, {"key": "hedge"}
    ),
    ("archive_note", "note_text_until_revoked"): Copy(
        _TOMBSTONE, {"text": "It speaks again."}, {"text": None}, _NEW_REVISION
    ),
    ("archive_note", "note_state"): Copy(_CANDIDATE, {"state": "lost"}, {"state": "archived"}, _NEW_REVISION),
    ("archive_note", "note_version"): Copy(
        _CANDIDATE, {"lifecycle_version": 0}, {"lifecycle_version": 1}, _NEW_REVISION
    ),
    ("archive_note", "note_size"): Copy(
        _CANDIDATE, {"char_count": 16_385}, {"char_count": 16_384, "byte_count": 65_536}, _NEW_REVISION
    ),
    ("archive_note", "note_public"): Copy(
        _CANDIDATE, {"classification": "secret"}, {"classification": "public"}, _NEW_REVISION
    ),
    ("archive_lifecycle_event", "event_version_step"): Copy(_EVENT, {"from_version": 8, "to_version": 10}, _NEXT),
    ("archive_lifecycle_event", "event_cause"): Copy(_EVENT, {"cause": "whim"}, {"cause": "explicit"}, _NEXT),
    ("archive_lifecycle_event", "event_reason"): Copy(_EVENT, {"reason": "because"}, {"reason": "wrong"}, _NEXT),
    ("archive_lifecycle_event", "event_superseded_names_its_cause"): Copy(
        _EVENT, {"cause": "superseded"}, {"cause": "superseded", "caused_by_note_id": "@candidate"}, _NEXT
    ),
    ("archive_flag", "flag_reason"): Copy("true", {"reason": "because"}, {"reason": "wrong"}),
    ("archive_recall", "recall_schema"): Copy(
        "true",
        {"schema": 3, "receipt": {"schema": 3}},
        {"schema": 2, "receipt": {"schema": 2}},
        {**FRESH, "request_id": "asked-again"},
    ),
    ("archive_recall", "recall_receipt_schema"): Copy(
        "true", {"receipt": {"schema": 2}}, {"receipt": {"schema": 1}}, {**FRESH, "request_id": "asked-again"}
    ),
    ("archive_corpus", "corpus_notes_not_negative"): Copy(
        "namespace_id = %(garden)s", {"notes": -1}, {"notes": 0}, {"namespace_id": "@hedge"}
    ),
    ("archive_corpus", "corpus_length_not_negative"): Copy(
        "namespace_id = %(garden)s", {"total_length": -1}, {"total_length": 0}, {"namespace_id": "@hedge"}
    ),
}

UNIQUES: dict[tuple[str, str], Copy] = {
    ("archive_namespace", "namespace_key"): Copy("id = %(garden)s", {}, {"key": "hedge"}),
    ("archive_source", "source_once"): Copy("id = %(roses)s", {}, {"source_key": "tulips"}),
    # Another namespace may have the same source key.
    ("archive_note", "note_revision_once"): Copy(_TOMBSTONE, {}, {"source_revision": "9"}, FRESH),
    ("archive_note", "note_one_promoted_per_source"): Copy(
        _PROMOTED, {"state": "promoted"}, {"state": "candidate"}, _NEW_REVISION
    ),
    ("archive_lifecycle_event", "event_once_per_version"): Copy(_EVENT, {}, _NEXT),
    ("archive_flag", "flag_once"): Copy("true", {}, {"subject": "wanda"}),
    ("archive_intake_request", "intake_request_once"): Copy(
        "note_id = %(promoted)s", {}, {"request_id": "another-request"}
    ),
    # One space of identities for receipts of both schemas.
    ("archive_recall", "recall_request_once"): Copy(
        "true", {"schema": 2, "receipt": {"schema": 2}}, {"request_id": "asked-again"}, FRESH
    ),
    ("lychd_binding", "binding_namespace"): Copy("namespace_key = 'garden'", {}, {"namespace_key": "hedge"}),
    ("lychd_principal", "principal_subject"): Copy("id = %(unlinked)s", {}, {"subject": "ruth"}),
    ("lychd_principal", "lychd_principal_user_id_key"): Copy(
        "id = %(principal)s", {}, {"user_id": None}, {"subject": "ruth"}
    ),
    ("lychd_token", "token_digest"): Copy("id = %(token)s", {}, {"digest": "0" * 64}),
}

# A number that the database alone gives; no copy of a row can bring it along.
BY_HAND = {("archive_note", "note_number_once")}


def test_every_check_and_every_uniqueness_has_its_case(as_owner):
    known = {*CHECKS, *UNIQUES, *BY_HAND}
    assert {*catalogue.constraints(as_owner, "cux"), *catalogue.lone_unique_indexes(as_owner)} == known


def test_every_table_has_rows_to_try_its_rules_on(as_owner):
    empty = [
        table
        for table in catalogue.tables(as_owner)
        if not as_owner.execute(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(table))).fetchone()[0]
    ]
    assert empty == []


@pytest.fixture
def bare(as_owner, world):
    """The owner, with all triggers off until the rollback, and a namespace that nothing has been promoted in."""
    with no_trace(as_owner):
        (hedge,) = as_owner.execute(
            "INSERT INTO archive_namespace (key, profile, owner, policy_revision, binding_digest, classification,"
            " text_configuration, lexer_fingerprint, lexical_state, row_version) SELECT 'thicket', profile, owner,"
            " policy_revision, NULL, classification, text_configuration, lexer_fingerprint, 'ready', 1"
            " FROM archive_namespace WHERE key = 'garden' RETURNING id"
        ).fetchone()
        without_triggers(as_owner, *catalogue.tables(as_owner))
        world.names["hedge"] = hedge
        yield as_owner


def _refused(connection, table: str, case: Copy, world, sqlstate: str, name: str) -> None:
    with pytest.raises(psycopg.Error) as refusal, connection.transaction():
        write_again(connection, table, case.where, world, {**case.both, **case.wrong}, fenced=False)
    assert (refusal.value.sqlstate, refusal.value.diag.constraint_name) == (sqlstate, name)
    assert refusal.value.diag.table_name == table


@pytest.mark.parametrize(("table", "name"), CHECKS)
def test_a_check_refuses_and_lets_its_neighbour_through(bare, world, table, name):
    case = CHECKS[table, name]
    _refused(bare, table, case, world, "23514", name)
    assert write_again(bare, table, case.where, world, {**case.both, **case.right}, fenced=False) == 1
    settle(bare)


@pytest.mark.parametrize(("table", "name"), UNIQUES)
def test_a_second_of_what_is_unique_is_refused_and_another_is_not(bare, world, table, name):
    case = UNIQUES[table, name]
    _refused(bare, table, case, world, "23505", name)
    assert write_again(bare, table, case.where, world, {**case.both, **case.right}, fenced=False) == 1
    settle(bare)


@pytest.mark.parametrize(("table", "name"), [*CHECKS, *UNIQUES])
def test_the_serving_role_is_refused_by_one_fence_or_another(as_serving, world, table, name):
    case = CHECKS.get((table, name)) or UNIQUES[table, name]
    world.names["hedge"] = world["meadow"]
    refusal = tried(
        as_serving,
        world,
        "SELECT 1 FROM archive_namespace FOR UPDATE",
        lambda serving: write_again(serving, table, case.where, world, {**case.both, **case.wrong}),
    )
    assert refusal
    assert refusal.sqlstate in {"23514", "23505", "42501", "LY001", "LY002", "LY003", "LY011", "LY012"}


def test_the_size_of_a_note_has_a_floor_and_counts_bytes_too(bare, world):
    for size in ({"char_count": 0}, {"byte_count": 0}, {"byte_count": 65_537}):
        case = Copy(_CANDIDATE, size, {}, _NEW_REVISION)
        _refused(bare, "archive_note", case, world, "23514", "note_size")


def test_a_shared_space_is_neither_sealed_nor_retired(bare, world):
    for ended in ({"lifecycle": "sealed"}, {"retired_at": "2026-01-01T00:00:00Z"}):
        case = Copy("true", ended, {}, FRESH)
        _refused(bare, "archive_memory_space", case, world, "23514", "space_shared_stays_active")


def test_an_explicit_event_names_no_other_cause(bare, world):
    case = Copy(_EVENT, {"caused_by_note_id": "@candidate"}, {}, _NEXT)
    _refused(bare, "archive_lifecycle_event", case, world, "23514", "event_superseded_names_its_cause")


def test_two_namespaces_may_have_sources_and_requests_of_one_name(bare, world):
    for table, where in (("archive_source", "id = %(roses)s"), ("archive_intake_request", "note_id = %(promoted)s")):
        assert write_again(bare, table, where, world, {"namespace_id": "@meadow"}, fenced=False) == 1
    assert write_again(bare, "archive_recall", "true", world, {**FRESH, "namespace_id": "@meadow"}, fenced=False) == 1


def test_the_number_of_a_note_is_the_databases_to_give(bare, world):
    with pytest.raises(psycopg.Error) as refusal, bare.transaction():
        bare.execute("UPDATE archive_note SET note_number = 1")
    assert refusal.value.sqlstate == "428C9"
    bare.execute("ALTER TABLE archive_note ALTER COLUMN note_number SET GENERATED BY DEFAULT")
    with pytest.raises(psycopg.Error) as refusal, bare.transaction():
        bare.execute("UPDATE archive_note SET note_number = (SELECT max(note_number) FROM archive_note)")
    assert (refusal.value.sqlstate, refusal.value.diag.constraint_name) == ("23505", "note_number_once")


def test_every_primary_key_refuses_its_second(bare):
    keys = catalogue.constraints(bare, "p")
    assert {table for table, _ in keys} == set(catalogue.tables(bare))
    for table, name in keys:
        with pytest.raises(psycopg.Error) as refusal, bare.transaction():
            bare.execute(
                sql.SQL("INSERT INTO {0} OVERRIDING SYSTEM VALUE SELECT * FROM {0} LIMIT 1").format(
                    sql.Identifier(table)
                )
            )
        assert (refusal.value.sqlstate, refusal.value.diag.constraint_name) == ("23505", name)


NO_SUCH_ROW = {"bigint": "-1", "integer": "-1", "uuid": "00000000-0000-4000-8000-000000000000"}


def test_every_foreign_key_refuses_a_row_that_is_not_there(bare, world):
    for key in catalogue.foreign_keys(bare):
        strayed = sql.SQL(
            "UPDATE {0} SET {1} = {2} WHERE ctid = (SELECT max(ctid) FROM {0} WHERE {1} IS NOT NULL)"
        ).format(sql.Identifier(key.table), sql.Identifier(key.column), sql.Literal(NO_SUCH_ROW[key.type]))
        refusal = tried(bare, world, strayed)
        assert refusal, key
        assert (refusal.sqlstate, refusal.diag.constraint_name) == ("23503", key.name)


def test_no_row_that_is_named_can_go_even_without_triggers(bare, world):
    for key in catalogue.foreign_keys(bare):
        gone = sql.SQL("DELETE FROM {0} WHERE id IN (SELECT {1} FROM {2})").format(
            sql.Identifier(key.parent), sql.Identifier(key.column), sql.Identifier(key.table)
        )
        refusal = tried(bare, world, gone)
        assert refusal, key
        assert refusal.sqlstate == "23503"


def test_every_required_column_refuses_to_be_empty(bare):
    required = catalogue.required_columns(bare)
    assert len(required) > 100
    bare.execute("ALTER TABLE archive_note ALTER COLUMN note_number SET GENERATED BY DEFAULT")
    for table, column in required:
        with pytest.raises(psycopg.Error) as refusal, bare.transaction():
            bare.execute(
                sql.SQL("UPDATE {0} SET {1} = NULL WHERE ctid = (SELECT max(ctid) FROM {0})").format(
                    sql.Identifier(table), sql.Identifier(column)
                )
            )
        assert (refusal.value.sqlstate, refusal.value.diag.column_name) == ("23502", column), (table, column)


OPTIONAL = {
    "archive_memory_space": {"owner_membership", "private_content_at", "sealed_at", "retired_at"},
    "archive_note": {
        *("asserted_origin", "text", "retain_until", "observed_at"),
        *("promoted_at", "archived_at", "revoked_at", "superseded_by_id"),
    },
    "archive_lifecycle_event": {"from_state", "caused_by_note_id", "reason"},
    "lychd_binding": {"generation", "disabled_at"},
    "lychd_binding_history": {"generation", "disabled_at"},
    "lychd_grant": {"valid_until", "revoked_at"},
    "lychd_principal": {"user_id", "linked_at"},
    "lychd_token": {"revoked_at", "last_used_at", "namespaces"},
}


def test_what_may_be_empty_is_a_short_list(as_owner):
    required = set(catalogue.required_columns(as_owner))
    optional = {}
    for table in catalogue.tables(as_owner):
        empty = {column for column in catalogue.columns(as_owner, table) if (table, column) not in required}
        if empty:
            optional[table] = empty
    assert optional == OPTIONAL
