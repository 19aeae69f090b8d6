"""What the serving role may not do, tried on every table, trigger and function that the catalogue names."""

import psycopg
import pytest
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db import connection as default
from psycopg import sql

from archive.lifecycle import State
from lychd import embedded, roles
from tests import flushing
from tests.database import catalogue, trips
from tests.database.test_triggers import hold_both
from tests.database.world import hold, no_trace, settle, tried

pytestmark = pytest.mark.django_db


def refused(connection, world, *deeds) -> str | None:
    error = tried(connection, world, *deeds)
    return None if error is None else error.sqlstate


# --- tables ----------------------------------------------------------------------------------------------------------

OWNERS_DEEDS = (
    "TRUNCATE {table} CASCADE",
    "ALTER TABLE {table} DISABLE TRIGGER ALL",
    "ALTER TABLE {table} DISABLE TRIGGER USER",
    "ALTER TABLE {table} ADD COLUMN extra integer",
    "ALTER TABLE {table} OWNER TO {serving}",
    "ALTER TABLE {table} SET (autovacuum_enabled = false)",
    "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE {table} RENAME TO gone",
    "DROP TABLE {table} CASCADE",
    "CREATE TRIGGER mine BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE RULE mine AS ON UPDATE TO {table} DO INSTEAD NOTHING",
    "CREATE INDEX mine ON {table} ((1))",
    "COMMENT ON TABLE {table} IS 'mine'",
)


@pytest.mark.parametrize("deed", OWNERS_DEEDS)
def test_the_serving_role_changes_no_table(as_serving, world, deed):
    for table in catalogue.every_table(as_serving):
        statement = sql.SQL(deed).format(
            table=sql.Identifier(table), serving=sql.Identifier(settings.LYCHD_SERVING_ROLE)
        )
        assert refused(as_serving, world, statement) == "42501", table


def test_the_serving_role_deletes_no_truth_and_cannot_give_itself_the_right(as_serving, world):
    for table in catalogue.tables(as_serving):
        name, serving = sql.Identifier(table), sql.Identifier(settings.LYCHD_SERVING_ROLE)
        delete = sql.SQL("DELETE FROM {}").format(name)
        # PostgreSQL answers a grant of what one has not got with a warning, or an error where one has nothing.
        grant = sql.SQL("GRANT ALL ON {} TO {}").format(name, serving)
        assert refused(as_serving, world, delete) == "42501", table
        assert refused(as_serving, world, grant, delete) == "42501", table


KEPT_BY_OTHERS = (
    "INSERT INTO archive_posting (namespace_id, lexeme, note_number, tf, length) VALUES (1, 'forged', 1, 1, 1)",
    "UPDATE archive_posting SET tf = 9",
    "INSERT INTO archive_corpus (namespace_id, notes, total_length) VALUES (1, 1, 1)",
    "UPDATE archive_corpus SET notes = 9",
    "INSERT INTO django_migrations (app, name, applied) VALUES ('archive', '9999_forged', now())",
    "UPDATE django_migrations SET name = 'other'",
    "DELETE FROM django_migrations",
    "SELECT archive_postings_enter(1, 1, 'simple', 'forged')",
)


@pytest.mark.parametrize("deed", KEPT_BY_OTHERS)
def test_the_serving_role_writes_nothing_that_the_database_keeps(as_serving, world, deed):
    assert refused(as_serving, world, deed) == "42501"


BEYOND_TABLES = (
    "SET session_replication_role = replica",
    "SET ROLE {owner}",
    "SET SESSION AUTHORIZATION {owner}",
    "GRANT {owner} TO {serving}",
    "ALTER ROLE {serving} SUPERUSER",
    "ALTER ROLE {serving} SET pgtrigger.ignore = 'all'",
    "ALTER ROLE {serving} SET log_min_duration_statement = 0",
    "ALTER DATABASE {database} SET pgtrigger.ignore = 'all'",
    "ALTER DATABASE {database} OWNER TO {serving}",
    "SET log_statement = 'all'",
    "SET log_min_messages = 'debug5'",
    "SET log_min_error_statement = 'error'",
    "SET log_error_verbosity = 'verbose'",
    "SET log_parameter_max_length = 100",
    "CREATE TABLE public.mine (number integer)",
    "CREATE TEMPORARY TABLE mine (number integer)",
    "CREATE VIEW public.mine AS SELECT 1",
    "CREATE FUNCTION public.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE SCHEMA mine",
    "CREATE EXTENSION hstore",
    "CREATE PUBLICATION mine FOR ALL TABLES",
    "CREATE EVENT TRIGGER mine ON ddl_command_start EXECUTE FUNCTION archive_note_postings()",
    "COPY archive_note TO '/dev/null'",
    "COPY archive_note TO PROGRAM 'cat'",
    "SELECT pg_read_file('PG_VERSION')",
    "SELECT * FROM pg_statistic",
    "SELECT * FROM pg_authid",
)


