"""L. Semantic recall."""

import copy
import json
import re
from concurrent.futures import CancelledError
from typing import Any
from uuid import UUID

import pytest

from archive import limits as archive_limits
from archive.lifecycle import State as NoteState
from archive.models import Recall
from archive.operations.recall import recall as lexical_recall
from archive.operations.resolution import resolve as lexical_resolve
from archive.operations.transition import archive, revoke
from archive.publication import Publication
from archive.refusals import InvalidRequest, Refusal, RequestConflict
from archive.requests import LexicalRecall
from archive.seals import digest_of, verify
from inspection import reads
from semantic import exact
from semantic.embedders import Kind
from semantic.models import Derivation
from semantic.operations.generations import register, retire
from semantic.operations.recall import recall
from semantic.operations.resolution import resolve
from semantic.refusals import DerivationOff, GenerationAbsent, GenerationMismatch, GenerationRetired, SemanticOff
from semantic.requests import SemanticRecall
from tests import cast
from tests.scenarios.counting import refused
from tests.scenarios.together import together
from tests.semantic import acts
from tests.semantic.conftest import GENERATION, derivation
from tests.semantic.scripted import FIRST, literal, towards

QUERY = "what is near"


class Shelf:
    """Promoted notes whose cosine with the query is known, because the test says what the embedder gives."""

    def __init__(self, alice, dora, script) -> None:
        self.alice, self.dora, self.script = alice, dora, script
        script.vectors[QUERY] = FIRST
        self.notes: list[Any] = []

    def put(self, *cosines: float, derive: bool = True, text: str = "note") -> list[Any]:
        made = []
        for cosine in cosines:
            number = len(self.notes)
            words = f"{text} number {number}"
            self.script.vectors[words] = towards(cosine, place=1 + number)
            note = cast.promoted(self.alice, words, source=f"s{number}")
            if derive:
                acts.derived(self.dora, note)
            self.notes.append(note)
            made.append(note)
        self.script.calls, self.script.seen = 0, []
        return made


@pytest.fixture
def shelf(meaning, alice, dora, otto, script):
    cast.admitted(alice, "the first intake", source="first")
    register(otto)
    return Shelf(alice, dora, script)


def asked(caller, **more):
    return acts.asked(caller, QUERY, **more)


def chosen(answer) -> list[UUID]:
    return [UUID(one["note_id"]) for one in answer.receipt["selected"]]


def test_s200_coverage_counts_what_has_a_vector_and_the_nearest_come_first(shelf, bob):
    near, far = shelf.put(0.5, 0.9)
    shelf.put(0.99, derive=False)

    answer = asked(bob)

    assert answer.outcome == Publication.PUBLISHED
    assert answer.receipt["coverage"] == {"promoted": 3, "complete": 2}
    assert chosen(answer) == [far.id, near.id]
    assert [one["cosine"]["decimal"] for one in answer.receipt["selected"]] == [
        repr(one) for one in sorted((float(o["cosine"]["decimal"]) for o in answer.receipt["selected"]), reverse=True)
    ]
    assert answer.receipt["matched_count"] == 2


def test_s201_nothing_embedded_is_a_success_that_says_so(shelf, bob, script):
    shelf.put(0.5, 0.9, 0.1, derive=False)

    answer = asked(bob)

    assert (answer.outcome, answer.receipt["outcome"]) == (Publication.PUBLISHED, "miss")
    assert (answer.receipt["selected"], answer.receipt["omitted"]) == ([], [])
    assert answer.receipt["coverage"] == {"promoted": 3, "complete": 0}
    assert (script.calls, script.seen) == (1, [(QUERY, Kind.QUERY)])


