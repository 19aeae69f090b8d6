"""K. Derivation attempts and races."""

import json
import struct
import threading
import time
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from archive.lifecycle import State as NoteState
from archive.operations.transition import archive, promote, revoke
from archive.refusals import AuthorityRefused, Refusal
from inspection import derivations
from semantic import leases, limits, vectors
from semantic.models import Derivation
from semantic.operations.attempts import Attempt, run_attempt, run_attempts
from semantic.operations.generations import register, retire
from semantic.operations.preparation import prepare, prepare_many
from semantic.refusals import AttemptFenced, DerivationNotClaimable, EmbeddingOutputInvalid
from semantic.tasks import message, run_derivation_attempt
from tests import cast
from tests.scenarios.counting import Counts, refused
from tests.scenarios.together import together
from tests.semantic import acts
from tests.semantic.ageing import age
from tests.semantic.conftest import GENERATION, derivation
from tests.semantic.scripted import FIRST, towards
from tests.semantic.scripted import _ScriptedDriver as scripted_driver


@pytest.fixture
def note(meaning, alice, otto):
    """A promoted note under a registered generation."""
    found = cast.promoted(alice, "Roses want morning sun.")
    register(otto)
    return found


def row_of(derivation_id) -> Derivation:
    return Derivation.objects.get(id=derivation_id)


def stored(derivation_id) -> bytes:
    with connection.cursor() as cursor:
        cursor.execute("SELECT vector_send(vector) FROM semantic_derivation WHERE id = %s", [derivation_id])
        return vectors.received(bytes(cursor.fetchone()[0]))


def attempt_of(record, *, retry=False) -> Attempt:
    return Attempt(record.id, record.row_version, retry)


def ended(derivation_id, invalidation: str, *, complete: bool = False) -> None:
    """The row is invalidated for this reason, and nothing of a vector or of a token is left of it."""
    row = row_of(derivation_id)
    assert (row.state, row.invalidation) == ("invalidated", invalidation)
    assert [row.vector, row.vector_digest, row.l2_norm, row.attempt_token, row.claimed_at, row.deadline] == [None] * 6
    assert (row.receipt is not None) is complete
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM semantic_scan WHERE derivation_id = %s", [derivation_id])
        assert cursor.fetchone() == (0,)


def test_s160_preparing_twice_is_one_row_and_reads_no_text(note, dora):
    with CaptureQueriesContext(connection) as queries:
        first = prepare(dora, note.id)
        second = prepare(dora, note.id)

    assert (first.created, second.created) == (True, False)
    assert first.derivation == second.derivation
    assert (first.derivation.state, first.derivation.attempt, first.derivation.row_version) == ("prepared", 0, 1)
    assert Derivation.objects.count() == 1
    assert not [q["sql"] for q in queries if '"text"' in q["sql"] or ".text " in q["sql"]]


def test_s161_an_attempt_stores_the_bytes_of_the_embedder(note, dora, script):
    record = acts.prepared(dora, note)
    run_derivation_attempt(**message(dora.namespace, "dora", attempt_of(record), "c-1"))

    done = row_of(record.id)
    assert (done.state, done.attempt, done.row_version, len(done.vector)) == ("complete", 1, 3, 1024)
    assert script.calls == 1
    assert script.seen[0][0] == "Roses want morning sun."
    given = stored(record.id)
    assert vectors.digest(given) == done.vector_digest == done.receipt["vector_digest"]
    assert set(done.receipt) == {
        *("profile", "binding_digest", "derivation_digest", "attempt", "input_bytes", "tokens", "vector_digest", "l2"),
        *("started_at", "finished_at"),
    }
    assert "Roses" not in json.dumps(done.receipt)


def test_s162_a_complete_derivation_is_told_again_and_not_embedded_again(note, dora, script):
    record = acts.derived(dora, note)

    assert prepare(dora, note.id).derivation == record
    assert run_attempt(dora, attempt_of(record)) == record
    assert run_attempt(dora, Attempt(record.id, 1)) == record

    assert (script.calls, row_of(record.id).row_version) == (1, 3)


def test_s163_of_two_claims_one_wins_and_both_leases_are_given_back(note, dora, script, settings):
    settings.LYCHD_EMBED_LEASES = 2
    record = acts.prepared(dora, note)
    at_the_claim = threading.Barrier(2, timeout=20)
    take = leases.take

    def both_hold_one():
        lease = take()
        at_the_claim.wait()
        return lease

    leases.take = both_hold_one
    try:
        answers = together(*[lambda: run_attempt(dora, attempt_of(record))] * 2)
    finally:
        leases.take = take

    assert sorted(type(answer).__name__ for answer in answers) == ["DerivationNotClaimable", "DerivationRecord"]
    assert script.calls == 1
    assert (script.opened, script.closed) == (2, 2)
    assert (row_of(record.id).state, row_of(record.id).attempt) == ("complete", 1)