@pytest.mark.parametrize("deed", BEYOND_TABLES)
def test_the_serving_role_stays_inside(as_serving, world, deed):
    statement = sql.SQL(deed).format(
        owner=sql.Identifier(embedded.OWNER_ROLE),
        serving=sql.Identifier(settings.LYCHD_SERVING_ROLE),
        database=sql.Identifier(as_serving.info.dbname),
    )
    assert refused(as_serving, world, statement) == "42501"


def test_the_connection_of_the_service_is_refused_the_same(world):
    """Through Django, as an operation would meet it."""
    for deed in (*KEPT_BY_OTHERS, "TRUNCATE archive_note CASCADE", "DELETE FROM archive_note"):
        with pytest.raises(DatabaseError) as refusal, transaction.atomic(), default.cursor() as cursor:
            cursor.execute(deed)
        assert getattr(refusal.value.__cause__, "sqlstate", None) == "42501", deed


# --- triggers --------------------------------------------------------------------------------------------------------


def test_the_serving_role_switches_no_trigger_off(as_serving, world):
    for trigger in catalogue.triggers(as_serving, of_all=True):
        table, name = sql.Identifier(trigger.table), sql.Identifier(trigger.pgid)
        for deed in (
            "ALTER TABLE {table} DISABLE TRIGGER {name}",
            "ALTER TABLE {table} ENABLE REPLICA TRIGGER {name}",
            "DROP TRIGGER {name} ON {table}",
            "ALTER TRIGGER {name} ON {table} RENAME TO mine",
        ):
            assert refused(as_serving, world, sql.SQL(deed).format(table=table, name=name)) == "42501", trigger


def test_the_serving_role_rewrites_no_function(as_serving, world):
    for function in catalogue.functions(as_serving):
        signature = sql.SQL(function.signature)
        for deed in (
            "ALTER FUNCTION {} RESET search_path",
            "ALTER FUNCTION {} SECURITY INVOKER",
            "DROP FUNCTION {} CASCADE",
            "ALTER FUNCTION {} OWNER TO CURRENT_USER",
        ):
            assert refused(as_serving, world, sql.SQL(deed).format(signature)) == "42501", function
    for trigger in catalogue.triggers(as_serving, of_all=True):
        body = sql.SQL(
            "CREATE OR REPLACE FUNCTION public.{}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
        ).format(sql.Identifier(trigger.pgid))
        assert refused(as_serving, world, body) == "42501", trigger


def _ways_round(connection) -> list[tuple[str, str]]:
    """Every value of the setting that the trigger package writes or has ever written, and how it is written."""
    names = [
        form
        for trigger in catalogue.triggers(connection)
        for form in (trigger.pgid, f"{trigger.table}:{trigger.pgid}", trigger.rule)
    ]
    everything = "{" + ",".join(names) + "}"
    return [
        ("SELECT set_config('pgtrigger.ignore', %(ignored)s, true)", everything),
        ("SELECT set_config('pgtrigger.ignore', %(ignored)s, false)", everything),
        ("SET pgtrigger.ignore = '{}'", everything),
        ("SET LOCAL pgtrigger.ignore = '{}'", everything),
        ("SELECT set_config('pgtrigger.ignore', %(ignored)s, true)", ",".join(names)),
        ("SELECT set_config('pgtrigger.ignore', %(ignored)s, true)", "true"),
    ]


