"""The inventory that the release carries is what the migrations make, and every way to differ from it is named."""

import psycopg
import pytest
from psycopg import sql

from lychd import inventory

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_inventory_is_what_the_migrations_make(owner):
    found = {**read(owner), "words": inventory.words("default")}
    assert inventory.as_text(found) == inventory.FILE.read_text(encoding="utf-8"), (
        "a migration changed the tables: run `make inventory` and commit lychd/inventory.json with it"
    )
    assert sum(len(objects) for objects in found.values()) > 600


def read(owner: psycopg.Connection, *deeds: str) -> inventory.Inventory:
    """The inventory after some deeds, of which nothing stays."""
    with owner.transaction(force_rollback=True), owner.cursor() as cursor:
        for deed in deeds:
            cursor.execute(sql.SQL(deed))
        return inventory.ask(cursor)


# What was done, what is named, and the beginning of what to do about it.
DEEDS = {
    "ALTER TABLE archive_note ALTER COLUMN text DROP NOT NULL, ALTER COLUMN kind SET DEFAULT 'x'": (
        "column archive_note.kind has default 'x'::text, not None",
        "As the owner: run the statement for it out of `lychd sqlmigrate archive 0001_truth`.",
    ),
    "ALTER TABLE archive_posting ALTER COLUMN lexeme SET STATISTICS 100": (
        "column archive_posting.lexeme has statistics 100, not 0",
        "As the owner: run the statement for it out of `lychd sqlmigrate archive",
    ),
    "ALTER TABLE semantic_scan ALTER COLUMN half SET STORAGE EXTENDED": (
        "column semantic_scan.half has storage x, not p",
        "As the owner",
    ),
    "ALTER TABLE archive_flag ADD COLUMN more text": (
        "column archive_flag.more is not of this release",
        "As the owner: drop it, unless a newer release made it.",
    ),
    "ALTER TABLE archive_posting RESET (autovacuum_vacuum_scale_factor)": (
        "table archive_posting has options ['autovacuum_vacuum_insert_scale_factor=0.02'], not [",
        "As the owner",
    ),
    "ALTER TABLE lychd_token SET UNLOGGED": ("table lychd_token has persistence u, not p", "As the owner"),
    "ALTER TABLE lychd_grant ENABLE ROW LEVEL SECURITY": (
        "table lychd_grant has row security True, not None",
        "As the owner",
    ),
    "GRANT SELECT ON archive_note TO PUBLIC": (
        "table archive_note has grants {'owner': ",
        "Run `lychd migrate`; it applies the grants.",
    ),
    "GRANT DELETE ON archive_note TO lychd_serving": (
        "table archive_note has grants {'owner': ",
        "Run `lychd migrate`; it applies the grants.",
    ),
    "GRANT EXECUTE ON FUNCTION archive_note_postings() TO PUBLIC": (
        "function archive_note_postings() has grants {'owner': 'EXECUTE', 'PUBLIC': 'EXECUTE'}, not {",
        "Run `lychd migrate`; it applies the grants.",
    ),
    "GRANT UPDATE ON SEQUENCE archive_source_id_seq TO lychd_serving": (
        "sequence archive_source_id_seq has grants",
        "Run `lychd migrate`; it applies the grants.",
    ),
    "ALTER SEQUENCE archive_source_id_seq CACHE 32": ("sequence archive_source_id_seq has cache 32, not 1", "As the"),
    "ALTER TABLE archive_note DISABLE TRIGGER postings": (
        "trigger archive_note.postings has on None, not True",
        "As the owner: ALTER TABLE archive_note ENABLE TRIGGER postings.",
    ),
    "DROP TRIGGER scan ON semantic_derivation": (
        "trigger semantic_derivation.scan is missing",
        "As the owner: run the statement for it out of `lychd sqlmigrate semantic 0002_scan`.",
    ),
    "CREATE TRIGGER more AFTER INSERT ON archive_note FOR EACH ROW EXECUTE FUNCTION archive_note_postings()": (
        "trigger archive_note.more is not of this release",
        "As the owner: drop it",
    ),
    "DROP INDEX note_waiting": (
        "index note_waiting is missing",
        "As the owner: run the statement for it out of `lychd sqlmigrate archive 0012_growth`.",
    ),
    "CREATE UNIQUE INDEX more ON archive_note (text_digest)": ("index more is not of this release", "As the owner"),
    "ALTER TABLE semantic_coverage DROP CONSTRAINT coverage_complete_not_negative": (
        "constraint semantic_coverage.coverage_complete_not_negative is missing",
        "As the owner: run the statement for it out of `lychd sqlmigrate semantic 0002_scan`.",
    ),
    "ALTER FUNCTION archive_rebuild_slice(bigint, bigint, integer) SECURITY INVOKER": (
        "function archive_rebuild_slice(namespace bigint, after_number bigint, at_most integer) has definer None, not",
        "As the owner: run the statement for it out of `lychd sqlmigrate archive 0009_functions_anew`.",
    ),
    "ALTER FUNCTION archive_lexemes(regconfig, text, boolean) RESET search_path": (
        "function archive_lexemes(configuration regconfig, body text, for_note boolean) has settings None, not",
        "As the owner",
    ),
    "CREATE OR REPLACE FUNCTION archive_lexemes(configuration regconfig, body text, for_note boolean)"
    " RETURNS TABLE (lexeme text, tf smallint) LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 30"
    " SET search_path = pg_catalog, public, pg_temp AS 'SELECT body, 1::smallint'": (
        "function archive_lexemes(configuration regconfig, body text, for_note boolean) has another text",
        "As the owner: run the statement for it out of `lychd sqlmigrate archive 0009_functions_anew`.",
    ),
    "CREATE POLICY open ON archive_note USING (true)": ("policy archive_note.open is not of this release", "As the"),
    "CREATE RULE never AS ON INSERT TO archive_recall DO INSTEAD NOTHING": (
        "rule archive_recall.never is not of this release",
        "As the owner: drop it",
    ),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_every_way_to_differ_is_named_with_what_to_do(owner, deed):
    what, fix = DEEDS[deed]
    found = inventory.compare(read(owner, deed))
    assert [str(one) for one in found if str(one).startswith(what)], found
    (named,) = (one for one in found if str(one).startswith(what))
    assert named.grave
    assert named.fix.startswith(fix)


def test_a_foreign_key_whose_triggers_are_off_is_named(owner, superuser):
    superuser.execute("ALTER TABLE archive_flag DISABLE TRIGGER ALL")
    try:
        found = inventory.compare(read(owner))
    finally:
        superuser.execute("ALTER TABLE archive_flag ENABLE TRIGGER ALL")
    fixes = {one.fix for one in found if one.kind == "constraint"}
    assert {fix.partition(" ENABLE")[0] for fix in fixes} >= {"As a superuser: ALTER TABLE archive_flag"}


def test_an_index_more_and_a_right_of_somebody_else_are_the_operators_own(owner, superuser):
    """Neither changes what is answered; the index is said, the other role is not looked at."""
    superuser.execute("CREATE ROLE lychd_reader_of_a_test")
    try:
        found = inventory.compare(
            read(
                owner,
                "CREATE INDEX more ON archive_note (text_digest)",
                "GRANT SELECT ON archive_note TO lychd_reader_of_a_test",
                "CREATE TABLE somebody_elses (id int)",
                "CREATE FUNCTION somebody_elses() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            )
        )
    finally:
        superuser.execute("DROP ROLE lychd_reader_of_a_test")
    assert [(str(one), one.grave) for one in found] == [("index more is not of this release", False)]


def test_words_that_are_cut_otherwise_are_another_digest(owner):
    """Of each rule: parts of names, runs that are no word, scripts without spaces."""
    before = inventory.words("default")
    assert before["simple"] != before["english"]
    assert before == inventory.released()["words"]
