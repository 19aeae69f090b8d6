"""Receipts: sealed, checked field by field, against the row and without it."""

import copy
import json
from typing import Any

import pytest

from archive import canonical, receipts, seals
from archive.models import Recall
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.refusals import IntegrityFailure
from archive.requests import LexicalRecall
from inspection import reads
from inspection.cursors import PageRequest
from lychd import doctor
from tests import cast
from tests.scenarios.counting import Counts, refused

KEYS = {
    "schema",
    "receipt_id",
    "request_id",
    "request_digest",
    "profile",
    "namespace",
    "owner",
    "policy_revision",
    "subject",
    "purpose",
    "policy",
    "query_digest",
    "budgets",
    "outcome",
    "selected",
    "omitted",
    "lexical",
    "created_at",
    "receipt_digest",
}


@pytest.fixture
def receipt(alice, bob) -> dict[str, Any]:
    """A receipt that takes one note and leaves one out."""
    cast.promoted(alice, "Roses roses roses.", source="a", asserted_origin="letters/1")
    cast.promoted(alice, "Roses, and a great deal about what they want.", source="b")
    return recall(bob, LexicalRecall("q1", "roses", char_budget=20)).receipt


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every leaf."""
    if isinstance(value, dict):
        return [path for key in value for path in paths(value[key], (*at, key))]
    if isinstance(value, list):
        return [path for place, one in enumerate(value) for path in paths(one, (*at, place))]
    return [at]


def changed(receipt: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """The same receipt with one leaf a little different."""
    forged = copy.deepcopy(receipt)
    at: Any = forged
    for step in path[:-1]:
        at = at[step]
    leaf = at[path[-1]]
    at[path[-1]] = leaf + 1 if isinstance(leaf, int) else leaf[:-1] + ("0" if leaf[-1] != "0" else "1")
    return forged


def test_a_receipt_has_exactly_these_keys(receipt):
    assert set(receipt) == KEYS
    assert set(receipt["budgets"]) == {"top_k", "char_budget", "min_rank"}
    assert set(receipt["selected"][0]) == {
        "rank",
        "note_id",
        "source_key",
        "source_revision",
        "text_digest",
        "lifecycle_version",
        "projection_digest",
        "char_count",
        "score",
    }
    assert set(receipt["omitted"][0]) == {"rank", "note_id", "char_count", "score", "reason"}
    assert set(receipt["lexical"]) == {
        "text_configuration",
        "lexer_fingerprint",
        "corpus_notes",
        "mean_length",
        "cut_off",
        "lexemes_asked",
        "lexemes_found",
        "lexemes_left_out",
    }
    assert receipt["schema"] == 1


def test_a_sealed_receipt_verifies_after_any_way_through_json(receipt):
    assert receipts.verify(receipt)
    assert receipts.verify(json.loads(json.dumps(receipt)))
    assert receipts.verify(json.loads(json.dumps(receipt, sort_keys=True, indent=1)))
    assert receipts.verify(dict(reversed(receipt.items())))
    assert receipts.verify(Recall.objects.get().receipt)


def test_no_leaf_can_be_changed(receipt):
    found = paths(receipt)
    assert len(found) > 35
    for path in found:
        assert not receipts.verify(changed(receipt, path)), path


def test_no_key_can_be_taken_out_or_added(receipt):
    for key in KEYS:
        forged = {name: value for name, value in receipt.items() if name != key}
        assert not receipts.verify(forged), key
    assert not receipts.verify({**receipt, "note": "extra"})
    assert not receipts.verify({**receipt, "selected": [*receipt["selected"], receipt["selected"][0]]})
    assert not receipts.verify({**receipt, "selected": []})


@pytest.mark.parametrize("schema", [0, 2, 3, "1", 1.0, True, None, [], {}], ids=repr)
def test_a_seal_of_one_schema_is_none_of_another(receipt, schema):
    assert not receipts.verify({**receipt, "schema": schema})


@pytest.mark.parametrize("digest", [None, 5, "", "0" * 64, "é" * 64, "\ud800"], ids=repr)
def test_what_is_no_digest_verifies_nothing(receipt, digest):
    assert not receipts.verify({**receipt, "receipt_digest": digest})


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("forged", [[], "receipt", None, {"schema": 1, "receipt_digest": "0" * 64, "a": nested(900)}])
def test_what_is_no_object_or_has_no_end_verifies_as_none(forged):
    assert not receipts.verify(forged)


@pytest.mark.parametrize("forged", [{}, {"receipt_digest": "0" * 64}, {"schema": 1, "receipt_digest": "0" * 64}])
def test_what_is_no_receipt_verifies_as_none(forged):
    assert not receipts.verify(forged)


def test_a_real_that_came_back_as_a_number_breaks_the_seal(receipt):
    forged = copy.deepcopy(receipt)
    forged["lexical"]["mean_length"] = canonical.read_real(receipt["lexical"]["mean_length"])
    assert not receipts.verify(forged)


# --- against the row -------------------------------------------------------------------------------------------------


def resealed(receipt: dict[str, Any], **changes: Any) -> dict[str, Any]:
    forged = {**receipt, **changes}
    forged["receipt_digest"] = seals.digest_of(forged)
    return forged


def rewritten(superuser, receipt: dict[str, Any], **columns: Any) -> None:
    """Write over a row as only a superuser with triggers switched off can."""
    superuser.execute("SET session_replication_role = replica")
    row = {"receipt": json.dumps(receipt), "receipt_digest": receipt["receipt_digest"], **columns}
    superuser.execute(
        "UPDATE archive_recall SET " + ", ".join(f"{name} = %s" for name in row), [row[name] for name in row]
    )


@pytest.mark.parametrize(
    "forged",
    [
        {"subject": "alice"},
        {"request_id": "q2"},
        {"request_digest": "0" * 64},
        {"purpose": "memory"},
        {"receipt_id": "00000000-0000-4000-8000-000000000000"},
        {"created_at": "2026-01-01T00:00:00.000000Z"},
    ],
    ids=str,
)
def test_a_receipt_that_is_sealed_anew_still_disagrees_with_its_row(bob, ivy, receipt, superuser, forged):
    rewritten(superuser, resealed(receipt, **forged))
    for act in (
        lambda: resolve(bob, "q1"),
        lambda: recall(bob, LexicalRecall("q1", "roses", char_budget=20)),
        lambda: reads.receipt(ivy, "q1"),
    ):
        with pytest.raises(IntegrityFailure):
            act()


FOREIGN: list[dict[str, Any]] = [
    {"namespace": "hedge"},
    {"profile": "other@1"},
    {"selected": None},
    {"selected": [{}]},
    {"selected": ["note"]},
    {"omitted": 1},
    {"owner": None},
]


@pytest.mark.parametrize("forged", FOREIGN, ids=str)
def test_a_forged_receipt_that_agrees_with_its_row_is_still_shown_to_nobody(bob, ivy, receipt, superuser, forged):
    """R-L-141: whoever can insert a row can seal it; what it says of its place and its shape is judged as well."""
    rewritten(superuser, resealed(receipt, **forged))
    for act in (lambda: resolve(bob, "q1"), lambda: reads.receipt(ivy, "q1")):
        with refused(500, "integrity_failure"):
            act()


@pytest.mark.parametrize("forged", [*FOREIGN, {"subject": "alice"}], ids=str)
def test_a_forged_receipt_is_a_line_of_the_list_and_a_finding_of_the_doctor(ivy, receipt, superuser, forged):
    rewritten(superuser, resealed(receipt, **forged))
    (line,) = reads.list_receipts(ivy, PageRequest()).items
    assert not line.intact
    (finding,) = doctor._receipts(deep=False)
    assert finding.verdict is doctor.Verdict.FAILED


@pytest.mark.parametrize("stored", [{"schema": 1}, {"schema": 1, "selected": None}, {"schema": 1, "receipt_digest": 3}])
def test_a_row_that_holds_nothing_like_a_receipt_is_one_that_is_not_intact(bob, ivy, receipt, superuser, stored):
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE archive_recall SET receipt = %s::jsonb", [json.dumps(stored)])
    (line,) = reads.list_receipts(ivy, PageRequest()).items
    assert not line.intact
    for act in (lambda: resolve(bob, "q1"), lambda: reads.receipt(ivy, "q1")):
        with refused(500, "integrity_failure"):
            act()


def test_a_receipt_that_was_written_over_is_shown_to_nobody(bob, ivy, receipt, superuser, counts: Counts):
    forged = copy.deepcopy(receipt)
    forged["selected"][0]["source_key"] = "z"
    rewritten(superuser, forged)
    for act in (lambda: resolve(bob, "q1"), lambda: reads.receipt(ivy, "q1")):
        with counts.refused(500, "integrity_failure"):
            act()
    (line,) = reads.list_receipts(ivy, PageRequest()).items
    assert not line.intact


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ("text = 'Roses roses rosez.'", "integrity_failure"),
        ("text_digest = repeat('0', 64)", "selection_stale"),
        ("source_revision = '9'", "selection_stale"),
        ("lifecycle_version = 3", "selection_stale"),
        ("state = 'archived'", "selection_stale"),
        ("char_count = 17", "selection_stale"),
        ("asserted_origin = 'letters/2'", "selection_stale"),
        ("asserted_origin = NULL", "selection_stale"),
    ],
)
def test_resolution_compares_each_selected_row_with_what_was_sealed(
    bob, receipt, superuser, counts: Counts, column, code
):
    superuser.execute("SET session_replication_role = replica")
    superuser.execute(f"UPDATE archive_note SET {column} WHERE id = %s", [receipt["selected"][0]["note_id"]])
    with counts.refused(500 if code == "integrity_failure" else 409, code):
        resolve(bob, "q1")


def test_a_source_that_was_renamed_under_a_receipt_makes_it_stale(bob, receipt, superuser, counts: Counts):
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE archive_source SET source_key = 'zz' WHERE source_key = 'a'")
    with counts.refused(409, "selection_stale"):
        resolve(bob, "q1")


def test_a_note_that_was_left_out_does_not_matter_to_resolution(bob, receipt, superuser):
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE archive_note SET state = 'archived' WHERE id = %s", [receipt["omitted"][0]["note_id"]])
    assert [source.text for source in resolve(bob, "q1").sources] == ["Roses roses roses."]


def test_a_semantic_receipt_is_not_resolved_or_replayed_as_a_lexical_one(bob, receipt, superuser, counts: Counts):
    rewritten(superuser, resealed(receipt, schema=2), schema=2)
    with counts.refused(409, "receipt_schema_mismatch"):
        resolve(bob, "q1")
    with counts.refused(409, "request_conflict"):
        recall(bob, LexicalRecall("q1", "roses", char_budget=20))


def test_a_receipt_explains_its_budgets_and_its_corpus(bob, alice):
    cast.promoted(alice, "one two three four", source="a")
    cast.promoted(alice, "one two", source="b")
    told = recall(bob, LexicalRecall("q1", "one five", top_k=7, char_budget=99, min_rank=0.0625)).receipt
    assert told["budgets"] == {"top_k": 7, "char_budget": 99, "min_rank": "f64:3fb0000000000000"}
    lexical = told["lexical"]
    assert (lexical["corpus_notes"], lexical["lexemes_asked"], lexical["lexemes_found"]) == (2, 2, 1)
    assert canonical.read_real(lexical["mean_length"]) == 3.0
    assert told["outcome"] == "selected"
