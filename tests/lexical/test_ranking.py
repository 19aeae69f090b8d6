"""The ranking against a plain reference, and every rule of the policy on its own."""

import json
import random
import time
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from django.db import connection

from archive import lexical, limits
from archive.lifecycle import State
from tests.lexical import shelf
from tests.lexical.reference import Bm25, Document
from tests.lexical.shelf import rows

pytestmark = pytest.mark.django_db(transaction=True)

# Public sets that may lie beside the checkout; none of them is part of the repository.
PUBLIC_SETS = Path(__file__).resolve().parents[3] / "shared" / "data"


def ranked(namespace, query, *, top_k=20, min_rank=0.0):
    return lexical.rank(namespace, query, top_k=top_k, min_rank=min_rank)


def ids_of(ranking):
    return [row.note_id for row in ranking.rows]


def reference_of(namespace):
    documents = {}
    for note, text in rows(
        "SELECT id, text FROM archive_note WHERE state = 'promoted' AND namespace_id = %s", namespace.id
    ):
        documents[note] = (words(namespace, text, for_note=True), sum(words(namespace, text, for_note=False).values()))
    return Bm25({note: Document(found, length) for note, (found, length) in documents.items()})


def words(namespace, text, *, for_note):
    return dict(
        rows(
            "SELECT lexeme, tf FROM archive_lexemes(%s::text::regconfig, %s::text, %s::boolean)",
            namespace.text_configuration,
            text,
            for_note,
        )
    )


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


@pytest.mark.parametrize(
    ("name", "configuration", "step"),
    [("devnotes", "simple", 3), ("devnotes", "english", 3), ("jaquad-dev", "simple", 5), ("memorybank", "simple", 1)],
)
def test_order_and_score_agree_with_the_reference_on_real_texts(name, configuration, step):
    folder = PUBLIC_SETS / name
    if not folder.is_dir():
        pytest.skip(f"the public set {name} does not lie beside the checkout")
    namespace = shelf.retained(name, configuration)
    shelf.promoted(
        namespace, [f"{one.get('title', '')} {one['text']}".strip() for one in lines(folder / "corpus.jsonl")]
    )
    lexical.vacuum()
    reference = reference_of(namespace)
    queries = [one["text"] for one in lines(folder / "queries.jsonl")][::step]

    for query in queries:
        asked = words(namespace, query, for_note=False)
        ranking = ranked(namespace, query)
        # Equal to the last bit, not only to 1e-9: the statement and the reference do the same operations in one order.
        assert [(row.note_id, row.score) for row in ranking.rows] == reference.rank(list(asked), 20)
        assert ranking.corpus_notes == reference.notes
        assert ranking.mean_length == reference.mean
        assert ranking.lexemes_asked == len(asked)
        assert ranking.lexemes_found == sum(1 for word in asked if reference.found_in[word])


def test_a_note_is_told_with_everything_but_its_text():
    garden = shelf.retained("garden")
    [note] = shelf.promoted(garden, ["roses and thorns"])

    [row] = ranked(garden, "Roses").rows

    assert row.note_id == note
    assert row.source_key == str(note)
    assert (row.source_revision, row.lifecycle_version, row.char_count) == ("1", 2, 16)
    assert (row.classification, row.asserted_origin) == ("public", None)
    assert len(row.text_digest) == 64
    assert row.score > 0


@pytest.mark.parametrize("query", ["", "   ", "'\"&!()<->:*|\\", "🦇", "unheard", "x" * 2_047])
def test_a_query_that_meets_nothing_is_a_miss(query):
    garden = shelf.retained("garden")
    shelf.promoted(garden, ["roses"])
    ranking = ranked(garden, query)
    assert ranking.rows == ()
    assert (ranking.corpus_notes, ranking.mean_length, ranking.lexemes_found) == (1, 1.0, 0)
    assert ranking.lexemes_asked == (1 if query == "unheard" else 0)


def test_a_namespace_without_promoted_notes_misses():
    garden = shelf.retained("garden")
    shelf.admitted(garden, ["roses"])
    assert ranked(garden, "roses") == lexical.Ranking((), 0, 0.0, limits.CUT_OFF_SHARE, 1, 0, 0)
    ids = shelf.promoted(garden, ["roses"])
    shelf.moved(garden, ids, State.PROMOTED, State.ARCHIVED)
    assert ranked(garden, "roses") == lexical.Ranking((), 0, 0.0, limits.CUT_OFF_SHARE, 1, 0, 0)