def test_s164_the_same_message_twice_embeds_once(note, dora, script):
    record = acts.prepared(dora, note)

    for _ in range(3):
        run_derivation_attempt(**message(dora.namespace, "dora", attempt_of(record), "c-1"))

    assert script.calls == 1
    assert row_of(record.id).row_version == 3


def test_s164_a_second_delivery_during_the_first_ends_without_effect(note, dora, script, settings):
    settings.LYCHD_EMBED_LEASES = 2
    record = acts.prepared(dora, note)
    seen = []

    def deliver_again():
        script.before = None
        run_derivation_attempt(**message(dora.namespace, "dora", attempt_of(record), "c-1"))
        seen.append((row_of(record.id).state, row_of(record.id).row_version))

    script.before = deliver_again
    run_attempt(dora, attempt_of(record))

    assert seen == [("running", 2)]
    assert script.calls == 1


def test_s165_a_note_revoked_while_it_is_embedded_leaves_no_vector(note, alice, dora, script):
    record = acts.prepared(dora, note)
    script.before = lambda: revoke(alice, cast.step(note, NoteState.REVOKED))

    with pytest.raises(AttemptFenced):
        run_attempt(dora, attempt_of(record))

    ended(record.id, "revoked")


def test_s166_a_newer_revision_fences_the_older_ones_attempt(note, alice, dora, script):
    record = acts.prepared(dora, note)
    newer = cast.admitted(alice, "Roses want evening sun.", revision="2")
    script.before = lambda: promote(alice, cast.step(newer, NoteState.PROMOTED))

    with pytest.raises(AttemptFenced):
        run_attempt(dora, attempt_of(record))

    ended(record.id, "superseded")


def test_s167_a_generation_retired_meanwhile_fences_the_attempt(note, otto, dora, script):
    record = acts.prepared(dora, note)
    script.before = lambda: retire(otto, GENERATION)

    with pytest.raises(AttemptFenced):
        run_attempt(dora, attempt_of(record))

    ended(record.id, "generation_retired")


class _Gone(BaseException):
    """The worker is no more."""


def claimed_and_gone(dora, record, script) -> None:
    """Claim, and be gone before anything is settled."""

    def gone():
        raise _Gone

    script.before = gone
    with pytest.raises(_Gone):
        run_attempt(dora, attempt_of(record))
    script.before = None


def test_s168_expired_is_shown_by_the_databases_clock_and_not_written(note, dora, script, owner, superuser):
    record = acts.prepared(dora, note)
    claimed_and_gone(dora, record, script)
    assert derivations.derivation(dora, record.id).state == "running"
    age(superuser, record.id)
    counts = Counts(owner)

    shown = derivations.derivation(dora, record.id)

    assert (shown.state, shown.attempt, shown.row_version) == ("expired", 1, 2)
    counts.unchanged()
    assert row_of(record.id).state == "running"
    assert derivations.generation(dora, GENERATION).states["expired"] == 1


def test_s169_only_a_retry_takes_an_expired_attempt_up_and_the_first_is_fenced(note, dora, script, superuser, settings):
    settings.LYCHD_EMBED_LEASES = 3
    record = acts.prepared(dora, note)
    done = {}

    def overtaken():
        script.before = None
        tokens = [row_of(record.id).attempt_token]
        age(superuser, record.id)
        with pytest.raises(DerivationNotClaimable):
            run_attempt(dora, Attempt(record.id, 2))
        script.before = lambda: tokens.append(row_of(record.id).attempt_token)
        script.vectors = {"Roses want morning sun.": towards(0.5)}
        done["b"] = run_attempt(dora, Attempt(record.id, 2, retry=True))
        script.before, script.vectors = None, {"Roses want morning sun.": towards(0.25)}
        assert len(set(tokens)) == 2

    script.before = overtaken
    with pytest.raises(AttemptFenced):
        run_attempt(dora, attempt_of(record))

    assert (done["b"].state, done["b"].attempt) == ("complete", 2)
    assert row_of(record.id).vector_digest == vectors.digest(towards(0.5))


