"""A writer has a bound: so many candidates of one subject may wait in one namespace, and only decisions remove them."""

from functools import partial
from typing import Any

import pytest

from archive.lifecycle import State
from archive.models import Note
from archive.operations.intake import Outcome, intake, intake_many
from archive.operations.transition import promote, revoke
from archive.refusals import BatchRolledBack, CandidatesWaiting
from archive.requests import Intake
from tests import cast
from tests.scenarios.counting import Counts
from tests.scenarios.together import together

MOST = 3


def items(count: int, *, start: int = 0) -> list[Intake]:
    return [Intake(f"r{n}", f"s{n}", "1", f"Note {n}.") for n in range(start, start + count)]


def outcomes(answers: Any) -> list[str]:
    return [one.refusal.code if one.refusal else one.given().outcome.value for one in answers]


@pytest.fixture
def full(wanda: Any, settings: Any) -> list[Intake]:
    """As many candidates of wanda's as may wait."""
    settings.LYCHD_WAITING_CANDIDATES_MAX = MOST
    brought = items(MOST)
    for one in brought:
        intake(wanda, one)
    return brought


def test_one_more_is_refused_and_changes_nothing(wanda, full, counts: Counts):
    with counts.refused(409, "candidates_waiting"):
        intake(wanda, items(1, start=MOST)[0])


def test_what_was_taken_in_before_is_told_again(wanda, full, counts: Counts):
    assert intake(wanda, full[0]).outcome is Outcome.REPLAYED
    counts.grew()
    again = Intake("again", full[0].source_key, "1", full[0].text)
    assert intake(wanda, again).outcome is Outcome.EXISTING


@pytest.mark.parametrize("decide", [(promote, State.PROMOTED), (revoke, State.REVOKED)], ids=["promote", "revoke"])
def test_a_decision_makes_room(wanda, alice, full, decide):
    act, state = decide
    act(alice, cast.step(intake(wanda, full[0]).note, state))
    first, second = items(2, start=MOST)
    assert intake(wanda, first).outcome is Outcome.CREATED
    with pytest.raises(CandidatesWaiting):
        intake(wanda, second)


def test_the_bound_is_of_one_subject_in_one_namespace(wanda, alice, full):
    assert intake(alice, items(1, start=MOST)[0]).outcome is Outcome.CREATED
    elsewhere = cast.plant("orchard").caller("wanda")
    assert intake(elsewhere, items(1)[0]).outcome is Outcome.CREATED


def test_a_batch_takes_in_what_there_is_room_for_and_answers_each_item(wanda, settings):
    settings.LYCHD_WAITING_CANDIDATES_MAX = 60
    many = items(70)
    assert outcomes(intake_many(wanda, many)) == ["created"] * 60 + ["candidates_waiting"] * 10
    assert outcomes(intake_many(wanda, many)) == ["replayed"] * 60 + ["candidates_waiting"] * 10
    assert Note.objects.count() == 60


def test_a_batch_of_all_or_nothing_is_nothing_where_one_has_no_room(wanda, full, alice, counts: Counts):
    revoke(alice, cast.step(intake(wanda, full[0]).note, State.REVOKED))
    counts.mark()
    with pytest.raises(BatchRolledBack):
        intake_many(wanda, items(2, start=MOST), atomic=True)
    counts.grew()


def test_two_at_once_do_not_share_the_last_place(wanda, settings):
    settings.LYCHD_WAITING_CANDIDATES_MAX = MOST
    intake_many(wanda, items(MOST - 1))

    def bring(one: Intake) -> str:
        try:
            return intake(wanda, one).outcome.value
        except CandidatesWaiting as refusal:
            return refusal.code

    ended = together(*(partial(bring, one) for one in items(4, start=MOST)))
    assert sorted(ended) == ["candidates_waiting"] * 3 + ["created"]
