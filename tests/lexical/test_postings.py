"""Postings and figures are what the promoted notes say, after every transition and whoever makes it."""

import random

import psycopg
import pytest

from archive import lexical
from archive.lifecycle import NOTE_EDGES, State
from archive.transactions import DatabaseFault, held
from tests.lexical import shelf
from tests.lexical.shelf import rows

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = [
    "roses in the garden",
    "thorns and roses and thorns",
    "日本語 の roses",
    "日 日本",
    "...",
    "ไทย garden " * 40,
    "x" * 2_047,
]


def test_only_a_promoted_note_has_words():
    garden = shelf.retained("garden")
    ids = shelf.admitted(garden, TEXTS)
    assert shelf.postings(garden) == []
    assert lexical.figures(garden.id) == lexical.Figures(0, 0)

    shelf.moved(garden, ids, State.CANDIDATE, State.PROMOTED)

    assert shelf.postings(garden) == shelf.truth(garden) != []
    # The two notes without a single word are notes all the same.
    assert lexical.figures(garden.id) == lexical.Figures(*shelf.true_figures(garden))
    assert lexical.figures(garden.id).notes == len(TEXTS)


@pytest.mark.parametrize("end", [State.ARCHIVED, State.REVOKED])
def test_words_vanish_with_eligibility(end):
    garden = shelf.retained("garden")
    gone, stays = shelf.promoted(garden, ["a secret of roses", "roses alone"])

    shelf.moved(garden, [gone], State.PROMOTED, end)

    assert [row[:2] for row in shelf.postings(garden)] == [(stays, "alone"), (stays, "roses")]
    assert lexical.figures(garden.id) == lexical.Figures(1, 2)


def test_words_vanish_when_the_parser_has_changed_since():
    garden = shelf.retained("garden")
    ids = shelf.promoted(garden, ["the roses were blooming"])
    with shelf.reconfigured(garden, "english"):
        pass

    shelf.moved(garden, ids, State.PROMOTED, State.REVOKED)

    assert shelf.postings(garden) == []
    assert lexical.figures(garden.id) == lexical.Figures(0, 0)


def test_a_promotion_that_is_rolled_back_leaves_nothing():
    garden = shelf.retained("garden")
    [note] = shelf.admitted(garden, ["roses"])
    # Without its event the transition is refused, at commit.
    with pytest.raises(DatabaseFault), held(garden.key):
        rows("UPDATE archive_note SET state = 'promoted', lifecycle_version = 2 WHERE id = %s", note)
    assert rows("SELECT count(*) FROM archive_posting") == [(0,)]
    assert lexical.figures(garden.id).notes == 0


def test_any_walk_through_the_states_keeps_postings_and_figures_true():
    rng = random.Random(23)
    shelves = [shelf.retained("garden"), shelf.retained("kitchen", "english")]
    states = {
        (place, note): State.CANDIDATE
        for place, namespace in enumerate(shelves)
        for note in shelf.admitted(namespace, TEXTS * 3)
    }
    for _ in range(80):
        place, note = rng.choice(list(states))
        nexts = sorted(end for start, end in NOTE_EDGES if start == states[place, note])
        if not nexts:
            continue
        end = rng.choice(nexts)
        shelf.moved(shelves[place], [note], states[place, note], end)
        states[place, note] = end

        assert shelf.postings(shelves[place]) == shelf.truth(shelves[place])
        assert lexical.figures(shelves[place].id) == lexical.Figures(*shelf.true_figures(shelves[place]))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO archive_posting VALUES (1, 'forged', 1, 1, 1)",
        "UPDATE archive_posting SET tf = 9",
        "DELETE FROM archive_posting",
        "TRUNCATE archive_posting",
        "INSERT INTO archive_corpus VALUES (1, 1, 1)",
        "UPDATE archive_corpus SET notes = 9",
        "DELETE FROM archive_corpus",
        "SELECT archive_postings_enter(1, 1, 'simple', 'forged')",
    ],
)
def test_the_serving_role_writes_neither(serving, statement):
    shelf.promoted(shelf.retained("garden"), ["roses"])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        serving.execute(statement)


def test_no_statistics_hold_a_word(owner):
    garden = shelf.retained("garden")
    shelf.promoted(garden, [f"nightshade {number % 7}" for number in range(500)])
    lexical.vacuum()
    owner.execute("ANALYZE")

    kept = owner.execute(
        "SELECT tablename, attname, concat_ws(' ', most_common_vals, histogram_bounds, most_common_elems) FROM pg_stats"
        " WHERE schemaname = 'public'"
    ).fetchall()

    assert ("archive_posting", "tf") in {(table, column) for table, column, _ in kept}
    assert ("archive_posting", "lexeme") not in {(table, column) for table, column, _ in kept}
    assert not [column for _, column, values in kept if "nightshade" in values]