def test_s202_a_generation_that_does_not_stand_is_a_failure_and_embeds_nothing(
    meaning, alice, bob, otto, script, settings, counts
):
    with counts.refused(404, "namespace_absent"):
        asked(bob)
    cast.promoted(alice)
    with counts.refused(404, "generation_absent"):
        asked(bob)
    register(otto)
    stands = settings.LYCHD_ARCHIVE
    settings.LYCHD_ARCHIVE = {**stands, "derivation": derivation(document_prefix="passage: ")}
    with counts.refused(409, "generation_mismatch"):
        asked(bob)
    settings.LYCHD_ARCHIVE = stands
    retire(otto, GENERATION)
    with counts.refused(409, "generation_retired"):
        asked(bob)
    assert (script.calls, script.opened) == (0, 0)


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), 1.5, -1.0001])
def test_s203_the_threshold_is_a_number_from_minus_one_to_one(threshold):
    with pytest.raises(InvalidRequest) as no:
        SemanticRecall("s1", QUERY, threshold)
    assert [fault.pointer for fault in no.value.faults] == ["/min_cosine"]


def test_s203_there_is_no_threshold_by_default():
    with pytest.raises(TypeError):
        SemanticRecall("s1", QUERY)


def test_s205_nothing_near_enough_differs_from_nothing_embedded_by_its_coverage(shelf, bob):
    shelf.put(0.5, 0.9)

    answer = asked(bob, min_cosine=1.0)

    assert (answer.receipt["outcome"], answer.receipt["selected"], answer.receipt["matched_count"]) == ("miss", [], 0)
    assert answer.receipt["coverage"] == {"promoted": 2, "complete": 2}


def test_the_threshold_is_exact(shelf, bob):
    (note,) = shelf.put(0.5)
    score = float(asked(bob).receipt["selected"][0]["cosine"]["decimal"])

    from math import nextafter

    assert chosen(asked(bob, min_cosine=score)) == [note.id]
    assert chosen(asked(bob, min_cosine=nextafter(score, 1))) == []


def test_s206_asked_again_the_same_receipt_and_no_embedding(shelf, bob, script):
    shelf.put(0.5, 0.9)
    first = asked(bob, request_id="s1")
    again = asked(bob, request_id="s1")

    assert (again.outcome, again.caller_execution) == (Publication.REPLAYED, None)
    assert again.receipt == first.receipt
    assert script.calls == 1
    assert first.caller_execution == first.receipt["query_execution"]
    # 1 and 1.0 are one request.
    assert recall(bob, SemanticRecall("s1", QUERY, -1)).outcome == Publication.REPLAYED


def test_s207_a_replay_survives_its_notes_and_its_generation(shelf, bob, otto, alice, script):
    (note,) = shelf.put(0.5)
    first = asked(bob, request_id="s1")
    retire(otto, GENERATION)
    revoke(alice, cast.step(note, NoteState.REVOKED))

    again = asked(bob, request_id="s1")

    assert (again.outcome, again.receipt, script.calls) == (Publication.REPLAYED, first.receipt, 1)


def test_s208_an_identity_belongs_to_one_kind_of_recall(shelf, bob, script):
    shelf.put(0.5)
    cast.asked(bob, "note", request_id="q1")
    asked(bob, request_id="s1")
    calls = script.calls

    with refused(409, "request_conflict"):
        asked(bob, request_id="q1")
    with refused(409, "request_conflict"):
        cast.asked(bob, "note", request_id="s1")
    assert script.calls == calls


def test_s209_two_of_one_identity_each_embed_and_one_publishes(shelf, bob, script, settings):
    settings.LYCHD_EMBED_LEASES = 2
    shelf.put(0.5, 0.9)
    winner = []

    def overtaken():
        script.before = None
        winner.append(asked(bob, request_id="s1"))

    script.before = overtaken
    late = asked(bob, request_id="s1")

    assert (winner[0].outcome, late.outcome) == (Publication.PUBLISHED, Publication.JOINED)
    assert late.receipt == winner[0].receipt
    assert Recall.objects.filter(request_id="s1").count() == 1
    assert script.calls == 2
    assert late.caller_execution is not None
    assert late.caller_execution["vector_digest"] == late.receipt["query_execution"]["vector_digest"]


