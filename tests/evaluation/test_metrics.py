"""The figures against cases that were worked out by hand."""

import math

import pytest

from lychd.evaluation import metrics
from lychd.evaluation.metrics import Answered


def test_one_judged_document_at_the_third_place():
    ranking, judged = ["a", "b", "c"], {"c": 1}
    assert metrics.ndcg(ranking, judged) == 1 / math.log2(4) == 0.5
    assert metrics.recall(ranking, judged) == 1
    assert metrics.reciprocal_rank(ranking, judged) == 1 / 3


def test_degrees_weigh_and_the_best_order_is_one():
    judged = {"a": 3, "b": 1}
    assert metrics.ndcg(["a", "b"], judged) == 1
    # 1 at the first place and 3 at the second, over 3 at the first and 1 at the second.
    second = 1 / math.log2(3)
    assert metrics.ndcg(["b", "a"], judged) == pytest.approx((1 + 3 * second) / (3 + second))


def test_a_judged_document_that_is_not_there_lowers_the_figures():
    ranking, judged = ["a"], {"a": 1, "gone": 1}
    assert metrics.ndcg(ranking, judged) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert metrics.recall(ranking, judged) == 0.5
    assert metrics.reciprocal_rank(ranking, judged) == 1


def test_nothing_counts_beyond_ten():
    ranking = [f"d{number}" for number in range(10)] + ["late"]
    assert metrics.ndcg(ranking, {"late": 1}) == 0
    assert metrics.recall(ranking, {"late": 1}) == 0
    assert metrics.reciprocal_rank(ranking, {"late": 1}) == 0
    # More judged documents than places: the best there could be fills ten places.
    assert metrics.ndcg(ranking, {f"d{number}": 1 for number in range(40)}) == 1


def test_a_place_left_empty_keeps_the_others_where_they_are():
    assert metrics.ndcg([None, "a"], {"a": 1}) == 1 / math.log2(3)
    assert metrics.reciprocal_rank([None, "a"], {"a": 1}) == 0.5


def test_the_means_of_two_questions():
    answers = {"q1": Answered(["a"], 0.001), "q2": Answered([], 0.003)}
    figures = metrics.figures(answers, {"q1": {"a": 1}, "q2": {"b": 1}})
    assert figures.as_json() == {
        "ndcg@10": 0.5,
        "recall@10": 0.5,
        "mrr@10": 0.5,
        "empty_rate": 0.5,
        "p50_ms": 1.0,
        "p95_ms": 3.0,
    }


@pytest.mark.parametrize(("share", "value"), [(0.5, 5), (0.95, 10), (0.9, 9), (0.01, 1), (1.0, 10)])
def test_the_nearest_rank(share, value):
    assert metrics.percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], share) == value
