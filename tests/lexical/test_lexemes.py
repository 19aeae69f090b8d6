"""How text becomes words: PostgreSQL's parser for scripts with spaces, overlapping pairs for those without."""

import random

import pytest

from tests import cast
from tests.lexical import reference
from tests.lexical.shelf import rows

pytestmark = pytest.mark.django_db


def lexemes(text, *, for_note=True, configuration="simple"):
    found = rows(
        "SELECT lexeme, tf FROM archive_lexemes(%s::text::regconfig, %s::text, %s::boolean)",
        configuration,
        text,
        for_note,
    )
    assert len(dict(found)) == len(found), "a lexeme comes once"
    return dict(found)


@pytest.mark.parametrize(
    ("text", "note", "query"),
    [
        ("", {}, {}),
        ("   \n\t", {}, {}),
        ("'\"&!()<->:*|\\", {}, {}),
        ("🦇 🕯️", {}, {}),
        ("Roses, roses & thorns", {"roses": 2, "thorns": 1}, {"roses": 2, "thorns": 1}),
        ("a:* & !b | 'c' <-> d", {"a": 1, "b": 1, "c": 1, "d": 1}, {"a": 1, "b": 1, "c": 1, "d": 1}),
        ("ﬁne", {"fine": 1}, {"fine": 1}),
        ("e\u0301t\u00e9", {"été": 1}, {"été": 1}),
        ("ΣΟΦΙΑ Книга", {"σοφια": 1, "книга": 1}, {"σοφια": 1, "книга": 1}),
        ("שלום عالم हिन्दी 한국어", {"שלום": 1, "عالم": 1, "हिन्दी": 1, "한국어": 1}, None),
        # Han: pairs, and in a note each character of a longer run as well.
        ("日", {"日": 1}, {"日": 1}),
        ("日本", {"日本": 1, "日": 1, "本": 1}, {"日本": 1}),
        ("日本語", {"日本": 1, "本語": 1, "日": 1, "本": 1, "語": 1}, {"日本": 1, "本語": 1}),
        ("日 日本", {"日": 2, "日本": 1, "本": 1}, {"日": 1, "日本": 1}),
        ("人々〇", {"人々": 1, "々〇": 1, "人": 1, "々": 1, "〇": 1}, {"人々": 1, "々〇": 1}),
        ("𠮷野", {"𠮷野": 1, "𠮷": 1, "野": 1}, {"𠮷野": 1}),
        # NFKC comes first: a compatibility ideograph is its plain one.
        ("\uf900", {"豈": 1}, {"豈": 1}),
        # Kana: pairs only; half-width letters with a mark of their own become one.
        ("カ", {"カ": 1}, {"カ": 1}),
        ("ｶﾞｷﾞ", {"ガギ": 1}, {"ガギ": 1}),
        ("東京タワー", {"東京": 1, "京タ": 1, "タワ": 1, "ワー": 1, "東": 1, "京": 1}, None),
        # The middle dot of katakana is no letter of the run.
        ("ア・イ", {"ア": 1, "イ": 1}, {"ア": 1, "イ": 1}),
        ("ไทย", {"ไท": 1, "ทย": 1}, {"ไท": 1, "ทย": 1}),
        ("ลาว ລາວ", {"ลา": 1, "าว": 1, "ລາ": 1, "າວ": 1}, None),
        ("ខ្មែរ", {"ខ្": 1, "្ម": 1, "មែ": 1, "ែរ": 1}, None),
        ("မြန်", {"မြ": 1, "ြန": 1, "န်": 1}, None),
        # A run ends the word beside it, and the parser never sees it.
        ("v2東京api", {"v2": 1, "東京": 1, "東": 1, "京": 1, "api": 1}, {"v2": 1, "東京": 1, "api": 1}),
    ],
)
def test_words_of_a_text(text, note, query):
    assert lexemes(text) == note
    assert lexemes(text, for_note=False) == (query if query is not None else reference_query(text))


def reference_query(text):
    return {**reference.pieces(text, for_note=False), **lexemes(reference.rest(text))}


def test_a_stemmer_works_beside_the_pairs():
    assert lexemes("The roses were blooming in 日本", configuration="english") == {
        "rose": 1,
        "bloom": 1,
        "日本": 1,
        "日": 1,
        "本": 1,
    }


@pytest.mark.parametrize("letter", ["日", "カ", "ก"])
def test_one_run_as_long_as_a_note(letter):
    text = letter * 16_384
    assert lexemes(text) == reference.pieces(text, for_note=True)
    assert lexemes(text, for_note=False) == {letter * 2: 255}


def test_a_long_run_of_many_characters_agrees_with_the_reference():
    rng = random.Random(4)
    text = "".join(chr(rng.randrange(0x4E00, 0xA000)) for _ in range(16_384))
    for for_note in (True, False):
        assert lexemes(text, for_note=for_note) == reference.pieces(text, for_note=for_note)


