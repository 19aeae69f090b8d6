"""D. Recall eligibility."""

import sys
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from archive import limits
from archive.models import Recall
from archive.operations.recall import recall
from archive.publication import Publication
from archive.refusals import InvalidRequest
from archive.requests import LexicalRecall
from lychd.celery import app
from tests import cast
from tests.scenarios.counting import Counts


def selected(answer) -> list[UUID]:
    return [UUID(one["note_id"]) for one in answer.receipt["selected"]]


def test_s050_only_what_is_promoted_is_selected(alice, bob):
    cast.admitted(alice, "wisteria one", source="a")
    promoted = cast.promoted(alice, "wisteria two", source="b")
    cast.archived(alice, "wisteria three", source="c")
    cast.revoked(alice, "wisteria four", source="d")

    answer = cast.asked(bob, "wisteria")

    assert selected(answer) == [promoted.id]
    assert answer.receipt["omitted"] == []
    assert answer.receipt["lexical"]["corpus_notes"] == 1


def test_s051_equal_ranks_stand_in_the_order_of_their_identities(alice, bob):
    notes = [cast.promoted(alice, "wisteria climbs", source=f"s{n}").id for n in range(8)]

    for _ in range(20):
        answer = cast.asked(bob, "wisteria", top_k=8)
        assert selected(answer) == sorted(notes)
        assert len({one["score"] for one in answer.receipt["selected"]}) == 1
    assert selected(cast.asked(bob, "wisteria", top_k=2)) == sorted(notes)[:2]


def test_s052_a_note_that_does_not_fit_is_left_out_and_the_next_one_taken(alice, bob):
    first = cast.promoted(alice, "wisteria wisteria wisteria".ljust(100), source="a")
    second = cast.promoted(alice, "wisteria wisteria".ljust(8_000), source="b")
    third = cast.promoted(alice, "wisteria".ljust(50), source="c")

    wide = cast.asked(bob, "wisteria")
    narrow = cast.asked(bob, "wisteria", char_budget=200)

    assert selected(wide) == [first.id, second.id, third.id]
    assert [(one["rank"], one["char_count"]) for one in narrow.receipt["selected"]] == [(1, 100), (3, 50)]
    assert selected(narrow) == [first.id, third.id]
    assert narrow.receipt["omitted"] == [
        {
            "rank": 2,
            "note_id": str(second.id),
            "char_count": 8_000,
            "score": wide.receipt["selected"][1]["score"],
            "reason": "char_budget",
        }
    ]


def test_s052_nothing_beyond_the_asked_number_takes_the_place_of_what_did_not_fit(alice, bob):
    big = cast.promoted(alice, "wisteria wisteria".ljust(8_000), source="a")
    cast.promoted(alice, "wisteria grows".ljust(50), source="b")

    answer = cast.asked(bob, "wisteria", char_budget=200, top_k=1)

    assert (selected(answer), answer.receipt["outcome"]) == ([], "miss")
    assert [one["note_id"] for one in answer.receipt["omitted"]] == [str(big.id)]


@pytest.mark.parametrize("query", ["clematis", "   ", "!?", "'\"&!()<->:*|\\"])
def test_s054_a_miss_is_an_answer_with_a_receipt(alice, bob, counts: Counts, query):
    cast.promoted(alice, "wisteria climbs")
    counts.mark()

    answer = cast.asked(bob, query, request_id="q1")

    assert (answer.outcome, answer.receipt["outcome"]) == (Publication.PUBLISHED, "miss")
    assert (answer.receipt["selected"], answer.receipt["omitted"]) == ([], [])
    assert Recall.objects.get(request_id="q1").receipt == answer.receipt
    counts.grew(archive_recall=1)


def test_s056_a_namespace_that_was_never_retained_is_no_miss(bob, counts: Counts):
    with counts.refused(404, "namespace_absent"):
        cast.asked(bob)
    assert (counts.last["archive_namespace"][0], counts.last["archive_recall"][0]) == (0, 0)


@pytest.mark.parametrize(
    "beyond",
    [
        {"query": "q" * (limits.QUERY_MAX_CHARS + 1)},
        {"query": ""},
        {"query": "ro\x00ses"},
        {"top_k": limits.TOP_K_MAX + 1},
        {"top_k": 0},
        {"char_budget": 0},
        {"char_budget": limits.CHAR_BUDGET_MAX + 1},
        {"min_rank": float("nan")},
        {"min_rank": float("inf")},
        {"min_rank": -1.0},
    ],
    ids=str,
)
def test_s057_a_request_beyond_a_bound_is_refused_before_any_statement(alice, bob, counts: Counts, beyond):
    cast.promoted(alice)
    counts.mark()

    with CaptureQueriesContext(connection) as statements, pytest.raises(InvalidRequest) as no:
        cast.asked(bob, **beyond)

    assert (no.value.status, len(no.value.faults)) == (400, 1)
    assert statements.captured_queries == []
    counts.unchanged()


def test_s057_the_bounds_themselves_are_allowed(alice, bob):
    cast.promoted(alice)
    answer = cast.asked(
        bob,
        "roses " * 170 + "sun!",
        top_k=limits.TOP_K_MAX,
        char_budget=limits.CHAR_BUDGET_MAX,
    )
    assert len(answer.receipt["selected"]) == 1


def test_s058_a_recall_embeds_nothing_and_sends_nothing(alice, bob, messages, counts: Counts):
    cast.promoted(alice)
    known, loaded = set(app.tasks), set(sys.modules)
    counts.mark()

    recall(bob, LexicalRecall("q1", "roses"))

    assert messages == []
    assert set(app.tasks) == known
    assert not [name for name in set(sys.modules) - loaded if name.split(".")[0] in {"semantic", "torch"}]
    counts.grew(archive_recall=1)