def test_a_live_attempt_cannot_be_taken_even_by_a_retry(note, dora, script, settings):
    settings.LYCHD_EMBED_LEASES = 2
    record = acts.prepared(dora, note)
    met = []

    def meddle():
        script.before = None
        with pytest.raises(DerivationNotClaimable):
            run_attempt(dora, Attempt(record.id, 2, retry=True))
        met.append(True)

    script.before = meddle
    assert run_attempt(dora, attempt_of(record)).state == "complete"
    assert met


def test_c6_a_completion_that_waited_past_its_deadline_is_refused(note, dora, script, superuser):
    record = acts.prepared(dora, note)
    script.before = lambda: age(superuser, record.id)

    with pytest.raises(AttemptFenced):
        run_attempt(dora, attempt_of(record))

    assert row_of(record.id).vector is None
    assert derivations.derivation(dora, record.id).state == "expired"


@pytest.mark.slow
def test_s171_an_embedder_that_takes_longer_than_a_minute_stores_nothing(note, dora, script):
    """By the real clock: nobody has moved a deadline here."""
    record = acts.prepared(dora, note)
    script.before = lambda: time.sleep(limits.ATTEMPT_SECONDS + 1)

    with pytest.raises(AttemptFenced):
        run_attempt(dora, attempt_of(record))

    assert row_of(record.id).vector is None
    assert derivations.derivation(dora, record.id).state == "expired"


def test_s172_an_embedder_that_fails_leaves_a_code_and_nothing_tries_again(note, dora, script, settings):
    record = acts.prepared(dora, note)

    def broken():
        raise RuntimeError("the model has a fault and says: Roses want morning sun.")

    script.before = broken
    with refused(500, "internal"):
        run_attempt(dora, attempt_of(record))

    row = row_of(record.id)
    assert (row.state, row.failure_code, row.row_version) == ("failed", "internal", 3)
    assert (row.attempt_token, row.deadline) == (None, None)
    assert script.calls == 1
    # There is nothing that could call again: no schedule, no retry of the task, no scan.
    assert run_derivation_attempt.max_retries == 0
    assert not getattr(settings, "CELERY_BEAT_SCHEDULE", None)
    script.before = None
    with pytest.raises(DerivationNotClaimable):
        run_attempt(dora, Attempt(record.id, 3))
    again = run_attempt(dora, Attempt(record.id, 3, retry=True))
    assert (again.state, again.attempt, script.calls) == ("complete", 2, 2)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(TimeoutError(), 504, "embedding_timeout"), ("cancelled", 503, "embedding_cancelled")],
)
def test_a_timeout_and_a_cancellation_have_codes_of_their_own(note, dora, script, error, status, code):
    from concurrent.futures import CancelledError

    record = acts.prepared(dora, note)

    def stop():
        raise error if isinstance(error, Exception) else CancelledError

    script.before = stop
    with refused(status, code):
        run_attempt(dora, attempt_of(record))
    assert row_of(record.id).failure_code == code


def test_s173_a_lease_that_cannot_be_closed_publishes_nothing(note, dora, script):
    record = acts.prepared(dora, note)

    def stuck():
        raise OSError("the driver does not let go")

    script.on_close = stuck
    with refused(500, "lease_cleanup_failed"):
        run_attempt(dora, attempt_of(record))

    row = row_of(record.id)
    assert (row.state, row.failure_code, row.vector) == ("failed", "lease_cleanup_failed", None)
    assert script.calls == 1