def test_s209_at_one_barrier_too(shelf, bob, settings):
    settings.LYCHD_EMBED_LEASES = 4
    shelf.put(0.5)
    wanted = SemanticRecall("s1", QUERY, -1.0)

    answers = together(*[lambda: recall(bob, wanted)] * 4)

    assert sorted(answer.outcome.value for answer in answers).count("published") == 1
    assert len({json.dumps(answer.receipt, sort_keys=True) for answer in answers}) == 1
    assert Recall.objects.count() == 1


def test_s210_another_request_under_the_same_identity_conflicts_and_tells_what_was_spent(shelf, bob, script, settings):
    settings.LYCHD_EMBED_LEASES = 2
    shelf.put(0.5, 0.9)

    def overtaken():
        script.before = None
        asked(bob, request_id="s1", top_k=5)

    script.before = overtaken
    with pytest.raises(RequestConflict) as no:
        asked(bob, request_id="s1", top_k=6)

    assert no.value.extra["caller_execution"]["tokens"] > 0
    assert QUERY not in json.dumps(no.value.extra)
    assert Recall.objects.filter(request_id="s1").count() == 1


def test_s211_a_generation_retired_during_inference_refuses(shelf, bob, otto, script):
    shelf.put(0.5)
    script.before = lambda: retire(otto, GENERATION)

    with pytest.raises(GenerationRetired):
        asked(bob, request_id="s1")
    assert not Recall.objects.filter(request_id="s1").exists()


def test_s212_what_changed_during_inference_shows_in_the_selection(shelf, bob, alice, script):
    second, best = shelf.put(0.5, 0.9)
    script.before = lambda: archive(alice, cast.step(best, NoteState.ARCHIVED))

    answer = asked(bob)

    assert chosen(answer) == [second.id]
    assert answer.receipt["coverage"] == {"promoted": 1, "complete": 1}


def _raise(error):
    def act():
        raise error

    return act


@pytest.mark.parametrize(
    ("prepare", "status", "code"),
    [
        (lambda script: setattr(script, "before", _raise(TimeoutError())), 504, "embedding_timeout"),
        (lambda script: setattr(script, "before", _raise(CancelledError())), 503, "embedding_cancelled"),
        (lambda script: script.changes.update(vector=FIRST[:-4]), 500, "embedding_output_invalid"),
        (lambda script: script.changes.update(vector=bytes(4096)), 500, "embedding_output_invalid"),
        (lambda script: setattr(script, "on_close", _raise(OSError())), 500, "lease_cleanup_failed"),
        (lambda script: setattr(script, "before", _raise(ValueError("no"))), 500, "internal"),
    ],
)
def test_s215_what_kept_the_query_from_being_embedded_is_never_a_miss(
    shelf, bob, script, counts, prepare, status, code
):
    shelf.put(0.5)
    prepare(script)

    with counts.refused(status, code):
        asked(bob)


def test_s216_a_receipt_holds_no_query_no_text_and_no_coordinates(shelf, bob, owner):
    shelf.put(0.5, 0.9, text="a wholly secret")
    answer = asked(bob)

    dumped = owner.execute("SELECT r::text FROM archive_recall r").fetchone()[0]
    assert QUERY not in dumped
    assert "secret" not in dumped
    assert not re.search(r"(-?\d[\d.e-]*\s*,\s*){100}", dumped)
    assert verify(answer.receipt)
    assert set(answer.receipt) == {
        *("schema", "receipt_id", "request_id", "request_digest", "profile", "namespace", "owner", "policy_revision"),
        *("subject", "purpose", "policy", "query_digest", "budgets", "outcome", "selected", "omitted", "lexical"),
        *("generation", "embed", "min_cosine", "coverage", "matched_count", "query_execution", "created_at"),
        "receipt_digest",
    }
    assert set(answer.receipt["selected"][0]) == {
        *("rank", "note_id", "source_key", "source_revision", "text_digest", "lifecycle_version", "projection_digest"),
        *("char_count", "score", "derivation_id", "derivation_row_version", "vector_digest", "cosine"),
    }
    assert answer.receipt["schema"] == 2
    assert answer.receipt["policy"] == "postgres-exact-cosine@1"
    assert set(answer.receipt["budgets"]) == {"top_k", "char_budget"}


