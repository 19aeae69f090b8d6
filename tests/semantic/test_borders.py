"""Borders that nothing crosses while every other fence stands: each is looked at with the one before it taken away."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from archive.operations import host
from archive.publication import Publication
from archive.refusals import IntegrityFailure, Internal, InvalidRequest, Refusal
from semantic import leases
from semantic.models import Derivation, Generation
from semantic.operations import attempts
from semantic.operations.attempts import Attempt, run_attempt, run_attempts
from semantic.operations.generations import register, retire
from semantic.operations.preparation import prepare
from semantic.operations.request import request
from semantic.operations.resolution import resolve
from semantic.refusals import AttemptFenced, LeaseCleanupFailed
from tests import cast
from tests.scenarios.counting import refused
from tests.semantic import acts
from tests.semantic.conftest import GENERATION, derivation
from tests.semantic.scripted import _ScriptedDriver as scripted_driver

TEXT = "Roses want morning sun."
OTHER = "Oaks take their time."


@pytest.fixture
def note(meaning, alice, otto):
    """A promoted note under a registered generation."""
    found = cast.promoted(alice, TEXT)
    register(otto)
    return found


@pytest.fixture
def record(note, dora):
    return acts.prepared(dora, note)


@pytest.fixture
def two(note, alice, dora):
    """Two prepared notes."""
    return [acts.prepared(dora, one) for one in (note, cast.promoted(alice, OTHER, source="oaks"))]


def row_of(record) -> Derivation:
    return Derivation.objects.get(id=record.id)


def forced(superuser: "psycopg.Connection[Any]", statement: str, *values: Any) -> None:
    """Write past every trigger."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(statement.encode(), values)


@contextmanager
def without(
    superuser: "psycopg.Connection[Any]", constraint: tuple[str, str], mend: str, *values: Any
) -> Iterator[None]:
    """A constraint of a table gone for a while, and what broke it mended before it comes back."""
    table, name = constraint
    (definition,) = superuser.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [name]
    ).fetchone() or ("",)
    superuser.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    try:
        yield
    finally:
        forced(superuser, mend, *values)
        superuser.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")


# --- claims ----------------------------------------------------------------------------------------------------------


def test_a_derivation_of_another_generation_is_absent(record, otto, dora, settings):
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(generation="notes-2")}
    register(otto)

    for act in (run_attempt, request):
        with refused(404, "derivation_absent"):
            act(dora, Attempt(record.id, 1))


def test_nothing_of_another_namespace_is_prepared_tried_or_retired(note, record, dora, otto):
    meadow = cast.plant("meadow")
    host.grant("dora", meadow.binding, host.actions_of(["deriver"]), by="host:tests")
    cast.admitted(meadow.caller("alice"), "Clover feeds bees.", source="clover")
    elsewhere = meadow.caller("dora")

    with refused(404, "generation_absent"):
        prepare(elsewhere, note.id)
    with refused(404, "generation_absent"):
        retire(meadow.caller("otto"), GENERATION)
    register(meadow.caller("otto"))
    with refused(404, "record_absent"):
        prepare(elsewhere, note.id)
    for act in (run_attempt, request):
        with refused(404, "derivation_absent"):
            act(elsewhere, Attempt(record.id, 1))
    retire(meadow.caller("otto"), GENERATION)

    assert run_attempt(dora, Attempt(record.id, 1)).state == "complete"


def test_an_attempt_is_asked_for_on_the_row_version_that_was_seen(record, dora, script):
    script.changes = {"vector": b""}
    with refused(500, "embedding_output_invalid"):
        run_attempt(dora, Attempt(record.id, 1))
    script.changes = {}

    for act in (run_attempt, request):
        for version in (1, 2, 4):
            with refused(409, "derivation_not_claimable"):
                act(dora, Attempt(record.id, version, retry=True))
    assert request(dora, Attempt(record.id, 3, retry=True)).needed


