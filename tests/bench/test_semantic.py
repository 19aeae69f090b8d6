"""`lychd bench --policy semantic` at a small size: answers are compared, figures are there, derived rows are right."""

import contextlib

import pytest
from django.db import connection

from lychd.bench import ground, semantic_recall, semantic_rows, texts
from lychd.evaluation import meaning
from tests.commands.conftest import lychd
from tests.evaluation.folders import written
from tests.evaluation.outside import ran
from tests.modelled import with_model

__all__ = ["lychd"]

RIVALS = ("plain", "inline", "numpy", "numpy_one")
SIZES = (150, 300)
HEADS = tuple(f"semantic.{kind}{size}" for kind in ("", "padded.") for size in SIZES)


@pytest.fixture(scope="module")
def found():
    """One small run of recall."""
    answer = ran(*("bench", "recall", "--policy", "semantic", "--effort", "small", "--sizes", "150,300", "--json"))
    assert answer.code == 0, answer.err
    return answer.document


@pytest.mark.slow
def test_every_rival_is_measured_at_every_size(found):
    names = {figure["name"] for figure in found["figures"]}
    assert names >= {
        f"{head}.{asked}.{rival}.{word}"
        for head in HEADS
        for asked in ("exact", "threshold")
        for rival in RIVALS
        for word in ("p50", "p95")
    }
    assert names >= {f"{head}.disk.{what}" for head in HEADS for what in ("scan", "derivations", "inline")}
    assert names >= {f"{head}.write.complete100" for head in HEADS}
    assert names >= {f"{head}.exact.around.p50" for head in HEADS}
    assert names >= {f"growth.{head}.{who}" for head in HEADS[1::2] for who in ("exact", "threshold", *RIVALS)}


@pytest.mark.slow
def test_every_time_is_in_the_document(found):
    questions = 4
    for head in HEADS:
        for series in ("exact", "threshold", "exact.operation", "exact.around", *RIVALS):
            assert len(found["times_ms"][f"{head}.{series}"]) == questions
        assert len(found["times_ms"][f"{head}.write.with"]) == 1
    assert {figure["name"] for figure in found["figures"] if figure["baseline"] is None} == set()


class TestWithTheModel:
    pytestmark = [pytest.mark.slow, *with_model]

    def test_derivation_is_measured_beside_the_bare_model(self, tmp_path):
        folder = written(tmp_path / "garden")
        answer = ran(*("bench", "derivation", "--policy", "semantic", "--effort", "small", "--json", "--texts", folder))
        assert answer.code == 0, answer.err
        figures = {figure["name"]: figure for figure in answer.document["figures"]}
        assert figures.keys() == {
            f"derivation.{texts}{rival}" for texts in ("passages", "documents") for rival in ("", ".eights")
        }
        assert all(figure["baseline"] > 0 for figure in figures.values())


def test_what_one_policy_measures_the_other_refuses(lychd):
    for name, policy in (("intake", "semantic"), ("derivation", "lexical")):
        answer = lychd("bench", name, "--policy", policy)
        assert answer.code == 64
        assert "measures: all, recall" in answer.err


def test_without_the_model_derivation_is_refused_by_name(lychd, monkeypatch):
    monkeypatch.setattr(meaning, "find_spec", lambda name: None)
    answer = lychd("bench", "derivation", "--policy", "semantic")
    assert answer.code == 4
    assert "make models" in answer.err


# --- the rows, in this process ---------------------------------------------------------------------------------------


@pytest.fixture
def stocked(transactional_db, owner, monkeypatch):
    """Two hundred rows in the test database; VACUUM and the tables of the baselines are the owner's."""
    monkeypatch.setattr(semantic_rows, "_SLICE", 100)
    for module in (semantic_rows, semantic_recall):
        monkeypatch.setattr(module, "as_owner", lambda: contextlib.nullcontext(owner))
    with semantic_rows.switched_on():
        rows = semantic_rows.Rows(ground.Ground("", texts.of_handbook(), lambda *_: None))
        rows.grow(200)
        yield rows
    for name in (semantic_rows.PLAIN, semantic_rows.INLINE, semantic_rows.GIVEN):
        owner.execute(f"DROP TABLE {name}")


def one(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        (number,) = cursor.fetchone()
    return int(number)


def test_the_rows_leave_what_operations_would_leave(stocked):
    eligible = int(stocked.eligible.sum())
    assert 0 < eligible < 200
    # One note more was taken in by the operations, to make the namespace, and has no vector.
    assert one("SELECT notes FROM archive_corpus") == eligible + 1
    assert one("SELECT count(*) FROM semantic_scan") == one("SELECT complete FROM semantic_coverage") == eligible
    assert (
        one("SELECT count(*) FROM semantic_derivation WHERE state = 'invalidated' AND vector IS NULL") == 200 - eligible
    )
    assert one("SELECT count(*) FROM archive_note WHERE state = 'archived'") == 200 - eligible
    assert one(f"SELECT count(*) FROM {semantic_rows.INLINE} WHERE eligible") == eligible


def test_an_answer_that_differs_ends_the_run(stocked, monkeypatch):
    nearest = semantic_recall._NEAREST
    monkeypatch.setattr(semantic_recall, "_NEAREST", nearest.replace("WHERE eligible", ""))
    with pytest.raises(AssertionError, match="the exact answers differ"):
        semantic_recall.measure(stocked, 200, 20, 1)