def test_namespaces_do_not_meet():
    garden, kitchen = shelf.retained("garden"), shelf.retained("kitchen")
    [here] = shelf.promoted(garden, ["roses"])
    shelf.promoted(kitchen, ["roses and bread", "bread"])
    ranking = ranked(garden, "roses bread")
    assert ids_of(ranking) == [here]
    assert (ranking.corpus_notes, ranking.mean_length, ranking.lexemes_found) == (1, 1.0, 1)


def test_any_shared_word_is_a_match_and_more_is_better():
    garden = shelf.retained("garden")
    one, both, _ = shelf.promoted(garden, ["roses in may", "roses with thorns", "bread at noon"])
    assert ids_of(ranked(garden, "roses thorns unheard")) == [both, one]


def test_a_single_han_character_finds_the_longer_run_and_does_not_lengthen_it():
    garden = shelf.retained("garden")
    long, lone = shelf.promoted(garden, ["日本語", "日"])
    ranking = ranked(garden, "日")
    assert set(ids_of(ranking)) == {long, lone}
    assert ranking.mean_length == 1.5


def test_a_word_inside_a_name_finds_the_note_and_does_not_lengthen_it():
    namespace = shelf.retained("parts")
    named, plain = shelf.promoted(namespace, ["fixed Session.execute here", "fixed session execute here"])

    assert ids_of(ranked(namespace, "execute")) == [named, plain]
    assert ids_of(ranked(namespace, "Session.execute")) == [named, plain]
    assert {length for _, _, _, length in shelf.postings(namespace)} == {3, 4}


def test_a_repeated_word_of_the_query_counts_once():
    garden = shelf.retained("garden")
    shelf.promoted(garden, ["roses in may", "bread"])
    assert ranked(garden, "roses roses ROSES") == ranked(garden, "roses")


def test_min_rank_is_inclusive():
    garden = shelf.retained("garden")
    shelf.promoted(garden, ["roses", "roses and thorns", "bread and butter and jam"])
    best, second = ranked(garden, "roses").rows
    assert ranked(garden, "roses", min_rank=second.score).rows == (best, second)
    assert ranked(garden, "roses", min_rank=best.score).rows == (best,)
    assert ranked(garden, "roses", min_rank=best.score + 1e-9).rows == ()


def test_ties_go_by_uuid_and_not_by_age():
    garden = shelf.retained("garden")
    # The youngest note, with the highest number, has the smallest UUID.
    ids = shelf.promoted(garden, ["roses"] * 300, lambda place: UUID(int=2**100 - place, version=4))
    shelf.promoted(garden, ["bread"] * 10)
    assert ids_of(ranked(garden, "roses", top_k=20)) == sorted(ids)[:20]
    best = shelf.promoted(garden, ["roses roses"])
    assert ids_of(ranked(garden, "roses", top_k=3)) == best + sorted(ids)[:2]


def test_one_state_gives_one_order_whatever_the_budget():
    garden = shelf.retained("garden")
    shelf.promoted(garden, [f"roses {'thorn ' * (number % 5)}" for number in range(60)])
    all_of_them = ids_of(ranked(garden, "roses thorn"))
    for top_k in (1, 2, 7, 19):
        assert ids_of(ranked(garden, "roses thorn", top_k=top_k)) == all_of_them[:top_k]


def stock(namespace, notes, **holding):
    """Notes of which the first `n` hold each given word."""
    shelf.promoted(
        namespace,
        [
            " ".join([f"n{number % 50}", *(word for word, count in holding.items() if number < count)])
            for number in range(notes)
        ],
    )


def test_common_words_are_left_out_beside_a_rarer_one():
    garden = shelf.retained("garden")
    stock(garden, 2_100, every=2_100, over=1_051, half=1_050, rare=3)
    reference = reference_of(garden)

    for query, left_out in (
        ("every over half rare", 2),
        ("every rare", 1),
        ("over half", 1),
        # A word that no note has keeps nothing out.
        ("every unheard", 0),
        ("every over", 0),
        ("every", 0),
        ("half", 0),
    ):
        ranking = ranked(garden, query)
        assert ranking.lexemes_left_out == left_out, query
        assert ranking.cut_off == limits.CUT_OFF_SHARE
        assert [(row.note_id, row.score) for row in ranking.rows] == reference.rank(query.split(), 20), query


