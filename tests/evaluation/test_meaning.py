"""`lychd evaluate --policy semantic`: what cannot be embedded is missed, and the model alone scores the same."""

import os

import pytest

from lychd.evaluation import meaning, metrics, report, sets, shelves
from semantic.presets import STAND_IN
from tests.commands.conftest import lychd
from tests.evaluation.folders import CORPUS, JUDGEMENTS, written
from tests.evaluation.outside import made_by, ran
from tests.evaluation.test_command import FIGURES, public
from tests.modelled import with_model

__all__ = ["lychd"]

# Longer than the window of the small model, and short enough for the archive.
LONG = {"id": "long", "lang": "en", "group": "en", "text": "roses and thorns " * 200}
SET = {"corpus": [*CORPUS, LONG], "judgements": [*JUDGEMENTS, ("q2", "long", 1)]}


# --- without the model -----------------------------------------------------------------------------------------------


def test_without_the_model_nothing_is_made_and_the_way_is_named(lychd, monkeypatch, tmp_path):
    monkeypatch.setattr(meaning, "find_spec", lambda name: None)
    answer = lychd("evaluate", written(tmp_path / "garden"), "--policy", "semantic", "--json")

    assert answer.code == 4
    assert "make models" in answer.document["detail"]
    assert made_by(os.getpid()) == set()


@pytest.fixture
def shelf(transactional_db, settings, tmp_path):
    """The English group of the set, derived by an embedder that reads a hundred words."""
    settings.LYCHD_TEST_EMBEDDER = True
    [group] = [one for one in sets.read(written(tmp_path / "garden", **SET)).groups if one.name == "en"]
    done = []
    with meaning.switched_on({**STAND_IN, "max_tokens": 100}):
        found = shelves.stock(group, 0, "simple", done.append)
        meaning.derive(found, done.append)
        yield group, found, done


def test_a_document_that_is_too_long_for_the_model_is_counted(shelf):
    _, found, done = shelf
    assert found.refused == {
        "blank": "invalid_request",
        "far too long": "text_too_large",
        "long": "model_input_oversize",
    }
    # Five documents were looked at, three were promoted and tried.
    assert done == [5, 3]


def test_a_question_is_asked_of_what_was_embedded(shelf):
    group, found, _ = shelf
    answers = {query.id: meaning.ask(found, query, number) for number, query in enumerate(group.queries)}
    # Without a threshold everything that has a vector is somewhere in the ranking, and what has none is not.
    assert [set(answer.ranking) for answer in answers.values()] == [{"oaks", "roses"}] * 2
    judged = {"roses": 1, "far too long": 1, "long": 1}
    assert metrics.recall(answers["q2"].ranking, judged) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("off", "agrees"), [(0.0004, True), (0.0006, False)])
def test_three_digits_are_what_same_means(off, agrees):
    reached = dict.fromkeys(("ndcg@10", "recall@10", "mrr@10"), 0.6447)
    assert report._within(report.SAME, reached, {**reached, "mrr@10": 0.6447 + off}) is agrees


# --- with the model --------------------------------------------------------------------------------------------------


class TestWithTheModel:
    pytestmark = with_model

    def test_one_document_with_the_figures_of_both(self, tmp_path):
        answer = ran("evaluate", written(tmp_path / "garden", **SET), "--policy", "semantic", "--json")

        assert answer.code == 0, answer.err
        found = answer.document
        assert found.keys() >= FIGURES
        assert found["baseline"].keys() >= FIGURES
        assert (found["policy"], found["semantic_policy"]) == ("semantic", "postgres-exact-cosine@1")
        assert found["refused"] == {"invalid_request": 1, "model_input_oversize": 1, "text_too_large": 1}
        assert found["coverage"] == found["baseline"]["coverage"] == round(4 / 7, 4)
        assert found["baseline_agrees"] is True
        assert found["empty_rate"] == 0.0
        assert found["languages"]["de"]["ndcg@10"] == 1.0
        assert "derived: 2 of 7" in answer.err

    @pytest.mark.parametrize(("name", "floor"), [("devnotes", 0.66), ("devbench", 0.85)])
    def test_real_questions_are_answered_as_well_as_promised(self, name, floor):
        """nDCG@10 on the sets that are quick to embed; SciFact is recorded in docs/quality.md."""
        answer = ran("evaluate", public(name), "--policy", "semantic", "--json")

        assert answer.code == 0, answer.err
        assert answer.document["ndcg@10"] >= floor
        assert answer.document["baseline_agrees"] is True