def test_s217_what_is_not_eligible_takes_no_place_in_the_ranking(shelf, bob, alice):
    notes = shelf.put(*(0.5 + n / 200 for n in range(50)))
    for note in notes[5:]:
        archive(alice, cast.step(note, NoteState.ARCHIVED))

    answer = asked(bob, top_k=5)

    assert chosen(answer) == [note.id for note in reversed(notes[:5])]
    assert answer.receipt["coverage"] == {"promoted": 5, "complete": 5}


def test_s219_equal_scores_stand_in_the_order_of_their_identities(shelf, bob, script, alice, dora):
    same = []
    for number in range(6):
        words = f"twin number {number}"
        script.vectors[words] = towards(0.5)
        same.append(cast.promoted(alice, words, source=f"twin{number}"))
        acts.derived(dora, same[-1])

    answer = asked(bob, top_k=20)

    assert chosen(answer) == sorted(note.id for note in same)
    assert len({one["score"] for one in answer.receipt["selected"]}) == 1
    assert chosen(asked(bob, top_k=2)) == sorted(note.id for note in same)[:2]


def test_a_note_that_does_not_fit_is_left_out_and_nothing_takes_its_place(shelf, bob, script, alice, dora):
    words = "a long one ".ljust(500, "x")
    script.vectors[words] = towards(0.9)
    long = cast.promoted(alice, words, source="long")
    acts.derived(dora, long)
    (short, beyond) = shelf.put(0.5, 0.4)

    answer = asked(bob, top_k=2, char_budget=100)

    assert chosen(answer) == [short.id]
    assert [(one["rank"], one["note_id"], one["reason"]) for one in answer.receipt["omitted"]] == [
        (1, str(long.id), "char_budget")
    ]
    assert beyond.id not in chosen(answer)


def test_s221_every_fence_holds_or_nothing_is_resolved(shelf, bob, alice):
    near, far = shelf.put(0.9, 0.5)
    answer = asked(bob, request_id="s1")

    resolved = resolve(bob, "s1")

    assert [source.note_id for source in resolved.sources] == [near.id, far.id]
    assert [source.text for source in resolved.sources] == ["note number 0", "note number 1"]
    archive(alice, cast.step(far, NoteState.ARCHIVED))
    with refused(409, "selection_stale"):
        resolve(bob, "s1")
    # Read without its text, the receipt is still what it was.
    assert reads.receipt(bob_inspects(bob), "s1") == answer.receipt


def bob_inspects(bob):
    from archive.authority import Action, Caller
    from archive.operations import host

    host.grant("bob", bob.binding, [Action.INSPECT_RECEIPT], by="host:tests")
    return Caller.in_namespace("bob", bob.namespace)


def test_s221_a_retired_generation_resolves_nothing(shelf, bob, otto):
    shelf.put(0.9)
    asked(bob, request_id="s1")
    retire(otto, GENERATION)

    with refused(409, "generation_retired"):
        resolve(bob, "s1")


def test_s221_another_configured_generation_resolves_nothing_of_the_first(shelf, bob, otto, settings):
    shelf.put(0.9)
    asked(bob, request_id="s1")
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(generation="notes-2")}
    with refused(404, "generation_absent"):
        resolve(bob, "s1")
    register(otto)
    with refused(409, "selection_stale"):
        resolve(bob, "s1")