def test_the_bypass_of_the_trigger_package_passes_no_trigger(as_serving, as_owner, world):
    ways = _ways_round(as_serving)
    left = {(trigger.table, trigger.rule) for trigger in catalogue.triggers(as_serving)}
    for way, value in ways:
        bypass = way.format(value) if "{}" in way else way
        names = {**world.names, "ignored": value}
        for (table, rule), cases in trips.CASES.items():
            trip = next(case for case in cases if isinstance(case, trips.Trip))
            error = tried(as_serving, _Named(names), bypass, hold_both(world), *trip.wrong)
            assert error, (table, rule)
            assert error.sqlstate == trip.sqlstate
            left.discard((table, rule))
        for trigger in catalogue.triggers(as_owner):
            statement = SHARED_TRIPS.get(trigger.rule)
            if statement is None:
                continue
            deed = sql.SQL(statement[1]).format(sql.Identifier(trigger.table))
            # Rows are deleted by the owner, who alone gets as far as the trigger.
            holds = () if trigger.rule == "a_nslock" else (hold_both(world),)
            error = tried(as_owner, _Named(names), bypass, *holds, *statement[2:], deed)
            assert error, trigger
            assert error.sqlstate == statement[0]
            left.discard((trigger.table, trigger.rule))
    assert {rule for _, rule in left} == {"space", "history", "postings", "truth"}


SHARED_TRIPS: dict[str, tuple[str, ...]] = {
    "nodelete": ("LY004", "DELETE FROM {}"),
    "append": ("LY010", "UPDATE {0} SET id = id"),
    "a_nslock": ("LY005", "UPDATE {0} SET id = id", "SELECT set_config('lychd.hold', 'shared', true)"),
}


class _Named:
    """A world with one name more."""

    def __init__(self, names):
        self.names = names


def test_the_bypass_cannot_keep_a_trigger_from_writing(as_serving, world):
    """Spaces, the history of bindings and the postings are written all the same."""
    with no_trace(as_serving):
        names = [trigger.pgid for trigger in catalogue.triggers(as_serving, of_all=True)]
        as_serving.execute("SELECT set_config('pgtrigger.ignore', %s, true)", ["{" + ",".join(names) + "}"])
        hold(as_serving, world)
        as_serving.execute(
            "INSERT INTO archive_source (namespace_id, source_key) VALUES (%(garden)s, 'tulips')", world.names
        )
        before = as_serving.execute("SELECT count(*) FROM lychd_binding_history").fetchone()[0]
        as_serving.execute("UPDATE lychd_binding SET owner = 'other' WHERE namespace_key = 'garden'")
        assert as_serving.execute("SELECT count(*) FROM lychd_binding_history").fetchone()[0] == before + 1
        as_serving.execute(trips.move("promoted", State.REVOKED).encode(), world.names)
        as_serving.execute(trips.event_of("promoted").encode(), world.names)
        settle(as_serving)
        left = as_serving.execute(
            "SELECT count(*) FROM archive_posting JOIN archive_note USING (note_number) WHERE id = %(promoted)s",
            world.names,
        ).fetchone()
        assert left == (0,)


def test_a_login_that_brings_the_bypass_along_is_fenced_too(world):
    options = "-c pgtrigger.ignore={pgtrigger_append}"
    parameters = {**flushing.parameters(), "options": options}
    with psycopg.connect(**parameters, autocommit=True) as connection:
        names = ",".join(trigger.pgid for trigger in catalogue.triggers(connection, of_all=True))
    parameters["options"] = f"-c pgtrigger.ignore={{{names}}}"
    with psycopg.connect(**parameters, autocommit=True) as connection:
        assert refused(connection, world, hold_both(world), "UPDATE archive_recall SET id = id") == "LY010"
        assert refused(connection, world, hold_both(world), "DELETE FROM archive_note") == "LY004"


# --- grants ----------------------------------------------------------------------------------------------------------


def test_the_grants_are_the_committed_list_in_both_directions(as_owner):
    """Nothing more on any table, and nothing less; neither may be granted on."""
    held = {table: set() for table in catalogue.every_table(as_owner)}
    rows = catalogue.ask(
        as_owner,
        "SELECT c.relname, a.privilege_type, a.is_grantable, a.grantee::regrole::text FROM pg_class c"
        " CROSS JOIN LATERAL aclexplode(c.relacl) a"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.grantee <> c.relowner",
    )
    for table, privilege, grantable, grantee in rows:
        assert grantee == settings.LYCHD_SERVING_ROLE, (table, grantee)
        assert not grantable
        held[table].add(privilege)
    assert held == {table: set(roles.privileges_on(table)) for table in held}


# What the database alone fills; on these tables INSERT is granted column by column.
UNWRITTEN = {
    "archive_note": "note_number",
    **dict.fromkeys(("archive_namespace", "archive_source", "archive_intake_request"), "id"),
    **dict.fromkeys(("lychd_principal", "lychd_grant", "lychd_token", "lychd_binding", "lychd_binding_history"), "id"),
}


