"""What an operation holds while it judges: the queue and the row of its namespace, exclusively or shared (0.3, 5.9)."""

import pytest

from archive import transactions
from archive.models import Source
from archive.operations import host
from archive.operations.migration import migrate
from archive.refusals import BindingMismatch
from archive.transactions import DatabaseFault
from tests import cast
from tests.racing import world
from tests.racing.world import TEXTS, Part

CHANGES = [
    world.INTAKE,
    world.INTAKE_BATCH,
    world.PROMOTE_2,
    world.MOVE_BATCH,
    world.FLAG,
    world.MIGRATE_AT_LAST,
    world.REBUILD,
]
RECALLS = [world.RECALL, world.RECALL_REPLAY, world.RESOLVE, world.REVIEW]


def seen_at_its_gates(crew, owner, part: Part) -> list[tuple[str, str | None, bool, bool]]:
    """At each gate inside a transaction: the queue lock it has, and whether others could change or share the row."""
    found = part.ground(owner)
    seen = []

    def look(ready):
        (actor,) = ready
        inside = owner.execute(
            "SELECT state = 'idle in transaction' FROM pg_stat_activity WHERE pid = %s", [actor.pid]
        ).fetchone()[0]
        if inside:
            queue = owner.execute(
                "SELECT mode FROM pg_locks WHERE pid = %s AND locktype = 'advisory' AND granted"
                " AND ((classid::bigint << 32) | objid::bigint) = hashtextextended('lychd:' || %s::text, 0)",
                [actor.pid, found.key],
            ).fetchone()
            row = "SELECT count(*) FROM (SELECT FROM archive_namespace WHERE key = %s FOR {} SKIP LOCKED) free"
            changeable = owner.execute(row.format("UPDATE"), [found.key]).fetchone()[0] == 1
            shareable = owner.execute(row.format("SHARE"), [found.key]).fetchone()[0] == 1
            seen.append((actor.where, queue[0] if queue else None, changeable, shareable))
        return actor

    crew.perform([lambda: part.play(found)], look)
    assert seen, f"{part} was never inside a transaction"
    return seen


@pytest.mark.parametrize("part", CHANGES, ids=str)
def test_a_change_holds_its_namespace_against_everybody(crew, owner, part):
    for gate, queue, changeable, shareable in seen_at_its_gates(crew, owner, part):
        assert (queue, changeable, shareable) == ("ExclusiveLock", False, False), gate


@pytest.mark.parametrize("part", RECALLS, ids=str)
def test_a_recall_holds_its_namespace_against_changes_alone(crew, owner, part):
    for gate, queue, changeable, shareable in seen_at_its_gates(crew, owner, part):
        assert (queue, changeable, shareable) == ("ShareLock", False, True), gate


def test_a_rebuild_holds_its_namespace_anew_for_each_of_its_parts(crew, owner):
    assert [gate for gate, *_ in seen_at_its_gates(crew, owner, world.REBUILD)] == ["commit"] * 3


def test_under_a_shared_hold_nothing_but_a_receipt_is_written(crew, owner):
    found = world.planted(owner)
    binding = found.caller("bob").binding

    with pytest.raises(DatabaseFault) as refused, transactions.shared(binding) as namespace:
        Source.objects.create(namespace=namespace, source_key="smuggled")

    assert refused.value.sqlstate == "LY005"


def test_a_unique_violation_inside_an_intake_is_judged_once_more(crew, owner, superuser):
    """The hold makes it impossible; should a unique constraint know better, what it saw decides."""
    found = world.planted(owner)
    superuser.execute("SET session_replication_role = replica")

    def smuggle(ready):
        (actor,) = ready
        if actor.walk.trace == ["start", "intake.A1", "intake.looked"]:
            superuser.execute(
                "INSERT INTO archive_intake_request (namespace_id, space_id, space_generation, request_id,"
                " request_digest, material_digest, note_id, created_note, subject)"
                " SELECT namespace_id, space_id, space_generation, 'new', 'other', 'other', note_id, false, 'wanda'"
                " FROM archive_intake_request WHERE request_id = 'taken' AND note_id = %s",
                [found.notes["1"].id],
            )
        return actor

    crew.perform([lambda: world.INTAKE.play(found)], smuggle)

    walk = crew.actors[0].walk
    assert (walk.ended.value, walk.trace.count("intake.looked")) == ("request_conflict", 2)


def test_a_migration_is_refused_when_the_configuration_moved_on_under_it(crew, owner):
    found = world.rebound(owner)
    otto = found.caller("otto")
    host.configure_namespace(found.key, owner=cast.OWNER, policy_revision="policy-3", by="host:tests")

    with pytest.raises(BindingMismatch):
        migrate(otto, reason="the policy moved on")

    assert found.ledger().migrations == ()


# --- eligibility is asked of the truth, not of what was derived from it ----------------------------------------------


def stray(owner, key: str, words: str, number: int) -> None:
    """Write words of a note into the postings of a namespace, as only the owner of the table can."""
    owner.execute(
        "INSERT INTO archive_posting (namespace_id, lexeme, note_number, tf, length)"
        " SELECT n.id, word, %s, 1, 1 FROM archive_namespace n, unnest(string_to_array(%s, ' ')) word WHERE n.key = %s",
        [number, words, key],
    )


def numbered(owner, key: str, text: str) -> int:
    return owner.execute(
        "SELECT o.note_number FROM archive_note o JOIN archive_namespace n ON n.id = o.namespace_id"
        " WHERE n.key = %s AND o.text = %s",
        [key, text],
    ).fetchone()[0]


def test_words_that_strayed_into_the_postings_make_no_candidate_eligible(crew, owner):
    found = world.planted(owner)
    stray(owner, found.key, "evening stray", numbered(owner, found.key, TEXTS["2"]))

    answer = cast.asked(found.caller("bob"), "evening stray")

    assert answer.receipt["outcome"] == "miss"


def test_words_that_strayed_into_another_namespace_show_nothing_of_it(crew, owner):
    found = world.planted(owner)
    stray(owner, found.key, "stray", numbered(owner, world.NEIGHBOUR, TEXTS["1"]))

    answer = cast.asked(found.caller("bob"), "stray")

    assert answer.receipt["outcome"] == "miss"


def test_a_tombstone_keeps_no_word_even_if_no_constraint_minds(crew, owner):
    found = world.planted(owner)
    world.REVOKE_1.play(found)
    (words,) = owner.execute(
        "SELECT count(*) FROM archive_posting p JOIN archive_namespace n ON n.id = p.namespace_id WHERE n.key = %s",
        [found.key],
    ).fetchone()
    (text,) = owner.execute("SELECT text FROM archive_note WHERE id = %s", [found.notes["1"].id]).fetchone()

    assert (words, text) == (0, None)