NO_LONGER_COMPLETE = (
    "state = 'failed', failure_code = 'internal', vector = NULL, vector_digest = NULL, l2_norm = NULL, receipt = NULL"
)
OTHER_VECTOR = (
    "vector = (SELECT ('[' || string_agg(CASE n WHEN 9 THEN '1' ELSE '0' END, ',') || ']')::vector"
    " FROM generate_series(1, 1024) n)"
)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("row_version = row_version + 2", "selection_stale"),
        ("vector_digest = repeat('0', 64)", "selection_stale"),
        (NO_LONGER_COMPLETE, "selection_stale"),
        (OTHER_VECTOR, "integrity_failure"),
    ],
)
def test_s221_a_derivation_that_is_not_the_one_that_was_ranked(shelf, bob, superuser, change, code):
    shelf.put(0.9)
    asked(bob, request_id="s1")
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(f"UPDATE semantic_derivation SET {change}")

    with pytest.raises(Refusal) as no:
        resolve(bob, "s1")
    assert no.value.code == code


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("generation",), None),
        (("generation",), "notes-1"),
        (("generation", "version"), None),
        (("generation", "version"), True),
        (("coverage",), None),
        (("coverage", "complete"), "1"),
        (("matched_count",), None),
        (("selected", 0, "derivation_id"), None),
        (("selected", 0, "derivation_id"), "not a uuid"),
        (("selected", 0, "derivation_row_version"), None),
        (("selected", 0, "vector_digest"), None),
        (("selected", 0, "vector_digest"), 5),
        (("selected", 0, "note_id"), None),
        (("selected", 0), []),
    ],
    ids=repr,
)
def test_a_forged_receipt_with_a_seal_of_its_own_is_shown_to_nobody(shelf, bob, ivy, superuser, where, value):
    """Whoever can write over a row can seal anything; what is no receipt of schema 2 is refused, and breaks nothing."""
    shelf.put(0.9)
    forged = copy.deepcopy(asked(bob, request_id="s1").receipt)
    at = forged
    for step in where[:-1]:
        at = at[step]
    if value is None:
        del at[where[-1]]
    else:
        at[where[-1]] = value
    forged["receipt_digest"] = digest_of(forged)
    superuser.execute("SET session_replication_role = replica")
    superuser.execute(
        "UPDATE archive_recall SET receipt = %s, receipt_digest = %s", [json.dumps(forged), forged["receipt_digest"]]
    )

    for act in (lambda: resolve(bob, "s1"), lambda: asked(bob, request_id="s1"), lambda: reads.receipt(ivy, "s1")):
        with refused(500, "integrity_failure"):
            act()


def test_what_is_no_request_identity_is_resolved_by_neither_reader(shelf, bob):
    for act in (resolve, lexical_resolve):
        with pytest.raises(InvalidRequest):
            act(bob, "s 1")


def test_s222_each_reader_refuses_the_other_ones_receipt(shelf, bob):
    shelf.put(0.9)
    asked(bob, request_id="s1")
    cast.asked(bob, "note", request_id="q1")

    with refused(409, "receipt_schema_mismatch"):
        lexical_resolve(bob, "s1")
    with refused(409, "receipt_schema_mismatch"):
        resolve(bob, "q1")
    with refused(404, "receipt_absent"):
        resolve(bob, "never")


def test_a_receipt_of_somebody_else_is_not_resolved(shelf, alice, bob):
    shelf.put(0.9)
    asked(alice, request_id="s1")

    with refused(409, "receipt_binding_mismatch"):
        resolve(bob, "s1")
    with refused(409, "request_conflict"):
        asked(bob, request_id="s1")


def test_s225_a_query_over_its_bound_is_refused_before_anything(shelf, bob, script):
    for query in ("", "x" * (archive_limits.QUERY_MAX_CHARS + 1), "a\x00b", "\ud800"):
        with pytest.raises(InvalidRequest):
            SemanticRecall("s1", query, 0)
    assert script.opened == 0


def test_a_query_beyond_the_models_window_is_refused(shelf, bob, script, settings, otto, counts):
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(generation="short", max_tokens=2)}
    register(otto)
    with counts.refused(422, "model_input_oversize"):
        asked(bob)
    assert script.calls == 0


