"""What the serving role cannot do, and what the checks say when a fence is down."""

from contextlib import contextmanager

import psycopg
import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import connection, connections
from psycopg import sql

from lychd import roles
from tests import flushing

pytestmark = pytest.mark.django_db(transaction=True)


def ids(*, quiet: bool = True) -> list[str]:
    found = [str(message.id) for message in roles.check_database(databases=["default"])]
    return [name for name in found if not (quiet and name == "lychd.W101")]


@pytest.fixture
def mended(owner):
    """Whatever a test takes down is put up again."""
    yield owner
    with as_migration():
        roles.apply(connection)


@contextmanager
def as_migration():
    """The default connection as the owner, the way it is during a migration."""
    connection.close()
    role = connection.settings_dict["OPTIONS"].pop("assume_role")
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["OPTIONS"]["assume_role"] = role


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE auth_user CASCADE",
        "TRUNCATE archive_note CASCADE",
        "DELETE FROM archive_note",
        "DELETE FROM archive_lifecycle_event",
        "INSERT INTO archive_posting SELECT * FROM archive_posting",
        "UPDATE archive_corpus SET notes = 1",
        "DELETE FROM django_migrations",
        "DROP TABLE archive_note",
        "ALTER TABLE archive_note ADD COLUMN extra integer",
        "ALTER TABLE archive_note DISABLE TRIGGER ALL",
        "CREATE TABLE mine (number integer)",
        "SET session_replication_role = replica",
        "CREATE FUNCTION public.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "CREATE OR REPLACE FUNCTION _pgtrigger_should_ignore(trigger_name name) RETURNS boolean RETURN true",
        "ALTER FUNCTION public._pgtrigger_should_ignore(name) RESET ALL",
    ],
)
def test_the_serving_role_may_not(serving, statement):
    with pytest.raises(psycopg.Error) as refusal:
        serving.execute(statement)
    assert refusal.value.sqlstate == "42501"


def test_a_serving_login_cannot_become_the_owner(serving, superuser):
    # `superuser` is asked for so that this runs on the embedded server alone, where the login is a true one.
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        serving.execute("SET ROLE lychd_owner")


def test_a_look_up_outside_a_transaction_waits_for_no_lock_for_ever(serving, superuser):
    """Who asks and what they may is looked up before any transaction, where no limit of an operation holds yet."""
    with superuser.transaction():
        superuser.execute("LOCK TABLE lychd_grant IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            serving.execute("SELECT FROM lychd_grant")


def test_the_serving_role_may_vacuum_what_recall_reads(serving):
    said = []
    serving.add_notice_handler(lambda notice: said.append(notice.message_primary))
    serving.execute("VACUUM (ANALYZE) archive_posting")
    assert said == []


def test_every_privilege_is_the_committed_one():
    assert roles.differences(connection, "lychd_serving") == []


def test_truth_can_be_deleted_nowhere(owner):
    tables = [
        name
        for (name,) in owner.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        )
    ]
    kept = [name for name in tables if name.startswith(("archive_", "semantic_", "lychd_"))]
    assert kept
    for name in kept:
        assert not {"DELETE", "TRUNCATE", "TRIGGER", "REFERENCES"} & set(roles.privileges_on(name))


def test_a_database_with_all_its_fences_passes():
    assert ids() == []
    assert [m for m in run_checks(databases=["default"]) if m.id and m.id.startswith("lychd.E1")] == []


def test_the_escape_hatch_of_the_triggers_is_closed(serving):
    serving.execute("SELECT set_config('pgtrigger.ignore', '{any}', false)")
    assert serving.execute("SELECT public._pgtrigger_should_ignore('any')").fetchone() == (False,)


def test_an_open_escape_hatch_is_refused_and_the_next_migration_closes_it(mended):
    mended.execute(
        "CREATE OR REPLACE FUNCTION public._pgtrigger_should_ignore(trigger_name name) RETURNS boolean"
        " LANGUAGE plpgsql AS $$ BEGIN RETURN TRUE; END; $$"
    )
    assert ids() == ["lychd.E103", "lychd.E104"]

    with as_migration():
        call_command("migrate", verbosity=0)

    assert ids() == []


def test_a_function_with_a_loose_search_path_is_refused(mended):
    name = mended.execute(
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_trigger t ON t.tgfoid = p.oid"
        " WHERE p.pronamespace = 'public'::regnamespace LIMIT 1"
    ).fetchone()[0]
    mended.execute(sql.SQL("ALTER FUNCTION {} RESET search_path").format(sql.SQL(name)))

    assert ids() == ["lychd.E104"]


def test_every_trigger_function_is_pinned(owner):
    loose = owner.execute(
        "SELECT DISTINCT p.proname FROM pg_proc p JOIN pg_trigger t ON t.tgfoid = p.oid"
        " WHERE NOT t.tgisinternal AND NOT coalesce(p.proconfig, '{}') @> ARRAY[%s]",
        [roles.SEARCH_PATH],
    ).fetchall()
    assert loose == []


def test_a_stray_privilege_is_refused_and_the_next_migration_takes_it_back(mended):
    mended.execute("GRANT DELETE ON archive_note TO lychd_serving")
    assert ids() == ["lychd.E106"]

    with as_migration():
        call_command("migrate", verbosity=0)

    assert ids() == []


def test_settings_that_the_serving_role_gave_itself_are_seen(serving):
    assert ids() == []
    serving.execute(f"ALTER ROLE CURRENT_USER IN DATABASE {serving.info.dbname} SET application_name = 'mine'")
    try:
        assert ids() == ["lychd.W103"]
    finally:
        serving.execute(f"ALTER ROLE CURRENT_USER IN DATABASE {serving.info.dbname} RESET application_name")
    assert ids() == []


def test_serving_as_the_owner_is_refused():
    with as_migration():
        assert "lychd.E102" in ids()


def test_serving_as_a_superuser_is_refused(superuser):
    with as_migration():
        connection.settings_dict["USER"], before = "postgres", connection.settings_dict["USER"]
        try:
            assert "lychd.E101" in ids()
        finally:
            connection.settings_dict["USER"] = before


def test_a_server_that_would_log_parameters_is_warned_of(superuser):
    assert ids(quiet=False) == []
    superuser.execute("ALTER ROLE lychd_owner SET log_parameter_max_length = -1")
    try:
        connection.close()
        assert ids(quiet=False) == ["lychd.W101"]
    finally:
        superuser.execute("ALTER ROLE lychd_owner RESET log_parameter_max_length")
        connection.close()


def test_migrating_without_a_serving_role_names_the_setting(settings):
    settings.LYCHD_SERVING_ROLE = "nobody_of_that_name"
    with as_migration(), pytest.raises(Exception, match="LYCHD_SERVING_ROLE"):
        roles.apply(connections["default"])


def test_a_flush_writes_the_rows_of_the_migrations_again(owner):
    before = {
        name: owner.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name))).fetchall()
        for name in flushing.remembered()
    }
    assert before
    for name in before:
        owner.execute(sql.SQL("TRUNCATE {} CASCADE").format(sql.Identifier(name)))

    flushing.flush(owner)

    for name, rows in before.items():
        assert owner.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name))).fetchall() == rows
