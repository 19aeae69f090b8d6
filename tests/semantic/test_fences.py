"""Each trigger and constraint of the derived tables, tripped by raw SQL, and what beside it goes through."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.conf import settings as configured
from django.db import connections
from django.test import override_settings
from psycopg import sql

from archive.lifecycle import State as NoteState
from archive.operations import host
from archive.operations.transition import archive
from semantic import truths
from semantic.lifecycle import EDGES, State
from semantic.operations.attempts import Attempt, run_attempt
from semantic.operations.generations import register, retire
from semantic.operations.preparation import prepare
from tests import cast, flushing
from tests.semantic.conftest import derivation
from tests.semantic.scripted import FIRST, PROVIDER, Script, literal, towards

pytestmark = pytest.mark.django_db

TABLES = ("semantic_coverage", "semantic_derivation", "semantic_generation", "semantic_scan")
UNIT = literal(FIRST)
ZERO = f"'{literal(bytes(4096))}'"
NOTHING = "attempt_token = NULL, claimed_at = NULL, deadline = NULL"
STEP = "row_version = row_version + 1"
CLAIM = (
    f"state = 'running', {STEP}, attempt = attempt + 1, attempt_token = gen_random_uuid(), failure_code = NULL,"
    " settled_at = NULL, claimed_at = c.now, deadline = c.now + interval '60 seconds'"
    " FROM (SELECT clock_timestamp() AS now) c"
)
DONE = (
    f"state = 'complete', {STEP}, {NOTHING}, l2_norm = 1,"
    f" {truths.completion('%(unit)s::vector', 'statement_timestamp()')}"
)
CLEARED = "vector = NULL, vector_digest = NULL, l2_norm = NULL"
INTO: dict[State, str] = {
    State.PREPARED: f"state = 'prepared', {STEP}, {NOTHING}, {CLEARED}, failure_code = NULL, receipt = NULL",
    State.RUNNING: CLAIM,
    State.COMPLETE: DONE,
    State.FAILED: f"state = 'failed', {STEP}, {NOTHING}, failure_code = 'internal', {CLEARED}",
    State.INVALIDATED: f"state = 'invalidated', {STEP}, {NOTHING}, {CLEARED}, failure_code = NULL,"
    " invalidation = 'archived'",
}


class _Gone(BaseException):
    pass


def _gone() -> None:
    raise _Gone


def _on(**changes: Any) -> dict[str, Any]:
    return {**(configured.LYCHD_ARCHIVE or {}), "derivation": derivation(**changes), "semantic": True}


def _plant() -> dict[str, Any]:
    """One derivation in each state, an active and a retired generation, and a meadow beside the garden."""
    garden, meadow = cast.plant("garden"), cast.plant("meadow")
    alice, otto = garden.caller("alice"), garden.caller("otto")
    host.map_principal("dora")
    for one in (garden, meadow):
        host.grant("dora", one.binding, host.actions_of(["deriver"]), by="host:tests")
    dora = garden.caller("dora")
    notes = {state: cast.promoted(alice, f"About {state}.", source=state.value) for state in State}
    candidate = cast.admitted(alice, "About nothing yet.", source="candidate")
    spare = cast.promoted(alice, "About something else.", source="spare")
    with override_settings(LYCHD_ARCHIVE=_on(generation="old")):
        old = register(otto).generation
        prepare(dora, notes[State.PREPARED].id)
        retire(otto, "old")
    active = register(otto).generation
    rows = {state: prepare(dora, note.id).derivation for state, note in notes.items()}
    run_attempt(dora, Attempt(rows[State.COMPLETE].id, 1))
    for state, act in ((State.RUNNING, _gone), (State.FAILED, lambda: 1 / 0)):
        Script.before = act
        with pytest.raises((_Gone, Exception)):
            run_attempt(dora, Attempt(rows[state].id, 1))
    Script.before = None
    archive(alice, cast.step(notes[State.INVALIDATED], NoteState.ARCHIVED))
    clover = cast.promoted(meadow.caller("alice"), "Clover feeds bees.", source="clover")
    register(meadow.caller("otto"))
    clovers = prepare(meadow.caller("dora"), clover.id).derivation
    names: dict[str, Any] = {state.value: row.id for state, row in rows.items()}
    with flushing.as_owner() as owner:
        spaces = dict(owner.execute("SELECT key, id FROM archive_namespace").fetchall())
        generations = dict(
            owner.execute(
                "SELECT n.key || ' ' || g.reference, g.id FROM semantic_generation g JOIN archive_namespace n"
                " ON n.id = g.namespace_id"
            ).fetchall()
        )
    return {
        **names,
        "garden": spaces["garden"],
        "meadow": spaces["meadow"],
        "active": active.id,
        "old": old.id,
        "elsewhere": generations["meadow notes-1"],
        "candidate_note": candidate.id,
        "spare_note": spare.id,
        "clover_note": clover.id,
        "clover": clovers.id,
        "unit": UNIT,
    }


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, Any]]:
    on = _on()
    adapters = {PROVIDER: "tests.semantic.scripted.Scripted"}
    with (
        override_settings(LYCHD_ARCHIVE=on, LYCHD_EMBEDDERS=adapters, LYCHD_TEST_EMBEDDER=True),
        django_db_blocker.unblock(),
    ):
        planted = _plant()
        connections["default"].close()
    yield planted
    with django_db_blocker.unblock(), flushing.as_owner() as owner:
        connections["default"].close()
        flushing.flush(owner)


@pytest.fixture(scope="module")
def as_owner(world) -> "Iterator[psycopg.Connection[Any]]":
    with psycopg.connect(**flushing.parameters(), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def as_serving(world) -> "Iterator[psycopg.Connection[Any]]":
    with psycopg.connect(**flushing.parameters(), autocommit=True) as connection:
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(configured.LYCHD_SERVING_ROLE)))
        yield connection


@contextmanager
def held(connection: "psycopg.Connection[Any]", world: dict[str, Any]) -> "Iterator[psycopg.Connection[Any]]":
    """Both namespaces held exclusively, in a transaction that leaves no trace."""
    with connection.transaction(force_rollback=True):
        connection.execute("SELECT set_config('lychd.hold', 'exclusive', true)")
        connection.execute("SELECT 1 FROM archive_namespace ORDER BY id FOR UPDATE")
        yield connection


def tried(connection, world, *statements: str) -> psycopg.Error | None:
    """Run statements under the hold and look at what waits for the commit; return what they met."""
    try:
        with held(connection, world):
            for statement in statements:
                connection.execute(statement.encode(), world)
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except psycopg.Error as error:
        return error
    return None


def spoken_by(error: psycopg.Error) -> str:
    """The rule whose trigger said no."""
    name = (error.diag.context or "").split("(", 1)[0].removeprefix("PL/pgSQL function ").removeprefix("public.")
    return name.removeprefix("pgtrigger_").rsplit("_", 1)[0]


def change(row: str, assignments: str) -> str:
    where = f"semantic_derivation.id = %({row})s"
    return f"UPDATE semantic_derivation SET {assignments} WHERE {where}"


def born(**columns: str) -> str:
    """Insert a derivation of the spare note, with some columns changed."""
    values = {
        "id": "gen_random_uuid()",
        "namespace_id": "%(garden)s",
        "generation_id": "%(active)s",
        "note_id": "%(spare_note)s",
        "chunk": "'whole-note'",
        "source_key": "'spare'",
        "source_revision": "'1'",
        "text_digest": "(SELECT text_digest FROM archive_note WHERE id = %(spare_note)s)",
        "note_lifecycle_version": "2",
        "state": "'prepared'",
        "attempt": "0",
        "row_version": "1",
        "dimensions": "1024",
        **columns,
    }
    return f"INSERT INTO semantic_derivation ({', '.join(values)}) VALUES ({', '.join(values.values())})"


def registered(**columns: str) -> str:
    """Insert a generation, with some columns changed."""
    values = {
        "id": "gen_random_uuid()",
        "namespace_id": "%(garden)s",
        "reference": "'new'",
        "manifest": """(SELECT jsonb_set(manifest, '{reference}', '"new"') FROM semantic_generation"""
        " WHERE id = %(active)s)",
        "dimensions": "1024",
        "state": "'active'",
        "version": "1",
        "registered_by": "'otto'",
        **columns,
    }
    return f"INSERT INTO semantic_generation ({', '.join(values)}) VALUES ({', '.join(values.values())})"


RETIRE = "state = 'retired', version = version + 1, retired_by = 'otto', retired_at = now()"


def of_generation(assignments: str, row: str = "active") -> str:
    return f"UPDATE semantic_generation SET {assignments} WHERE id = %({row})s"


IDENTITY = {
    "id": "gen_random_uuid()",
    "namespace_id": "%(meadow)s",
    "space_id": "gen_random_uuid()",
    "space_generation": "2",
    "generation_id": "%(old)s",
    "note_id": "%(spare_note)s",
    "chunk": "'other'",
    "source_key": "'other'",
    "source_revision": "'other'",
    "text_digest": "'other'",
    "note_lifecycle_version": "3",
    "dimensions": "3",
    "prepared_at": "now()",
}
MOVING = {
    *("state", "attempt", "row_version", "attempt_token", "claimed_at", "deadline", "vector", "vector_digest"),
    *("l2_norm", "receipt", "failure_code", "invalidation", "settled_at"),
}

# rule, SQLSTATE, what it says, the statements. The last one is refused.
TRIPS: list[tuple[str, str, str, tuple[str, ...]]] = [
    ("generation", "LY006", "generation_birth", (registered(state="'retired'", version="2"),)),
    ("generation", "LY006", "generation_birth", (registered(version="2"),)),
    ("generation", "LY006", "generation_manifest", (registered(dimensions="3"),)),
    ("generation", "LY006", "generation_manifest", (registered(reference="'other'"),)),
    ("generation", "LY006", "generation_manifest", (of_generation("manifest = manifest || '{\"x\": 1}'"),)),
    ("generation", "LY006", "generation_manifest", (of_generation("manifest_digest = 'other'"),)),
    ("generation", "LY006", "generation_manifest", (of_generation("dimensions = 3"),)),
    ("generation", "LY006", "generation_manifest", (of_generation("registered_by = 'mallory'"),)),
    ("generation", "LY006", "generation_edge", (of_generation("version = 2"),)),
    ("generation", "LY006", "generation_edge", (of_generation("state = 'active', version = 3", "old"),)),
    ("generation", "LY003", "generation_version_step", (of_generation(RETIRE.replace("+ 1", "+ 2")),)),
    ("derivation_edge", "LY003", "derivation_birth", (born(attempt="1"),)),
    ("derivation_edge", "LY003", "derivation_birth", (born(row_version="2"),)),
    ("derivation_edge", "LY003", "derivation_birth", (born(state="'failed'", failure_code="'internal'"),)),
    ("derivation_edge", "LY007", "derivation_source", (born(note_id="%(candidate_note)s"),)),
    ("derivation_edge", "LY007", "derivation_source", (born(note_lifecycle_version="1"),)),
    ("derivation_edge", "LY007", "derivation_source", (born(text_digest="'other'"),)),
    ("derivation_edge", "LY007", "derivation_source", (born(generation_id="%(old)s"),)),
    (
        "derivation_edge",
        "LY003",
        "derivation_version_step",
        (change("prepared", CLAIM.replace("row_version + 1", "row_version + 2")),),
    ),
    (
        "derivation_edge",
        "LY003",
        "derivation_attempt_step",
        (change("prepared", CLAIM.replace("attempt + 1", "attempt + 2")),),
    ),
    (
        "derivation_edge",
        "LY003",
        "derivation_attempt_step",
        (change("running", f"{INTO[State.FAILED]}, attempt = attempt + 1"),),
    ),
    ("derivation_edge", "LY007", "attempt_alive", (change("running", CLAIM),)),
    ("derivation_edge", "LY007", "attempt_token", (change("prepared", CLAIM.replace("gen_random_uuid()", "NULL")),)),
    (
        "derivation_edge",
        "LY007",
        "attempt_deadline",
        (change("prepared", CLAIM.replace("c.now,", "c.now + interval '1 hour',", 1)),),
    ),
    ("derivation_edge", "LY001", "derivation_receipt", (change("running", f"{INTO[State.FAILED]}, receipt = '{{}}'"),)),
    *(
        ("derivation_edge", "LY003", "derivation_edge", (change(start.value, INTO[end]),))
        for start in State
        for end in State
        if (start, end) not in EDGES and (start, end) != (State.RUNNING, State.RUNNING)
    ),
    (
        "derivation_zdone",
        "LY007",
        "derivation_vector",
        (change("running", DONE.replace("%(unit)s", ZERO).replace("l2_norm = 1", "l2_norm = 0")),),
    ),
    ("derivation_zdone", "LY007", "derivation_vector", (change("running", DONE.replace("%(unit)s", "'[1]'")),)),
    (
        "derivation_zdone",
        "LY007",
        "derivation_vector",
        (change("running", DONE.replace("l2_norm = 1", "l2_norm = 0.9995")),),
    ),
    ("same_namespace", "LY001", "other_namespace", (born(generation_id="%(elsewhere)s"),)),
    # tests/semantic/test_truths.py has every column.
    ("truth", "LY012", "generation_digest", (registered(manifest_digest="repeat('0', 64)"),)),
    ("truth", "LY012", "derivation_digest", (change("running", f"{DONE}, vector_digest = repeat('0', 64)"),)),
]

PASSES: list[tuple[str, tuple[str, ...]]] = [
    ("generation", (registered(),)),
    ("generation", (of_generation(RETIRE),)),
    ("derivation_edge", (born(),)),
    ("derivation_edge", (change("prepared", CLAIM),)),
    ("derivation_edge", (change("failed", CLAIM),)),
    ("derivation_edge", (change("running", INTO[State.FAILED]),)),
    ("derivation_zdone", (change("running", DONE),)),
    *(
        ("derivation_identity", (change(state, INTO[State.INVALIDATED]),))
        for state in ("prepared", "running", "failed", "complete")
    ),
]


@pytest.mark.parametrize(("rule", "sqlstate", "says", "statements"), TRIPS)
def test_a_trigger_refuses_what_breaks_its_rule(as_serving, world, rule, sqlstate, says, statements):
    refusal = tried(as_serving, world, *statements)
    assert refusal
    assert (refusal.sqlstate, refusal.diag.message_primary, spoken_by(refusal)) == (sqlstate, says, rule)


@pytest.mark.parametrize(("rule", "statements"), PASSES)
def test_and_lets_its_legal_neighbour_through(as_serving, world, rule, statements):
    assert tried(as_serving, world, *statements) is None


@pytest.mark.parametrize("column", IDENTITY)
def test_no_column_of_the_identity_ever_changes(as_owner, world, column):
    with held(as_owner, world):
        for rule in ("derivation_edge", "same_namespace", "a_nslock"):
            _switch_off(as_owner, "semantic_derivation", rule)
        with pytest.raises(psycopg.Error) as no:
            as_owner.execute(change("prepared", f"{column} = {IDENTITY[column]}").encode(), world)
    assert (no.value.sqlstate, no.value.diag.message_primary) == ("LY001", "derivation_identity")


def test_every_column_belongs_to_the_identity_or_moves_with_an_attempt(as_owner, world):
    assert {*IDENTITY, *MOVING} == set(columns(as_owner, "semantic_derivation"))


def test_an_expired_attempt_cannot_be_completed_and_can_be_taken_again(as_owner, world):
    aged = "claimed_at = claimed_at - interval '61 seconds', deadline = deadline - interval '61 seconds'"
    with held(as_owner, world):
        for rule in ("derivation_edge", "truth"):
            _switch_off(as_owner, "semantic_derivation", rule)
        as_owner.execute(change("running", aged).encode(), world)
        as_owner.execute(sql.SQL("ALTER TABLE semantic_derivation ENABLE TRIGGER USER"))
        with pytest.raises(psycopg.Error) as no, as_owner.transaction():
            as_owner.execute(change("running", DONE).encode(), world)
        assert (no.value.sqlstate, no.value.diag.message_primary) == ("LY007", "attempt_expired")
        assert as_owner.execute(change("running", CLAIM).encode(), world).rowcount == 1


# What a derivation stands on, taken away with the triggers off.
STANDS: dict[str, str] = {
    "promoted": "archive_note SET state = 'archived'",
    "text": "archive_note SET text = NULL",
    "version": "archive_note SET lifecycle_version = lifecycle_version + 1",
    "digest": "archive_note SET text_digest = 'other'",
    "revision": "archive_note SET source_revision = 'other'",
    "active": f"semantic_generation SET {RETIRE}",
}


@pytest.mark.parametrize("gone", STANDS)
@pytest.mark.parametrize(
    ("row", "step", "rule"),
    [("prepared", CLAIM, "derivation_edge"), ("running", DONE, "derivation_zdone")],
    ids=["derivation_edge", "derivation_zdone"],
)
def test_nothing_is_tried_or_completed_without_what_it_stands_on(as_owner, world, gone, row, step, rule):
    table = STANDS[gone].split(" ", 1)[0]
    column = "note_id" if table == "archive_note" else "generation_id"
    with held(as_owner, world):
        as_owner.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(sql.Identifier(table)))
        if gone == "text":
            as_owner.execute("ALTER TABLE archive_note DROP CONSTRAINT note_text_until_revoked")
        named = f"(SELECT {column} FROM semantic_derivation WHERE id = %({row})s)"
        as_owner.execute(f"UPDATE {STANDS[gone]} WHERE id = {named}".encode(), world)
        as_owner.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(sql.Identifier(table)))
        with pytest.raises(psycopg.Error) as no:
            as_owner.execute(change(row, step).encode(), world)
    assert (no.value.sqlstate, no.value.diag.message_primary) == ("LY007", "derivation_source")
    assert spoken_by(no.value) == rule


def test_nothing_but_zeros_stands_where_a_manifest_pads(as_owner, world):
    padding = '{"from": 384, "to": 1024, "by": "zeros-after-normalize"}'
    beyond = {**world, "unit": literal(towards(0.0, place=384))}
    with held(as_owner, world):
        _switch_off(as_owner, "semantic_generation", "generation")
        as_owner.execute(
            of_generation(f"manifest = jsonb_set(manifest, '{{embed_binding,padding}}', '{padding}')").encode(), world
        )
        with pytest.raises(psycopg.Error) as no, as_owner.transaction():
            as_owner.execute(change("running", DONE).encode(), beyond)
        assert (no.value.sqlstate, no.value.diag.message_primary) == ("LY007", "derivation_padding")
        assert as_owner.execute(change("running", DONE).encode(), world).rowcount == 1


@pytest.mark.parametrize("end", ["archived", "revoked"])
def test_a_note_that_leaves_takes_its_derivations_with_it_even_by_raw_sql(as_serving, world, end):
    with held(as_serving, world):
        as_serving.execute(
            (
                f"UPDATE archive_note SET state = '{end}', lifecycle_version = lifecycle_version + 1,"
                f" text = {'NULL' if end == 'revoked' else 'text'}"
                " WHERE id = (SELECT note_id FROM semantic_derivation WHERE id = %(complete)s)"
            ).encode(),
            world,
        )
        row = as_serving.execute(
            b"SELECT state, invalidation, row_version, vector, vector_digest, l2_norm, attempt_token, deadline,"
            b" receipt IS NOT NULL FROM semantic_derivation WHERE id = %(complete)s",
            world,
        ).fetchone()
        scanned = as_serving.execute(
            b"SELECT count(*) FROM semantic_scan WHERE derivation_id = %(complete)s", world
        ).fetchone()
    assert row == ("invalidated", end, 4, None, None, None, None, None, True)
    assert scanned == (0,)


def test_a_retired_generation_takes_every_derivation_with_it_even_by_raw_sql(as_serving, world):
    with held(as_serving, world):
        as_serving.execute(of_generation(RETIRE).encode(), world)
        states = as_serving.execute(
            b"SELECT DISTINCT state, vector, attempt_token FROM semantic_derivation WHERE generation_id = %(active)s",
            world,
        ).fetchall()
        reasons = as_serving.execute(
            b"SELECT count(*) FROM semantic_derivation WHERE invalidation = 'generation_retired'"
            b" AND generation_id = %(active)s",
            world,
        ).fetchone()
        left = as_serving.execute(
            b"SELECT (SELECT count(*) FROM semantic_scan WHERE generation_id = %(active)s),"
            b" (SELECT complete FROM semantic_coverage WHERE generation_id = %(active)s)",
            world,
        ).fetchone()
    assert states == [("invalidated", None, None)]
    assert reasons == (4,)
    assert left == (0, 0)


def test_the_scan_is_exactly_what_is_complete(as_owner, world):
    found = as_owner.execute("SELECT s.derivation_id, s.generation_id FROM semantic_scan s ORDER BY 1").fetchall()
    complete = as_owner.execute(
        "SELECT id, generation_id FROM semantic_derivation WHERE state = 'complete' ORDER BY 1"
    ).fetchall()
    assert found == complete
    assert len(found) == 1


@pytest.mark.parametrize(
    "deed",
    [
        "INSERT INTO semantic_scan (derivation_id, generation_id, half) VALUES (gen_random_uuid(), %(active)s, '[1]')",
        "UPDATE semantic_scan SET half = '[1]'",
        "DELETE FROM semantic_scan",
        "INSERT INTO semantic_coverage (generation_id, complete) VALUES (%(old)s, 9)",
        "UPDATE semantic_coverage SET complete = 9",
        "DELETE FROM semantic_derivation",
        "DELETE FROM semantic_generation",
        "TRUNCATE semantic_derivation",
        "TRUNCATE semantic_scan",
        "ALTER TABLE semantic_derivation DISABLE TRIGGER USER",
    ],
)
def test_the_serving_role_writes_no_derived_row_and_deletes_nothing(as_serving, world, deed):
    refusal = tried(as_serving, world, deed)
    assert refusal
    assert refusal.sqlstate == "42501"


def test_nothing_of_it_can_be_deleted_even_by_the_owner(as_owner, world):
    for table in ("semantic_derivation", "semantic_generation"):
        refusal = tried(as_owner, world, f"DELETE FROM {table}")
        assert refusal
        assert (refusal.sqlstate, spoken_by(refusal)) == ("LY004", "nodelete")


@pytest.mark.parametrize("kind", ["shared", "none"])
def test_a_change_needs_the_namespace_held_alone(as_serving, world, kind):
    deeds = (born(), registered(), change("prepared", CLAIM), of_generation(RETIRE))
    for deed in deeds:
        with psycopg.connect(**flushing.parameters()) as other:
            if kind == "none":
                other.execute("SELECT 1 FROM archive_namespace FOR UPDATE")
            with as_serving.transaction(force_rollback=True):
                as_serving.execute("SELECT set_config('lychd.hold', %s, true)", [kind])
                with pytest.raises(psycopg.Error) as no:
                    as_serving.execute(deed.encode(), world)
            other.rollback()
        assert (no.value.sqlstate, spoken_by(no.value)) == ("LY005", "a_nslock")


def test_a_derived_row_gets_its_space_from_its_namespace(as_serving, world):
    with held(as_serving, world):
        for statement in (
            born(space_id="gen_random_uuid()", space_generation="9"),
            registered(space_id="gen_random_uuid()", space_generation="9"),
        ):
            as_serving.execute(statement.encode(), world)
        for table in ("semantic_derivation", "semantic_generation"):
            spaces = as_serving.execute(
                sql.SQL("SELECT DISTINCT space_id, space_generation FROM {}").format(sql.Identifier(table))
            ).fetchall()
            assert spaces == as_serving.execute("SELECT id, generation FROM archive_memory_space").fetchall()


# --- constraints, each with the triggers off -------------------------------------------------------------------------

CHECKS: dict[str, tuple[str, ...]] = {
    "generation_retirement": (
        of_generation("state = 'open'"),
        of_generation("version = 2"),
        of_generation("retired_by = 'otto'"),
        of_generation("retired_at = now()"),
        of_generation("retired_at = NULL", "old"),
        of_generation("retired_by = NULL", "old"),
        of_generation("version = 1", "old"),
    ),
    "derivation_state": (change("prepared", "state = 'lost'"),),
    "derivation_chunk": (change("prepared", "chunk = 'half-note'"),),
    "derivation_counts": (
        change("prepared", "attempt = -1"),
        change("prepared", "row_version = 0"),
        change("prepared", "note_lifecycle_version = 0"),
    ),
    "derivation_vector_while_complete": (
        change("complete", "vector = NULL"),
        change("complete", "vector_digest = NULL"),
        change("complete", "l2_norm = NULL"),
        change("prepared", "vector = %(unit)s::vector"),
        change("invalidated", "vector = %(unit)s::vector"),
        change("failed", "vector_digest = 'd'"),
        change("running", "l2_norm = 1"),
    ),
    "derivation_receipt_once_complete": (
        change("complete", "receipt = NULL"),
        change("prepared", "receipt = '{}'"),
        change("running", "receipt = '{}'"),
        change("failed", "receipt = '{}'"),
    ),
    "derivation_token_while_running": (
        change("running", "attempt_token = NULL"),
        change("running", "deadline = NULL"),
        change("prepared", "attempt_token = gen_random_uuid()"),
        change("complete", "attempt_token = gen_random_uuid()"),
        change("invalidated", "claimed_at = now()"),
    ),
    "derivation_deadline": (
        change("running", "deadline = claimed_at + interval '61 seconds'"),
        change("running", "deadline = claimed_at + interval '59 seconds'"),
    ),
    "derivation_failure_while_failed": (
        change("failed", "failure_code = NULL"),
        change("prepared", "failure_code = 'internal'"),
    ),
    "derivation_invalidation": (
        change("invalidated", "invalidation = NULL"),
        change("invalidated", "invalidation = 'whim'"),
        change("complete", "invalidation = 'archived'"),
    ),
    "derivation_dimensions": (change("complete", "vector = '[1]'"), change("complete", "vector = '[0.6,0.8]'")),
    "derivation_unit_length": tuple(
        change("complete", f"vector = '[{first},{','.join(['0'] * 1023)}]'") for first in ("0", "1.01", "0.99", "1e-30")
    ),
    "coverage_complete_not_negative": ("UPDATE semantic_coverage SET complete = -1",),
}
_SPACE = {"space_id": "gen_random_uuid()", "space_generation": "1", "registered_at": "now()"}
UNIQUES: dict[str, str] = {
    "generation_reference_once": registered(reference="'notes-1'", manifest_digest="'new'", **_SPACE),
    "generation_manifest_once": registered(
        manifest_digest="(SELECT manifest_digest FROM semantic_generation WHERE id = %(active)s)", **_SPACE
    ),
    "generation_dimensions": registered(id="%(active)s", manifest_digest="'new'", **_SPACE),
    "derivation_once": born(
        note_id="(SELECT note_id FROM semantic_derivation WHERE id = %(prepared)s)", space_id="gen_random_uuid()",
        space_generation="1", prepared_at="now()",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_refuses_with_every_trigger_off(as_owner, world, name):
    for statement in CHECKS[name]:
        refusal = _without_triggers(as_owner, world, statement)
        assert refusal, statement
        assert (refusal.sqlstate, refusal.diag.constraint_name) == ("23514", name), statement


@pytest.mark.parametrize("name", UNIQUES)
def test_a_second_of_what_is_unique_is_refused(as_owner, world, name):
    statement = UNIQUES[name]
    refusal = _without_triggers(as_owner, world, statement)
    assert refusal
    assert refusal.sqlstate == "23505"
    # A second row of one identity meets the primary key first.
    assert refusal.diag.constraint_name in {name, "semantic_generation_pkey"}


def test_a_vector_has_the_dimension_of_its_generation(as_owner, world):
    refusal = _without_triggers(as_owner, world, change("prepared", "dimensions = 3"))
    assert refusal
    assert (refusal.sqlstate, refusal.diag.constraint_name) == ("23503", "derivation_generation_dimensions")


def test_every_fence_of_the_catalogue_has_its_case(as_owner, world):
    constraints = {
        name
        for (name,) in as_owner.execute(
            "SELECT conname FROM pg_constraint WHERE conrelid::regclass::text = ANY(%s) AND contype IN ('c', 'u')",
            [list(TABLES)],
        )
    }
    assert constraints == {*CHECKS, *UNIQUES}
    rules = {
        name.removeprefix("pgtrigger_").rsplit("_", 1)[0] if name.startswith("pgtrigger_") else name
        for (name,) in as_owner.execute(
            "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND (tgrelid::regclass::text = ANY(%s)"
            " OR tgname ~ 'semantic')",
            [list(TABLES)],
        )
    }
    shared = {"a_nslock", "space", "nodelete", "derivation_identity"}
    acting = {"invalidate", "semantic_invalidate", "semantic_truth", "scan"}
    assert rules == {*(rule for rule, *_ in TRIPS), *shared, *acting}


def test_analyze_keeps_no_coordinate(as_owner, world):
    for table in ("semantic_derivation", "semantic_scan"):
        as_owner.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))
    kept = as_owner.execute(
        "SELECT tablename, attname FROM pg_stats WHERE tablename LIKE 'semantic%' AND attname IN ('vector', 'half')"
    ).fetchall()
    assert kept == []


def test_no_setting_of_the_session_lets_a_write_past(as_serving, world):
    for value in ("all", "true", "{semantic_derivation:derivation_edge}"):
        refusal = tried(
            as_serving, world, f"SET LOCAL pgtrigger.ignore = '{value}'", change("prepared", INTO[State.COMPLETE])
        )
        assert refusal
        assert refusal.sqlstate == "LY003"


def columns(connection, table: str) -> list[str]:
    return [
        name
        for (name,) in connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            [table],
        )
    ]


def _switch_off(owner, table: str, rule: str) -> None:
    for (name,) in owner.execute(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND tgname LIKE %s", [table, f"pgtrigger_{rule}%"]
    ).fetchall():
        owner.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER {}").format(sql.Identifier(table), sql.Identifier(name)))


def _without_triggers(owner, world, statement: str) -> psycopg.Error | None:
    try:
        with owner.transaction(force_rollback=True):
            for table in TABLES:
                owner.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(sql.Identifier(table)))
            owner.execute(statement.encode(), world)
            owner.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except psycopg.Error as error:
        return error
    return None