def floats(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


NAN, INFINITE = float("nan"), float("inf")
BAD_VECTORS = {
    "1023 dimensions": FIRST[:-4],
    "1025 dimensions": FIRST + FIRST[-4:],
    "no dimensions": b"",
    "half a component": FIRST[:-1],
    "NaN": floats(NAN, *[0.0] * 1023),
    "infinite": floats(INFINITE, *[0.0] * 1023),
    "minus infinite": floats(-INFINITE, *[0.0] * 1023),
    "length 1.01": floats(1.01, *[0.0] * 1023),
    "length 0.99": floats(0.99, *[0.0] * 1023),
    "zero": bytes(4096),
    "minus zero": floats(*[-0.0] * 1024),
    "underflowed": floats(*[1e-45] * 1024),
    "no bytes": [1.0] + [0.0] * 1023,
}


@pytest.mark.parametrize("name", BAD_VECTORS)
def test_s175_what_is_no_unit_vector_of_the_profile_is_never_stored(note, dora, script, name):
    record = acts.prepared(dora, note)
    script.changes = {"vector": BAD_VECTORS[name]}

    with refused(500, "embedding_output_invalid"):
        run_attempt(dora, attempt_of(record))

    row = row_of(record.id)
    assert (row.state, row.failure_code, row.vector) == ("failed", "embedding_output_invalid", None)


@pytest.mark.parametrize(
    "lie", [{"item_id": "another"}, {"binding_digest": "0" * 64}, {"tokens": 1}, {"rendered_bytes": 1}]
)
def test_an_answer_for_something_else_is_refused(note, dora, script, lie):
    record = acts.prepared(dora, note)
    script.changes = lie

    with refused(500, "embedding_output_invalid"):
        run_attempt(dora, attempt_of(record))
    assert row_of(record.id).state == "failed"


def test_s176_every_bit_comes_back_from_the_database(note, dora, script):
    given = floats(1.0, -0.0, 0.0, 1e-45, -1e-45, 1.1754942e-38, 1e-20, *[0.0] * 1017)
    script.vectors = {"Roses want morning sun.": given}

    record = acts.derived(dora, note)

    assert stored(record.id) == given
    assert record.vector_digest == vectors.digest(given)
    assert vectors.digest(given) != vectors.digest(given.replace(floats(-0.0), floats(0.0)))


def test_s177_a_text_beyond_the_models_window_is_refused_whole(note, alice, dora, script, settings, otto, monkeypatch):
    settings.LYCHD_ARCHIVE = {
        **settings.LYCHD_ARCHIVE,
        "derivation": derivation(generation="notes-2", max_tokens=4, document_prefix="passage "),
    }
    register(otto)
    record = acts.prepared(dora, note)
    measured = []
    measure = scripted_driver.measure

    def remember(self, item, kind):
        measured.append(item.text)
        return measure(self, item, kind)

    monkeypatch.setattr(scripted_driver, "measure", remember)
    with refused(422, "model_input_oversize"):
        run_attempt(dora, attempt_of(record))

    # Four words and the prefix: the embedder counted the whole of it, and was given nothing to embed.
    assert measured == ["Roses want morning sun."]
    assert script.calls == 0
    assert row_of(record.id).failure_code == "model_input_oversize"
    # A shorter one passes.
    short = cast.promoted(alice, "Roses climb.", source="short")
    assert acts.derived(dora, short).state == "complete"


def test_s178_no_transaction_and_no_lock_is_open_while_the_model_works(note, dora, script, owner):
    record = acts.prepared(dora, note)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    seen = []

    def look():
        state, began = owner.execute("SELECT state, xact_start FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
        held = owner.execute("SELECT count(*) FROM pg_locks WHERE pid = %s", [pid]).fetchone()[0]
        seen.append((state, began, held, connection.in_atomic_block))

    script.before = script.on_close = look
    run_attempt(dora, attempt_of(record))

    assert seen == [("idle", None, 0, False)] * 2


def test_s180_archiving_ends_the_derivations_of_every_generation(note, alice, otto, dora, settings, owner):
    first = acts.derived(dora, note)
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(generation="notes-2")}
    register(otto)
    second = acts.derived(dora, note)
    assert owner.execute("SELECT count(*) FROM semantic_scan").fetchone() == (2,)

    archive(alice, cast.step(note, NoteState.ARCHIVED))

    for record in (first, second):
        ended(record.id, "archived", complete=True)
        assert row_of(record.id).row_version == record.row_version + 1
    assert owner.execute("SELECT complete FROM semantic_coverage ORDER BY 1").fetchall() == [(0,), (0,)]


def test_s182_an_invalidated_derivation_still_names_its_source_and_opens_no_text(note, alice, bob, dora):
    record = acts.derived(dora, note)
    revoke(alice, cast.step(note, NoteState.REVOKED))

    shown = derivations.derivation(dora, record.id)

    assert (shown.state, shown.invalidation) == ("invalidated", "revoked")
    assert (shown.source_key, shown.source_revision, shown.note_id) == ("roses", "1", note.id)
    assert "morning" not in json.dumps(shown.as_json())
    with pytest.raises(AuthorityRefused):
        derivations.derivation(bob, record.id)
    with refused(409, "derivation_invalidated"):
        run_attempt(dora, Attempt(record.id, shown.row_version, retry=True))


def test_s183_only_a_promoted_note_can_be_prepared(note, alice, dora, counts):
    candidate = cast.admitted(alice, "Ferns want shade.", source="ferns")
    gone = cast.revoked(alice, "Ivy wants a wall.", source="ivy")
    old = cast.archived(alice, "Oaks take their time.", source="oaks")

    for other in (candidate, gone, old):
        with counts.refused(409, "source_not_eligible"):
            prepare(dora, other.id)
    with counts.refused(404, "record_absent"):
        prepare(dora, uuid4())


def test_preparing_and_trying_are_refused_without_a_standing_generation(meaning, alice, otto, dora):
    note = cast.promoted(alice)
    with refused(404, "generation_absent"):
        prepare(dora, note.id)
    register(otto)
    record = acts.prepared(dora, note)
    retire(otto, GENERATION)
    with refused(409, "generation_retired"):
        prepare(dora, note.id)
    with refused(409, "generation_retired"):
        run_attempt(dora, Attempt(record.id, 2, retry=True))


def test_notes_are_embedded_together_each_with_its_own_fence(note, alice, dora, script):
    notes = [note, *(cast.promoted(alice, f"Oaks grow {n} years.", source=f"oak-{n}") for n in range(3))]
    records = [answer.given().derivation for answer in prepare_many(dora, [one.id for one in notes])]
    tokens = []

    def meanwhile():
        tokens.extend(Derivation.objects.values_list("attempt_token", flat=True))
        revoke(alice, cast.step(notes[1], NoteState.REVOKED))

    script.before = meanwhile
    answers = run_attempts(dora, [attempt_of(record) for record in records])

    assert script.calls == 1
    assert len(set(tokens)) == 4
    assert isinstance(answers[1].refusal, AttemptFenced)
    assert [row_of(record.id).state for record in records] == ["complete", "invalidated", "complete", "complete"]
    receipts = [answers[place].given().receipt for place in (0, 2, 3)]
    assert len({one["derivation_digest"] for one in receipts if one}) == 3


def test_one_bad_vector_among_many_fails_alone(note, alice, dora, script):
    other = cast.promoted(alice, "Oaks take their time.", source="oaks")
    records = [acts.prepared(dora, one) for one in (note, other)]
    script.vectors = {"Oaks take their time.": bytes(4096)}

    answers = run_attempts(dora, [attempt_of(record) for record in records])

    assert answers[0].given().state == "complete"
    assert isinstance(answers[1].refusal, EmbeddingOutputInvalid)
    assert row_of(records[1].id).failure_code == "embedding_output_invalid"


def test_a_caller_without_a_lease_writes_nothing(note, dora, script, settings, owner):
    record = acts.prepared(dora, note)
    counts = Counts(owner)
    lease = leases.take()
    try:
        with counts.refused(503, "lease_unavailable"):
            run_attempt(dora, attempt_of(record))
    finally:
        lease.close()
    assert (script.opened, script.calls) == (0, 0)


def test_authority_withdrawn_while_the_model_works_stores_nothing(note, dora, script):
    from archive.authority import Action
    from archive.operations import host

    record = acts.prepared(dora, note)
    script.before = lambda: host.withdraw("dora", dora.namespace, [Action.EXECUTE_DERIVATION])

    with refused(403, "authority_refused"):
        run_attempt(dora, attempt_of(record))

    row = row_of(record.id)
    assert (row.state, row.failure_code, row.vector) == ("failed", "authority_refused", None)


@pytest.mark.parametrize("yes", [0, 1, 2, 3, 4, 5])
def test_authority_is_asked_before_each_step_of_an_attempt(note, dora, script, scripted, yes):
    """A0, A1 at the claim, AX before measuring, AX before embedding, A1 at completion, A2."""
    record = acts.prepared(dora, note)
    scripted.calls, scripted.asked = 0, []
    scripted.script = [True] * yes + [False]

    with pytest.raises(AuthorityRefused):
        run_attempt(dora, attempt_of(record))

    row = row_of(record.id)
    expected = {0: ("prepared", 0), 1: ("prepared", 0), 2: ("failed", 0), 3: ("failed", 0), 4: ("failed", 1)}
    assert (row.state, script.calls) == expected.get(yes, ("complete", 1))
    assert {question.purpose.value for question in scripted.asked} == {"derivation"}
    if yes > 1:
        assert len({question.object_digest for question in scripted.asked[1:]}) == 1


def test_unknown_derivations_are_absent(note, dora, counts):
    with counts.refused(404, "derivation_absent"):
        run_attempt(dora, Attempt(UUID(int=7), 1))
    with pytest.raises(Refusal):
        derivations.derivation(dora, UUID(int=7))