def test_a_row_is_given_its_number_by_the_database_alone(as_owner, as_serving, world):
    rows = catalogue.ask(
        as_owner,
        "SELECT c.relname, a.attname, x.privilege_type, x.is_grantable, x.grantee::regrole::text FROM pg_attribute a"
        " JOIN pg_class c ON c.oid = a.attrelid CROSS JOIN LATERAL aclexplode(a.attacl) x"
        " WHERE c.relnamespace = 'public'::regnamespace",
    )
    told = {("INSERT", False, settings.LYCHD_SERVING_ROLE)}
    assert {row[2:] for row in rows} == told
    for table, number in UNWRITTEN.items():
        granted = {column for name, column, *_ in rows if name == table}
        assert granted == set(catalogue.columns(as_owner, table)) - {number}, table
    assert {name for name, *_ in rows} == set(UNWRITTEN)
    for overriding in ("SYSTEM", "USER"):
        for insert in (
            f"INSERT INTO archive_note OVERRIDING {overriding} VALUE SELECT * FROM archive_note LIMIT 1",
            f"INSERT INTO archive_note (note_number) OVERRIDING {overriding} VALUE VALUES (1)",
        ):
            assert refused(as_serving, world, hold_both(world), insert) == "42501"


def test_every_line_of_the_committed_list_is_about_some_table(as_owner):
    tables = catalogue.every_table(as_owner)
    used = {
        next(grant.pattern for grant in roles.GRANTS if roles.fnmatch.fnmatchcase(table, grant.pattern))
        for table in tables
    }
    # The tables of the derived part come with their own slice.
    assert used >= {grant.pattern for grant in roles.GRANTS} - {"semantic_*"}


def test_a_sequence_can_be_counted_on_and_not_set(as_serving, world):
    sequences = catalogue.ask(
        as_serving,
        "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'S'",
    )
    assert sequences
    for (name,) in sequences:
        for deed in ("SELECT setval('{}', 1)", "ALTER SEQUENCE {} RESTART", "DROP SEQUENCE {} CASCADE"):
            assert refused(as_serving, world, deed.format(name)) == "42501", name


def test_the_schema_gives_nobody_a_place_to_create(as_owner):
    rights = catalogue.ask(
        as_owner,
        "SELECT a.grantee = 0, a.privilege_type FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) a"
        " WHERE n.nspname = 'public' AND a.grantee <> n.nspowner"
        " AND a.grantee <> (SELECT datdba FROM pg_database WHERE datname = current_database())",
    )
    assert "CREATE" not in {right for _, right in rights}


# --- functions -------------------------------------------------------------------------------------------------------

DEFINERS = {
    "archive_note_postings()",
    "archive_rebuild_slice(bigint,bigint,integer)",
    "archive_rebuild_finish(bigint)",
}


def test_every_function_looks_names_up_where_it_was_told(as_owner):
    loose = [one.signature for one in catalogue.functions(as_owner) if roles.SEARCH_PATH not in one.settings]
    assert loose == []


def test_the_functions_with_the_owners_rights_are_three_and_not_everybodys(as_owner):
    definers = {one.signature: one for one in catalogue.functions(as_owner) if one.definer}
    assert {signature for signature in definers if signature.startswith("archive_")} == DEFINERS
    # A derived part has functions of its own, named after it; its own tests call them.
    assert all(signature.startswith(("archive_", "semantic_")) for signature in definers)
    assert not any(one.public for one in definers.values())


@pytest.fixture
def temporary(as_owner):
    """The right to make temporary tables, which the grants withhold: somebody gave it back."""
    names = sql.Identifier(as_owner.info.dbname), sql.Identifier(settings.LYCHD_SERVING_ROLE)
    as_owner.execute(sql.SQL("GRANT TEMPORARY ON DATABASE {} TO {}").format(*names))
    yield
    as_owner.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM {}").format(*names))


def test_a_right_to_temporary_tables_is_noticed(temporary):
    assert "lychd.W102" in {message.id for message in roles.check_database(databases=["default"])}


def test_no_trigger_function_can_be_lent_to_another_table(as_serving, world, temporary):
    """A trigger fires without EXECUTE; with it, the postings of any note could be forged from a temporary table."""
    for function in catalogue.functions(as_serving):
        if function.returns != "trigger":
            continue
        assert not function.public, function
        error = refused(
            as_serving,
            world,
            "CREATE TEMPORARY TABLE mine (namespace_id bigint, state text, text text, note_number bigint)",
            f"CREATE TRIGGER mine AFTER INSERT OR DELETE ON mine FOR EACH ROW EXECUTE FUNCTION {function.signature}",
        )
        assert error == "42501", function


