"""The page of the generations: coverage, what failed, what waits and the command for it."""

import pytest

from archive.refusals import Refusal
from semantic.operations.attempts import Attempt, run_attempt
from tests import cast
from tests.pages.paths import SECRET
from tests.pages.test_nothing_changes import Markup, rows
from tests.semantic import acts
from tests.semantic.conftest import counts, dora, meaning, script  # noqa: F401

NS = f"/ns/{cast.GARDEN}"
PAGE = f"{NS}/generations"


@pytest.fixture
def beds(dora, otto, alice):  # noqa: F811
    """Three promoted notes: one complete, one prepared, one not derived at all."""
    notes = [cast.promoted(alice, f"{SECRET} bed {number}", source=f"bed/{number}") for number in range(3)]
    acts.registered(otto)
    acts.derived(dora, notes[0])
    acts.prepared(dora, notes[1])
    return notes


def test_coverage_and_what_waits_are_told_with_the_command(beds, inspector, owner):
    before = rows(owner)
    told = inspector.get(PAGE).content.decode()
    assert '<b data-count="complete">1</b> of <b data-count="promoted">3</b>' in told
    assert '<dd data-count="prepared">1</dd>' in told
    assert "named by the binding" in told
    assert "1 became complete in the last 10 minutes; at that the other 2 take about 20 minutes." in told
    assert f"lychd derive --all --namespace {cast.GARDEN} --as SUBJECT" in told
    assert SECRET not in told
    markup = Markup()
    markup.feed(told)
    assert markup.faults == []
    assert len(markup.ids) == len(set(markup.ids))
    assert rows(owner) == before


def test_failures_are_grouped_by_error_and_can_be_taken_up_again(beds, dora, script, inspector):  # noqa: F811
    script.changes = {"vector": b"\x00" * 4096}
    row = acts.prepared(dora, beds[2])
    with pytest.raises(Refusal) as refused:
        run_attempt(dora, Attempt(row.id, row.row_version))
    page = inspector.get(PAGE)
    (one,) = page.context["generations"]
    assert one.failures == ((refused.value.code, 1),)
    told = page.content.decode()
    assert f"<code>{refused.value.code}</code>" in told
    assert "lychd derive --all --retry" in told


def test_the_numbers_are_those_of_the_page(beds, inspector):
    answer = inspector.get(f"{PAGE}/numbers")
    (one,) = answer.json()["generations"]
    assert (one["promoted"], one["states"]["complete"], one["states"]["prepared"]) == (3, 1, 1)
    assert "no-store" in answer["Cache-Control"]


def test_the_first_page_shows_coverage_while_derivation_is_on(beds, inspector, curator):
    assert "1 of 3 promoted notes, 1 prepared." in inspector.get(NS).content.decode()
    assert "Found by meaning" not in curator.get(NS).content.decode()


def test_while_derivation_is_off_the_page_says_so(nursery, inspector):
    told = inspector.get(PAGE).content.decode()
    assert "Derivation is switched off here" in told
    assert "None is registered" in told


@pytest.mark.parametrize("who", ["alice", "charlie", "stranger"])
def test_whoever_inspects_no_derivations_is_refused(nursery, sign_in, who):
    for address in (PAGE, f"{PAGE}/numbers"):
        assert sign_in(who).get(address).status_code == 403
