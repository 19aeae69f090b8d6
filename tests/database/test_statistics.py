"""The planner keeps no words: what revocation does not reach must never have been written (S-022, 5.6)."""

import pytest
from psycopg import sql

from tests.database import catalogue
from tests.database.world import no_trace

pytestmark = pytest.mark.django_db

# The columns that hold words of notes, or what was made of them.
KEEPS_WORDS = {("archive_note", "text"), ("archive_note", "asserted_origin"), ("archive_posting", "lexeme")}

# Everything else that could hold words: identifiers, digests, names of states, and the text-free receipt.
FREE_OF_WORDS = {
    "archive_binding_migration": {
        *("old_owner", "new_owner", "old_policy_revision", "new_policy_revision", "old_text_configuration"),
        *("new_text_configuration", "old_binding_digest", "new_binding_digest", "actor_subject", "reason"),
    },
    "archive_flag": {"subject", "reason"},
    "archive_intake_request": {"request_id", "request_digest", "material_digest", "subject"},
    "archive_lifecycle_event": {"from_state", "to_state", "cause", "reason", "subject", "policy_revision"},
    "archive_memory_space": {"kind", "lifecycle"},
    "archive_namespace": {
        *("key", "profile", "owner", "policy_revision", "binding_digest", "classification", "text_configuration"),
        *("lexical_state", "lexer_fingerprint"),
    },
    "archive_note": {
        *("source_revision", "kind", "state", "text_digest", "material_digest", "classification"),
        *("retention_class", "admitted_subject", "policy_revision"),
    },
    "archive_recall": {"request_id", "request_digest", "receipt", "receipt_digest", "subject", "purpose"},
    "archive_source": {"source_key"},
}
WORDY = {"text", "jsonb", "json", "bytea", "tsvector", "character varying", "text[]", "xml"}


def test_every_column_that_could_hold_words_is_known(as_owner):
    wordy = {
        (table, column)
        for table in catalogue.tables(as_owner)
        if table.startswith("archive_")
        for column, kind in catalogue.columns(as_owner, table).items()
        if kind.split("(")[0] in WORDY
    }
    assert wordy == KEEPS_WORDS | {(table, column) for table, names in FREE_OF_WORDS.items() for column in names}


def test_no_statistics_are_kept_of_words(as_owner):
    targets = catalogue.ask(
        as_owner,
        "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attstattarget = 0"
        " AND starts_with(c.relname, 'archive_') ORDER BY 1, 2",
    )
    assert set(targets) == KEEPS_WORDS
    assert catalogue.ask(as_owner, "SELECT stxname FROM pg_statistic_ext") == []
    # An expression index has statistics of its own.
    assert (
        catalogue.ask(
            as_owner,
            "SELECT indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
            " WHERE c.relnamespace = 'public'::regnamespace AND i.indexprs IS NOT NULL",
        )
        == []
    )


def kept(connection, word: str) -> list[tuple[str, str]]:
    """The columns of whatever table whose statistics hold a word."""
    return catalogue.ask(
        connection, "SELECT tablename, attname FROM pg_stats s WHERE position(%s IN lower(s::text)) > 0", word
    )


WORDS = ("roses", "morning", "oaks", "clover", "evening")


def test_analyze_keeps_no_word_of_any_note(as_owner, world):
    with no_trace(as_owner):
        as_owner.execute("ANALYZE")
        # It did its work: of what is no secret there are statistics.
        assert ("archive_note", "state") in kept(as_owner, "promoted")
        # A source is named by its key, which stays in a tombstone; only the words of texts are meant.
        found = {
            word: [place for place in kept(as_owner, word) if place != ("archive_source", "source_key")]
            for word in WORDS
        }
        assert found == {word: [] for word in WORDS}


@pytest.mark.parametrize(("table", "column"), sorted(KEEPS_WORDS))
def test_without_that_setting_analyze_would_keep_them(as_owner, world, table, column):
    """What the test above looks for can be found at all."""
    with no_trace(as_owner):
        as_owner.execute(
            sql.SQL("ALTER TABLE {} ALTER COLUMN {} SET STATISTICS 100").format(
                sql.Identifier(table), sql.Identifier(column)
            )
        )
        as_owner.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))
        assert (table, column) in kept(as_owner, "roses")


def test_a_tombstone_keeps_its_facts_and_no_word(as_owner, world):
    """S-022: digest, key, revision, lengths and times are still there."""
    (row,) = catalogue.ask(
        as_owner,
        "SELECT n.text, n.state, s.source_key, n.source_revision, length(n.text_digest), n.char_count, n.byte_count,"
        " n.promoted_at IS NOT NULL, n.revoked_at IS NOT NULL, n.created_at IS NOT NULL,"
        " (SELECT count(*) FROM archive_posting p WHERE p.note_number = n.note_number)"
        " FROM archive_note n JOIN archive_source s ON s.id = n.source_id WHERE n.id = %s",
        world["tombstone"],
    )
    assert row == (None, "revoked", "ash", "1", 64, 21, 21, True, True, True, 0)
    assert catalogue.ask(as_owner, "SELECT 1 FROM archive_posting WHERE lexeme = ANY (%s)", ["ash", "ailing"]) == []
