"""`lychd bench` at a small size: every case runs, comes out right and says what it promises; no time is judged."""

import pytest

from lychd.bench import runner, semantic_runner, texts
from lychd.commands import grammar
from tests.bench import loads
from tests.evaluation.folders import written
from tests.evaluation.outside import ran

pytestmark = pytest.mark.slow

NAMED = {
    "recall": {
        "recall.40.rank.p95",
        "recall.40.p50",
        "recall.40.p95",
        "recall.40.outside_rank",
        "growth.recall.80.p95",
    },
    "intake": {"intake.single.40.p50", "intake.single.40.p95"},
    "batch": {"intake.batch500.40", "intake.batch500.40.statements_an_item"},
    "promotion": {"promotion.40.p95", "promotion.batch200.40"},
    "revocation": {"revocation.40.p50", "revocation.40.p95"},
    "http": {"http.recall.1.p50", "http.intake.4.p95", "http.page.24.rate", "http.probe.1.rate", "http.recall.added"},
    "sharing": {"sharing.shared.8", "sharing.exclusive.8", "sharing.bare.8", "sharing.gain"},
}


@pytest.fixture(scope="module")
def found():
    """One small run of everything; its figures by name."""
    answer = ran("bench", "--effort", "small", "--sizes", "40,80", "--json")
    assert answer.code == 0, answer.err
    assert all(
        figure.keys() == {"name", "value", "unit", "baseline", "ratio", "note"} for figure in answer.document["figures"]
    )
    return {figure["name"]: figure for figure in answer.document["figures"]}


@pytest.mark.parametrize("case", NAMED)
def test_every_case_says_what_it_measured(found, case):
    assert found.keys() >= NAMED[case]


def test_a_baseline_comes_with_its_ratio(found):
    figure = found["intake.batch500.40"]
    assert figure["ratio"] == pytest.approx(figure["value"] / figure["baseline"], abs=0.01)


def test_a_recall_with_kept_plans_stands_beside_one_without(found):
    assert found["recall.40.p50"]["ratio"] > 0


def test_a_batch_grows_by_less_than_a_statement_an_item(found):
    assert 0 < found["intake.batch500.40.statements_an_item"]["value"] < 1


def test_loads_end_without_an_error(found):
    loads.require_exact(found, runner.EFFORTS["small"].load)


def test_promotions_beside_recalls_are_committed_once_and_not_refused(found):
    assert found["sharing.promotions.within_2s"]["note"].startswith("0 refused")


def test_one_case_is_one_case(tmp_path):
    answer = ran("bench", "intake", "--effort", "small", "--sizes", "20", "--texts", written(tmp_path / "s"), "--json")
    assert answer.code == 0, answer.err
    assert {figure["name"].split(".")[0] for figure in answer.document["figures"]} == {"intake"}
    assert answer.document["texts"] == "s"


def test_the_grammar_knows_every_case():
    names = {*runner.NAMES, *semantic_runner.NAMES}
    assert [_choices(option) for option in grammar.COMMANDS["bench"].options if set(_choices(option) or ()) == names]


def test_plans_are_measured_for_few_notes_and_for_many():
    answer = ran("bench", "plans", "--effort", "small", "--json")
    assert answer.code == 0, answer.err
    found = {figure["name"]: figure for figure in answer.document["figures"]}
    assert found.keys() >= {"plans.few.rank.p50", "plans.many.rank.p95", "plans.many.rank.alone.p50"}
    assert all(figure["ratio"] for figure in found.values())


def _choices(option):
    parser = grammar.Parser()
    action = option(parser)
    return None if action.choices is None else tuple(action.choices)


def test_passages_have_the_words_of_their_source_and_repeat_with_their_seed():
    handbook = texts.of_handbook()
    passages = handbook.passages(50, seed=1)
    assert passages == handbook.passages(50, seed=1) != handbook.passages(50, seed=2)
    assert {len(passage.split()) for passage in passages} == {texts.WORDS}
    known = {word for words in handbook.words for word in words}
    assert {word for passage in passages for word in passage.split()} <= known
    assert all(handbook.questions)


@pytest.mark.parametrize(
    ("name", "promised"),
    [
        ("review", {"review.300.p50", "review.300.p95", "review.300.statements"}),
        ("lists", {"lists.1200.home.p95", "lists.1200.notes.middle.p95", "lists.1200.slowest"}),
    ],
)
def test_pages_are_measured_beside_themselves_with_little_in_them(name, promised):
    answer = ran("bench", name, "--effort", "small", "--json")
    assert answer.code == 0, answer.err
    found = {figure["name"]: figure for figure in answer.document["figures"]}
    assert found.keys() >= promised
    assert all(figure["ratio"] for figure in found.values() if figure["unit"] == "ms")
    if name == "review":
        assert found["review.300.statements"]["value"] <= 12