def test_what_is_called_with_the_owners_rights_asks_for_the_hold(as_serving, as_owner, world):
    for call in (
        "SELECT archive_rebuild_slice(%(garden)s, -9223372036854775808, 1000000)",
        "SELECT archive_rebuild_finish(%(garden)s)",
    ):
        assert refused(as_serving, world, call) == "LY005"
        # Held, and not being rebuilt.
        assert refused(as_serving, world, hold_both(world), call) == "LY005"
        # Being rebuilt, and not held.
        with no_trace(as_owner):
            as_owner.execute("ALTER TABLE archive_namespace DISABLE TRIGGER USER")
            as_owner.execute("UPDATE archive_namespace SET lexical_state = 'rebuilding'")
            assert refused(as_owner, world, call) == "LY005"
            shared = "SELECT set_config('lychd.hold', 'shared', true)"
            assert refused(as_owner, world, shared, call) == "LY005"
    assert refused(as_serving, world, "SELECT archive_note_postings()") == "42501"


DERIVED_NOW = (
    "SELECT p.namespace_id, p.lexeme, p.note_number, p.tf, p.length FROM archive_posting p ORDER BY 1, 2, 3",
    "SELECT namespace_id, notes, total_length FROM archive_corpus ORDER BY 1",
)


@pytest.mark.parametrize(
    "calls",
    [
        ["archive_rebuild_slice(%(garden)s, -1, 1)"],
        ["archive_rebuild_slice(%(garden)s, 9223372036854775807, 1)"],
        ["archive_rebuild_slice(%(garden)s, 2, -5)", "archive_rebuild_slice(%(garden)s, 0, 0)"],
        ["archive_rebuild_slice(%(garden)s, 0, 2147483647)"] * 2,
        ["archive_rebuild_finish(%(garden)s)", "archive_rebuild_slice(%(garden)s, 1, 1)"],
    ],
)
def test_whatever_a_rebuild_is_asked_it_writes_only_what_the_notes_say(as_serving, world, calls):
    """Called out of order, with odd numbers, twice: the derived rows end as they were."""
    with no_trace(as_serving):
        before = [as_serving.execute(question).fetchall() for question in DERIVED_NOW]
        assert all(before)
        hold(as_serving, world)
        as_serving.execute("SELECT set_config('lychd.lexical_rebuild', %(garden)s::text, true)", world.names)
        as_serving.execute(
            "UPDATE archive_namespace SET lexical_state = 'rebuilding', row_version = row_version + 1"
            " WHERE id = %(garden)s",
            world.names,
        )
        for call in calls:
            as_serving.execute(f"SELECT * FROM {call}".encode(), world.names)
        assert [as_serving.execute(question).fetchall() for question in DERIVED_NOW] == before


def test_a_table_of_the_callers_own_shadows_nothing_for_a_trigger(as_serving, world, temporary):
    """Temporary tables come first on a caller's path, and last on a function's."""
    error = tried(
        as_serving,
        world,
        "CREATE TEMPORARY TABLE archive_namespace (LIKE public.archive_namespace INCLUDING ALL)",
        "CREATE TEMPORARY TABLE archive_lifecycle_event (LIKE public.archive_lifecycle_event)",
        "INSERT INTO archive_namespace SELECT * FROM public.archive_namespace",
        hold_both(world),
        "INSERT INTO pg_temp.archive_lifecycle_event SELECT * FROM public.archive_lifecycle_event",
        trips.move("promoted", State.ARCHIVED),
    )
    # The hold of the shadow holds nothing that counts, and the row is taken at once; the missing event is missed.
    assert error
    assert (error.sqlstate, error.diag.message_primary) == ("LY003", "note_without_event")


def test_a_trigger_function_that_could_be_lent_is_found_before_anything_is_served(as_owner, world):
    role = sql.Identifier(settings.LYCHD_SERVING_ROLE)
    function = sql.SQL("FUNCTION public.archive_note_postings()")
    assert "lychd.E107" not in {message.id for message in roles.check_database(databases=["default"])}
    as_owner.execute(sql.SQL("GRANT EXECUTE ON {} TO {}").format(function, role))
    try:
        assert "lychd.E107" in {message.id for message in roles.check_database(databases=["default"])}
    finally:
        as_owner.execute(sql.SQL("REVOKE EXECUTE ON {} FROM {}").format(function, role))