@pytest.mark.parametrize("change", ["state = 'archived'", "lifecycle_version = lifecycle_version + 1"])
def test_a_note_that_left_past_every_trigger_is_not_embedded(note, record, dora, script, superuser, change):
    forced(superuser, f"UPDATE archive_note SET {change} WHERE id = %s", note.id)

    with refused(409, "source_not_eligible"):
        run_attempt(dora, Attempt(record.id, 1))
    assert script.seen == []


def test_a_text_that_is_not_what_was_prepared_is_not_embedded(note, record, dora, script, superuser):
    forced(superuser, "UPDATE archive_note SET text = 'Roses want morning sin.' WHERE id = %s", note.id)

    with refused(500, "integrity_failure"):
        run_attempt(dora, Attempt(record.id, 1))
    assert script.seen == []


@pytest.mark.parametrize("count", [0, 33])
def test_a_call_names_up_to_thirty_two_derivations(meaning, dora, count):
    with pytest.raises(InvalidRequest):
        run_attempts(dora, [Attempt(uuid4(), 1) for _ in range(count)])


def test_a_call_names_each_derivation_once_and_a_version_that_can_be(record, dora, script):
    for wanted in ([Attempt(record.id, 1)] * 2, [Attempt(record.id, 0)]):
        with pytest.raises(InvalidRequest):
            run_attempts(dora, wanted)
    assert script.opened == 0


# --- completion ------------------------------------------------------------------------------------------------------


def test_one_that_the_database_finds_too_late_is_fenced_alone(two, dora, superuser):
    """The last moment may pass between the comparison and the trigger."""
    superuser.execute(
        "CREATE FUNCTION too_late() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE EXCEPTION 'attempt_expired' USING ERRCODE = 'LY007'; END$$"
    )
    superuser.execute(
        f"CREATE TRIGGER zz_too_late BEFORE UPDATE ON semantic_derivation FOR EACH ROW"
        f" WHEN (NEW.state = 'complete' AND NEW.id = '{two[0].id}') EXECUTE FUNCTION too_late()"
    )
    try:
        answers = run_attempts(dora, [Attempt(record.id, 1) for record in two])
    finally:
        superuser.execute("DROP FUNCTION too_late() CASCADE")

    assert isinstance(answers[0].refusal, AttemptFenced)
    assert [row_of(record).state for record in two] == ["running", "complete"]


def test_a_vector_that_does_not_come_back_bit_by_bit_is_not_kept(two, dora, monkeypatch):
    read_back = attempts._read_back
    monkeypatch.setattr(attempts, "_read_back", lambda one: bytes(4096) if one == two[0].id else read_back(one))

    answers = run_attempts(dora, [Attempt(record.id, 1) for record in two])

    assert isinstance(answers[0].refusal, IntegrityFailure)
    assert [(row_of(record).state, row_of(record).failure_code) for record in two] == [
        ("failed", "integrity_failure"),
        ("complete", None),
    ]
    assert row_of(two[0]).vector is None


# --- the embedder ----------------------------------------------------------------------------------------------------


def test_a_text_of_more_bytes_than_the_manifest_allows_is_refused_whole(note, otto, dora, script, settings):
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(generation="notes-2", max_bytes=22)}
    register(otto)
    record = acts.prepared(dora, note)

    with refused(422, "model_input_oversize"):
        run_attempt(dora, Attempt(record.id, 1))
    assert script.calls == 0


def test_an_embedder_that_gives_less_than_it_was_asked_for_gave_nothing(two, dora, monkeypatch):
    embed = scripted_driver.embed
    monkeypatch.setattr(scripted_driver, "embed", lambda self, items, kind: embed(self, items, kind)[:1])

    answers = run_attempts(dora, [Attempt(record.id, 1) for record in two])

    assert [answer.refusal and answer.refusal.code for answer in answers] == ["embedding_output_invalid"] * 2
    assert not any(isinstance(answer.refusal, Internal) for answer in answers)


def test_a_lease_is_given_back_once(meaning):
    lease = leases.take()
    lease.close()

    with pytest.raises(LeaseCleanupFailed):
        lease.close()