def test_in_a_small_corpus_no_word_is_too_common():
    garden = shelf.retained("garden")
    stock(garden, 1_100, most=1_000, over=1_001, rare=2)
    assert ranked(garden, "most rare").lexemes_left_out == 0
    assert ranked(garden, "over rare").lexemes_left_out == 1


def zipf(chance, words):
    """Words as often as in a real text: the n-th in one of n places."""
    return chance.choices(range(1, words + 1), [1 / rank for rank in range(1, words + 1)])[0]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_words_that_are_passed_over_change_no_answer(seed):
    chance = random.Random(seed)
    garden = shelf.retained("garden")
    # Lengths and repetitions differ widely, so that a short note of common words comes as near to the first as it can.
    shelf.promoted(
        garden,
        [" ".join(f"w{zipf(chance, 3_000)}" for _ in range(chance.choice([1, 3, 20, 60, 200]))) for _ in range(1_500)],
    )
    lexical.vacuum()
    reference = reference_of(garden)
    passed_over = 0
    for _ in range(60):
        words = sorted({f"w{zipf(chance, 3_000)}" for _ in range(chance.choice([2, 5, 12, 40]))})
        top_k = chance.choice([1, 5, 20])
        whole = reference.rank(words, top_k)
        for min_rank in {0.0, whole[-1][1], whole[0][1]}:
            ranking = ranked(garden, " ".join(words), top_k=top_k, min_rank=min_rank)
            assert [(row.note_id, row.score) for row in ranking.rows] == reference.rank(words, top_k, min_rank)
        passed_over += words_passed_over(garden, " ".join(words), top_k)
    # Else this would prove nothing.
    assert passed_over > 20


def words_passed_over(namespace, query, top_k):
    plan = explained(namespace, query, top_k)
    made = {node["Subplan Name"]: node["Actual Rows"] for node in all_nodes(plan) if "Subplan Name" in node}
    return made["CTE ordered"] - made["CTE deciding"]


def test_a_query_of_many_words_is_one_statement(django_assert_num_queries):
    garden = shelf.retained("garden")
    shelf.promoted(garden, ["roses"])
    with django_assert_num_queries(1):
        ranked(garden, " ".join(f"w{number}" for number in range(200)))


def test_postings_are_read_from_their_index_alone():
    garden = shelf.retained("garden")
    stock(garden, 1_500, every=1_500, half=700, rare=40)
    all_visible()
    plan = explained(garden, "every half rare n7", 20)
    scans = [node for node in all_nodes(plan) if node.get("Relation Name") == "archive_posting"]
    assert scans
    assert {node["Node Type"] for node in scans} == {"Index Only Scan"}
    assert {node["Heap Fetches"] for node in scans} == {0}


def all_visible():
    # The suite's server answers COMMIT before it has written it, and VACUUM trusts only what is written.
    for _ in range(50):
        lexical.vacuum()
        if rows("SELECT relpages = relallvisible FROM pg_class WHERE relname = 'archive_posting'") == [(True,)]:
            return
        time.sleep(0.1)
    pytest.fail("the postings do not become visible to all")


def explained(namespace, query, top_k):
    values = {
        "namespace": namespace.id,
        "configuration": namespace.text_configuration,
        "query": query,
        "top_k": top_k,
        "min_rank": 0.0,
        "k1": limits.BM25_K1,
        "b": limits.BM25_B,
        "cut_off": limits.CUT_OFF_SHARE,
        "cut_off_notes": float(limits.CUT_OFF_NOTES),
    }
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + lexical._RANK, values)
        [(plan,)] = cursor.fetchall()
    return plan[0]["Plan"]


def all_nodes(node):
    yield node
    for child in node.get("Plans", []):
        yield from all_nodes(child)


def test_the_score_is_the_formula():
    garden = shelf.retained("garden")
    note, *_ = shelf.promoted(garden, ["roses roses thorns", "bread", "bread and jam", str(uuid4())])
    reference = reference_of(garden)
    [row] = ranked(garden, "roses").rows
    assert row.score == reference.score(["roses"], reference.documents[note])
