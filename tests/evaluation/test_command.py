"""`lychd evaluate`: one document on stdout, what it promises in it, and nothing left behind."""

import json
import signal
from pathlib import Path

import pytest

from lychd.environment import CHECKOUT
from tests.evaluation.folders import CORPUS, written
from tests.evaluation.outside import made_by, ran, started

PUBLIC_SETS = CHECKOUT.parent / "shared" / "data"
FIGURES = {"ndcg@10", "recall@10", "mrr@10", "empty_rate", "p50_ms", "p95_ms", "coverage"}


def public(name: str) -> Path:
    folder = PUBLIC_SETS / name
    if not folder.is_dir():
        pytest.skip(f"the public set {name} does not lie beside the checkout")
    return folder


def test_one_document_with_the_figures_of_both(tmp_path):
    answer = ran("evaluate", written(tmp_path / "garden"), "--text-configuration", "auto", "--json")

    assert answer.code == 0, answer.err
    found = answer.document
    assert found.keys() >= FIGURES
    assert found["baseline"].keys() >= FIGURES
    assert (found["dataset"], found["policy"], found["text_configuration"]) == ("garden", "lexical", "auto")
    assert found["text_configurations"] == ["english", "german"]
    assert (found["documents"], found["queries"], found["groups"]) == (6, 3, 2)
    # q1 and q2 find what there is; the text that was refused stays in q2's judgement, and q3 has no answer.
    assert found["refused"] == {"invalid_request": 1, "text_too_large": 1}
    assert found["coverage"] == round(4 / 6, 4)
    assert found["empty_rate"] == round(1 / 3, 4)
    assert found["recall@10"] == 0.5
    assert found["mrr@10"] == round(2 / 3, 4)
    assert found["languages"]["de"]["ndcg@10"] == 1.0
    assert found["baseline_agrees"] is None
    assert "taken in and promoted: 2 of 6" in answer.err


def test_a_group_is_searched_alone(tmp_path):
    corpus = [
        {"id": f"{group}/{number}", "group": group, "text": f"roses {number}"} for group in "ab" for number in "12"
    ]
    queries = [{"id": group, "group": group, "text": "roses"} for group in "ab"]
    judgements = [(group, f"{group}/{number}", 1) for group in "ab" for number in "12"]

    answer = ran("evaluate", written(tmp_path / "two", corpus=corpus, queries=queries, judgements=judgements), "--json")

    assert answer.document["ndcg@10"] == 1.0
    assert answer.document["baseline"]["ndcg@10"] == 1.0


@pytest.mark.parametrize(("published", "code"), [(0.004, 0), (0.006, 1)])
def test_a_library_that_is_off_fails_the_run(tmp_path, published, code):
    folder = written(tmp_path / "garden")
    reached = {"ndcg@10": 0.6667, "recall@10": 0.6667, "mrr@10": 0.6667}
    shifted = {**reached, "recall@10": reached["recall@10"] + published}
    known = {"garden": {"vectors_and_bm25": {"bm25": shifted}}}
    (tmp_path / "baselines.json").write_text(json.dumps(known))

    answer = ran("evaluate", folder, "--json")

    assert answer.code == code, answer.out + answer.err
    assert answer.document["baseline_agrees"] is (code == 0)


def test_a_folder_that_is_no_set_is_wrong_usage(tmp_path):
    answer = ran("evaluate", tmp_path, "--json")
    assert answer.code == 64
    assert "corpus.jsonl" in answer.document["detail"]


def test_an_interrupted_run_leaves_no_database(tmp_path):
    many = [{"id": str(number), "text": f"roses {number}"} for number in range(4_000)]
    folder = written(tmp_path / "many", corpus=CORPUS + many)
    process = started("evaluate", folder)
    assert process.stderr is not None
    # Its first word comes when notes are in the database.
    assert "taken in" in process.stderr.readline()
    assert len(made_by(process.pid)) == 1

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)

    assert process.returncode == 130
    assert made_by(process.pid) == set()


@pytest.mark.parametrize(
    ("name", "configuration", "floor"),
    [
        ("memorybank", "simple", 0.75),
        ("jaquad-dev", "simple", 0.90),
        ("devnotes", "simple", 0.60),
        ("devnotes", "auto", 0.68),
    ],
)
def test_real_questions_are_answered_as_well_as_promised(name, configuration, floor):
    """nDCG@10 on the public sets that are quick to load; the others are recorded in docs/quality.md."""
    answer = ran("evaluate", public(name), "--text-configuration", configuration, "--json")

    assert answer.code == 0, answer.err
    assert answer.document["baseline_agrees"] is True
    assert answer.document["ndcg@10"] >= floor
    assert answer.document["empty_rate"] <= 0.01
    assert answer.document["coverage"] == 1.0