def test_semantic_recall_is_off_unless_it_is_switched_on(shelf, bob, settings, counts, script):
    shelf.put(0.9)
    asked(bob, request_id="s1")
    before = cast.asked(bob, "note").receipt
    on = settings.LYCHD_ARCHIVE
    calls = script.calls

    settings.LYCHD_ARCHIVE = {**on, "semantic": False}
    for act in (lambda: asked(bob), lambda: resolve(bob, "s1")):
        with pytest.raises(SemanticOff):
            act()
    settings.LYCHD_ARCHIVE = {**on, "semantic": True, "derivation": None}
    with pytest.raises(DerivationOff):
        asked(bob)
    # Words know nothing of any of it.
    settings.LYCHD_ARCHIVE = {**on, "semantic": False, "derivation": None}
    after = cast.asked(bob, "note").receipt
    differing = {"receipt_id", "request_id", "request_digest", "created_at", "receipt_digest"}
    assert {k: v for k, v in after.items() if k not in differing} == {
        k: v for k, v in before.items() if k not in differing
    }
    assert script.calls == calls


def test_lexical_recall_is_unchanged_beside_semantic_recall(shelf, bob, script):
    shelf.put(0.9)
    wanted = LexicalRecall("q1", "note")
    first = lexical_recall(bob, wanted)
    asked(bob)

    assert lexical_recall(bob, wanted).receipt == first.receipt
    assert first.receipt["schema"] == 1


def test_a_semantic_recall_registers_and_derives_nothing(shelf, bob, counts):
    shelf.put(0.9, derive=False)
    counts.mark()

    asked(bob)

    counts.grew(archive_recall=1)


@pytest.mark.parametrize("yes", range(7))
def test_authority_is_asked_before_each_step_of_a_recall(shelf, bob, script, scripted, yes):
    """A0, A1 of preflight, AX before measuring and before embedding, A1 of publication, A2."""
    shelf.put(0.9)
    scripted.calls, scripted.asked = 0, []
    scripted.script = [True] * yes + [False]

    if yes < 6:
        with refused(403, "authority_refused"):
            asked(bob, request_id="s1")
    else:
        asked(bob, request_id="s1")

    assert script.calls == (1 if yes >= 4 else 0)
    assert Recall.objects.exists() is (yes >= 5)
    assert len({question.object_digest for question in scripted.asked}) == 1
    assert {question.action.value for question in scripted.asked} == {"semantic_recall"}


def test_c15_a_zero_vector_forced_in_is_refused_loudly_and_never_listed(shelf, bob, superuser):
    _, forced = shelf.put(0.5, 0.9)
    fence = "abs(vector_norm(vector) - 1) <= 0.001000000001"

    def force(vector):
        with superuser.transaction():
            superuser.execute("SET LOCAL session_replication_role = replica")
            superuser.execute("UPDATE semantic_derivation SET vector = %s WHERE note_id = %s", [vector, forced.id])

    superuser.execute("ALTER TABLE semantic_derivation DROP CONSTRAINT derivation_unit_length")
    try:
        force(literal(bytes(4096)))
        with refused(500, "integrity_failure"):
            asked(bob)
    finally:
        force(literal(FIRST))
        superuser.execute(
            f"ALTER TABLE semantic_derivation ADD CONSTRAINT derivation_unit_length CHECK (vector IS NULL OR {fence})"
        )


def test_no_generation_ever_mixes_with_another(shelf, bob, otto, settings, dora, script):
    (note,) = shelf.put(0.9)
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(generation="notes-2")}
    register(otto)
    other = cast.promoted(shelf.alice, "only in the second", source="second")
    script.vectors["only in the second"] = towards(0.99)
    acts.derived(dora, other)

    assert chosen(asked(bob)) == [other.id]
    assert asked(bob).receipt["coverage"] == {"promoted": 2, "complete": 1}
    assert Derivation.objects.filter(state="complete").count() == 2
    assert note.id != other.id


def test_the_kinds_of_refusal_of_a_generation_are_one_type_each():
    assert [kind.status for kind in (GenerationAbsent, GenerationRetired, GenerationMismatch)] == [404, 409, 409]
    assert exact.error_bound(1024, 5e-4) < 0.002