def test_random_mixtures_agree_with_the_reference():
    rng = random.Random(11)
    alphabet = "ab1 .-/'é\u0301ﬁ日本語々〇𠮷豈\uf900カｶﾞー・ひらไทยก็ลາວខ្មែမြန်한국اب\u202e🦇\u3000，。①Ⅷ㍿"
    for _ in range(400):
        text = "".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 40)))
        whole, parts = parsed(reference.rest(text)), parsed(reference.parted(text))
        for for_note in (True, False):
            expected = reference.with_parts(whole, parts, for_note=for_note) | reference.pieces(text, for_note=for_note)
            assert lexemes(text, for_note=for_note) == expected, ascii(text)


def parsed(text):
    return dict(rows("SELECT lexeme, cardinality(positions) FROM unnest(to_tsvector('simple', %s::text))", text))


@pytest.mark.parametrize(
    ("text", "note", "query"),
    [
        (
            "Session.execute",
            {"session.execute": 1, "session": 1, "execute": 1},
            {"session.execute": 1, "session": 0, "execute": 0},
        ),
        # Written alone as well, the word counts once for the length and twice for the note.
        (
            "execute Session.execute",
            {"session.execute": 1, "session": 1, "execute": 2},
            {"session.execute": 1, "session": 0, "execute": 1},
        ),
        (
            "lib/engine.py",
            {"lib/engine.py": 1, "lib": 1, "engine": 1, "py": 1},
            {"lib/engine.py": 1, "lib": 0, "engine": 0, "py": 0},
        ),
        ("3.14 2024/05", {"3.14": 1, "2024/05": 1}, None),
        ("and so. Then / or", {"and": 1, "so": 1, "then": 1, "or": 1}, None),
        (
            "東京api.call",
            {"東京": 1, "東": 1, "京": 1, "api.call": 1, "api": 1, "call": 1},
            {"東京": 1, "api.call": 1, "api": 0, "call": 0},
        ),
    ],
)
def test_words_inside_a_word_find_the_note_and_add_nothing_to_its_length(text, note, query):
    assert lexemes(text) == note
    assert lexemes(text, for_note=False) == (note if query is None else query)


def test_a_repeated_word_counts_up_to_255():
    assert lexemes("again " * 2_000) == {"again": 255}


def test_a_word_longer_than_the_parser_takes_is_no_word():
    assert lexemes("x" * 2_046) == {"x" * 2_046: 1}
    assert lexemes("x" * 2_047 + " y") == {"y": 1}


def test_a_run_of_more_than_255_characters_is_no_host_and_no_file():
    address = "https://" + "a" * 200 + ".example/" + "b" * 38
    assert len(address) == 255
    assert address.removeprefix("https://") in lexemes(f"see {address} there")
    assert lexemes(f"see {address}c there") == {
        "see": 1,
        "there": 1,
        "https": 1,
        "example": 1,
        "a" * 200: 1,
        "b" * 38 + "c": 1,
    }


HOSTILE = ["1a@", "a@1", "a_", "~/", "./", "a-b.", "_\u2488a", "日1a@", "1a@\u200b", "1a@" * 85 + " ", "<!-- "]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_note_of_the_longest_and_worst_text_agrees_with_the_reference(unit):
    text = (unit * 16_384)[:16_384]
    whole, parts = parsed(reference.rest(text)), parsed(reference.parted(text))
    expected = reference.with_parts(whole, parts, for_note=True) | reference.pieces(text, for_note=True)
    assert lexemes(text) == expected


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("unit", HOSTILE)
def test_such_a_note_is_promoted_within_the_bounds_of_every_act(alice, unit):
    assert cast.promoted(alice, ("lib/engine.py " + unit * 16_384)[:16_384]).state == "promoted"


def test_the_fingerprint_is_stable_and_tells_configurations_apart():
    [(simple, again, english)] = rows(
        "SELECT archive_lexer_fingerprint('simple'), archive_lexer_fingerprint('simple'),"
        " archive_lexer_fingerprint('english')"
    )
    assert simple == again
    assert simple != english
    assert len(simple) == 64


def test_the_functions_are_pinned_and_safe_to_run_in_parallel():
    found = rows(
        "SELECT proname::text, provolatile::text, proparallel::text, prosecdef, proconfig::text[] FROM pg_proc"
        " WHERE proname IN ('archive_lexemes', 'archive_lexeme_counts', 'archive_note_postings',"
        " 'archive_postings_enter', 'archive_rebuild_slice', 'archive_rebuild_finish', 'archive_held_for_rebuild',"
        " 'archive_lexer_fingerprint')"
    )
    assert len(found) == 8
    for name, volatility, parallel, definer, settings in found:
        assert "search_path=pg_catalog, public, pg_temp" in settings, name
        assert (volatility, parallel) == ("i", "s") or not name.startswith("archive_lexeme")
        assert definer == (name in {"archive_note_postings", "archive_rebuild_slice", "archive_rebuild_finish"})