# --- recall ----------------------------------------------------------------------------------------------------------


def test_who_finds_a_receipt_after_embedding_joins_it_though_the_generation_is_gone(
    note, bob, dora, otto, script, settings
):
    settings.LYCHD_EMBED_LEASES = 2
    acts.derived(dora, note)
    first = []

    def meanwhile() -> None:
        script.before = None
        first.append(acts.asked(bob, request_id="s1"))
        retire(otto, GENERATION)

    script.before = meanwhile
    late = acts.asked(bob, request_id="s1")

    assert (late.outcome, late.receipt) == (Publication.JOINED, first[0].receipt)


def test_a_generation_that_moved_during_inference_refuses(note, bob, script, superuser):
    """Only a constraint keeps an active generation at its version; the recall does not rest on it."""
    fence = ("semantic_generation", "generation_retirement")
    with without(superuser, fence, "UPDATE semantic_generation SET version = 1"):
        script.before = lambda: forced(superuser, "UPDATE semantic_generation SET version = 3")
        with refused(409, "generation_retired"):
            acts.asked(bob, request_id="s1")


UNTRUE = {
    "not promoted": "UPDATE archive_note SET state = 'archived' WHERE id = %(note)s",
    "another version": "UPDATE archive_note SET lifecycle_version = 9 WHERE id = %(note)s",
    "another text": "UPDATE archive_note SET text_digest = repeat('0', 64) WHERE id = %(note)s",
    "not complete": "UPDATE semantic_derivation SET state = 'invalidated', invalidation = 'archived', vector = NULL,"
    " vector_digest = NULL, l2_norm = NULL WHERE note_id = %(note)s",
    "another generation": "UPDATE semantic_derivation SET generation_id = %(other)s WHERE note_id = %(note)s",
    "another namespace": "UPDATE semantic_derivation SET namespace_id = namespace_id + 1 WHERE note_id = %(note)s",
    "no derivation": "UPDATE semantic_scan SET derivation_id = gen_random_uuid()",
}


@pytest.mark.parametrize("untrue", UNTRUE)
@pytest.mark.parametrize("min_cosine", [-1.0, -0.5])
def test_a_scan_row_that_the_truth_does_not_bear_out_refuses_the_whole_recall(
    note, bob, dora, otto, superuser, settings, untrue, min_cosine
):
    acts.derived(dora, note)
    configured = settings.LYCHD_ARCHIVE
    settings.LYCHD_ARCHIVE = {**configured, "derivation": derivation(generation="notes-2")}
    register(otto)
    settings.LYCHD_ARCHIVE = configured
    values = {"note": note.id, "other": Generation.objects.get(reference="notes-2").id}
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(UNTRUE[untrue].encode(), values)

    with refused(500, "integrity_failure"):
        acts.asked(bob, TEXT, min_cosine=min_cosine)


def test_a_text_that_is_gone_is_not_found_even_if_no_constraint_minds(note, bob, dora, superuser):
    acts.derived(dora, note)
    fence = ("archive_note", "note_text_until_revoked")
    with without(superuser, fence, "UPDATE archive_note SET text = %s WHERE id = %s", TEXT, note.id):
        forced(superuser, "UPDATE archive_note SET text = NULL WHERE id = %s", note.id)
        with refused(500, "integrity_failure"):
            acts.asked(bob, TEXT)


# --- resolution ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", ["note_lifecycle_version = 3", "text_digest = repeat('0', 64)", "note_id = %(candidate)s"]
)
def test_a_derivation_of_something_else_than_was_ranked_resolves_nothing(note, alice, bob, dora, superuser, change):
    acts.derived(dora, note)
    acts.asked(bob, request_id="s1")
    values = {"candidate": cast.admitted(alice, OTHER, source="oaks").id}
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(f"UPDATE semantic_derivation SET {change}".encode(), values)

    with pytest.raises(Refusal) as no:
        resolve(bob, "s1")
    assert no.value.code == "selection_stale"
