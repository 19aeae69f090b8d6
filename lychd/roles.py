"""What the serving role may do, applied after every migration and checked before anything is served."""

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql

from lychd import embedded

SCHEMA: Final = "public"
OWNER_ALIAS: Final = "owner"


@dataclass(frozen=True)
class Grant:
    """The privileges on every table whose name fits a pattern."""

    pattern: str
    privileges: tuple[str, ...]
    # Columns that only the database fills; INSERT is granted on each other one, and not on the table.
    unwritten: tuple[str, ...] = ()


# The first pattern that fits decides. DELETE and TRUNCATE are missing on purpose wherever truth lies.
GRANTS: Final = (
    # Kept by triggers alone, which run as the owner; MAINTAIN is for VACUUM, without which recall reads the heap.
    Grant("archive_posting", ("SELECT", "MAINTAIN")),
    Grant("archive_corpus", ("SELECT",)),
    # Written by a migration. Spaces that are sealed and retired come with a role of their own.
    Grant("archive_memory_space", ("SELECT",)),
    # A number that the caller chose could be one that another namespace's postings are about to bear.
    Grant("archive_note", ("SELECT", "UPDATE"), unwritten=("note_number",)),
    # Numbered by a rule of their own, under the hold.
    Grant("archive_lifecycle_event", ("SELECT", "INSERT", "UPDATE")),
    Grant("archive_flag", ("SELECT", "INSERT", "UPDATE")),
    *(
        Grant(table, ("SELECT", "UPDATE"), unwritten=("id",))
        for table in ("archive_namespace", "archive_source", "archive_intake_request")
    ),
    Grant("archive_*", ("SELECT", "INSERT", "UPDATE")),
    Grant("semantic_scan", ("SELECT", "MAINTAIN")),
    Grant("semantic_coverage", ("SELECT",)),
    Grant("semantic_*", ("SELECT", "INSERT", "UPDATE")),
    Grant("lychd_role", ("SELECT", "INSERT", "UPDATE")),
    Grant("lychd_*", ("SELECT", "UPDATE"), unwritten=("id",)),
    Grant("django_migrations", ("SELECT",)),
    Grant("*", ("SELECT", "INSERT", "UPDATE", "DELETE")),
)
SEQUENCE_PRIVILEGES: Final = ("SELECT", "USAGE")

# django-pgtrigger's triggers step aside for any role that sets `pgtrigger.ignore`; this answer never does.
IGNORE_FUNCTION: Final = "_pgtrigger_should_ignore"
IGNORE_BODY: Final = " BEGIN RETURN FALSE; END; "
# A function that looks names up on the caller's path can be shown another table; pg_temp last closes the usual way in.
SEARCH_PATH: Final = "search_path=pg_catalog, public, pg_temp"

# Nobody can forbid a login to change what its own next sessions begin with, a search_path say; it can be seen.
_LIMITS: Final = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout")
_OWN_SETTINGS: Final = """
SELECT DISTINCT split_part(setting, '=', 1)
FROM pg_catalog.pg_db_role_setting AS own
JOIN pg_catalog.pg_roles AS role ON role.oid = own.setrole
CROSS JOIN LATERAL unnest(own.setconfig) AS setting
WHERE role.rolname = %s AND own.setdatabase IN (
    0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
  AND split_part(setting, '=', 1) <> ALL (%s)
ORDER BY 1
"""

_LARGE_OBJECTS: Final = """
    SELECT p.oid::regprocedure::text FROM pg_catalog.pg_proc p CROSS JOIN pg_catalog.pg_roles r
    WHERE r.rolname = %s AND p.pronamespace = 'pg_catalog'::regnamespace
      AND p.proname IN ('lo_creat', 'lo_create', 'lo_from_bytea')
      AND pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE')
"""

_PINNED_FUNCTIONS: Final = """
    SELECT p.oid::regprocedure::text, coalesce(p.proconfig, '{}')
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = 'public' AND p.prokind = 'f'
      AND (p.prorettype = 'pg_catalog.trigger'::regtype OR p.proname LIKE 'archive\\_%%' OR p.proname = %s)
      AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_depend d
          WHERE d.objid = p.oid AND d.classid = 'pg_catalog.pg_proc'::regclass AND d.deptype = 'e')
    ORDER BY 1
"""


class OwnerNeverServes:
    """The owner's connection is there for migrations; no query of the application is routed to it."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        """Every read goes to the serving connection, unless a query says `using`."""
        return "default"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        """So does every write."""
        return "default"


def grant_on(table: str) -> Grant:
    """Return the line of the committed list that decides about one table."""
    return next(grant for grant in GRANTS if fnmatch.fnmatchcase(table, grant.pattern))


def privileges_on(table: str) -> tuple[str, ...]:
    """What the committed list gives the serving role on one table as a whole."""
    return grant_on(table).privileges


def after_migrate(sender: AppConfig, using: str = "default", **kwargs: Any) -> None:
    """Apply the grants and close the functions once, after the last application has migrated."""
    last = [config for config in apps.get_app_configs() if config.models_module is not None][-1]
    if sender.label == last.label and is_owner(connections[using]):
        with transaction.atomic(using=using):
            apply(connections[using])


def is_owner(connection: BaseDatabaseWrapper) -> bool:
    """Whether this connection owns the tables; only then can it give anything."""
    return bool(
        _rows(
            connection,
            "SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass('public.django_migrations')"
            " AND pg_catalog.pg_get_userbyid(relowner) = current_user",
        )
    )


def apply(connection: BaseDatabaseWrapper) -> None:
    """Make the grants and functions of this database what this module says; needs the owner of the tables."""
    role = settings.LYCHD_SERVING_ROLE
    if not _rows(connection, "SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = %s AND rolname <> current_user", role):
        raise ImproperlyConfigured(
            f"The database has no role {role} beside the one that migrates:"
            f" CREATE ROLE {role} LOGIN NOSUPERUSER, or name another in LYCHD_SERVING_ROLE."
        )
    for statement in [*_closing(connection), *_grants(connection, role)]:
        # One statement an execute: server-side binding sends each alone, and takes no parameters in DDL.
        with connection.cursor() as cursor:
            cursor.execute(statement)


def _closing(connection: BaseDatabaseWrapper) -> Iterable[sql.Composed]:
    yield sql.SQL(
        "CREATE OR REPLACE FUNCTION {}.{}(trigger_name NAME) RETURNS BOOLEAN AS {} LANGUAGE plpgsql"
        " SET search_path = pg_catalog, public, pg_temp"
    ).format(sql.Identifier(SCHEMA), sql.Identifier(IGNORE_FUNCTION), sql.Literal(IGNORE_BODY))
    for signature, configuration in _rows(connection, _PINNED_FUNCTIONS, IGNORE_FUNCTION):
        if SEARCH_PATH not in configuration:
            # The signature comes out of regprocedure, which quotes what needs quoting.
            yield sql.Composed(
                [
                    sql.SQL("ALTER FUNCTION "),
                    sql.SQL(signature),
                    sql.SQL(" SET search_path = pg_catalog, public, pg_temp"),
                ]
            )


def _grants(connection: BaseDatabaseWrapper, role: str) -> Iterable[sql.Composed]:
    schema, to = sql.Identifier(SCHEMA), sql.Identifier(role)
    public = sql.SQL("PUBLIC")
    if _rows(
        connection,
        "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s AND pg_has_role(current_user, nspowner, 'USAGE')",
        SCHEMA,
    ):
        yield sql.SQL("REVOKE CREATE ON SCHEMA {} FROM {}, {}").format(schema, public, to)
        yield sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, to)
    for (database,) in _rows(
        connection,
        "SELECT datname FROM pg_catalog.pg_database"
        " WHERE datname = current_database() AND pg_has_role(current_user, datdba, 'USAGE')",
    ):
        # The service makes no table, not even one of its own: a temporary one comes first on its path. And whoever may
        # connect may take the locks that every operation queues at.
        place = sql.Identifier(database)
        yield sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM {}, {}").format(place, public, to)
        yield sql.SQL("REVOKE CONNECT ON DATABASE {} FROM {}").format(place, public)
        yield sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(place, to)
    for table in _tables(connection):
        name = sql.Identifier(SCHEMA, table)
        yield sql.SQL("REVOKE ALL ON TABLE {} FROM {}, {}").format(name, public, to)
        given = sql.SQL(", ").join(map(sql.SQL, privileges_on(table)))
        yield sql.SQL("GRANT {} ON TABLE {} TO {}").format(given, name, to)
        if columns := _written_one_by_one(connection, table):
            listed = sql.SQL(", ").join(map(sql.Identifier, columns))
            yield sql.SQL("GRANT INSERT ({}) ON TABLE {} TO {}").format(listed, name, to)
    yield sql.SQL("REVOKE ALL ON ALL SEQUENCES IN SCHEMA {} FROM {}, {}").format(schema, public, to)
    yield sql.SQL("GRANT {} ON ALL SEQUENCES IN SCHEMA {} TO {}").format(
        sql.SQL(", ").join(map(sql.SQL, SEQUENCE_PRIVILEGES)), schema, to
    )
    for signature, fires in _rows(
        connection,
        "SELECT p.oid::regprocedure::text, p.prorettype = 'pg_catalog.trigger'::regtype FROM pg_catalog.pg_proc p"
        " JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace"
        " WHERE n.nspname = %s AND pg_catalog.pg_get_userbyid(p.proowner) = current_user AND p.prokind IN ('f', 'p')",
        SCHEMA,
    ):
        routine = sql.Composed([sql.SQL("ON ROUTINE "), sql.SQL(signature)])
        if fires:
            # A trigger fires without this privilege. With it, a role could hang the function on a table of its own,
            # and one that runs as the owner would then write whatever that table says.
            yield sql.SQL("REVOKE ALL {} FROM {}, {}").format(routine, public, to)
        else:
            yield sql.SQL("GRANT EXECUTE {} TO {}").format(routine, to)


def _tables(connection: BaseDatabaseWrapper) -> list[str]:
    return [
        name
        for (name,) in _rows(
            connection,
            "SELECT c.relname FROM pg_catalog.pg_class c"
            " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p', 'v', 'm') AND NOT EXISTS ("
            "   SELECT FROM pg_catalog.pg_depend d"
            "   WHERE d.objid = c.oid AND d.classid = 'pg_catalog.pg_class'::regclass AND d.deptype = 'e')"
            " ORDER BY 1",
        )
    ]


def _written_one_by_one(connection: BaseDatabaseWrapper, table: str) -> list[str]:
    """The columns of a table on which INSERT is granted one by one; none where the whole table has it."""
    unwritten = grant_on(table).unwritten
    if not unwritten:
        return []
    return [
        name
        for (name,) in _rows(
            connection,
            "SELECT a.attname FROM pg_catalog.pg_attribute a"
            " WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped"
            " AND a.attname <> ALL (%s::text[])"
            " ORDER BY a.attnum",
            f"{SCHEMA}.{table}",
            list(unwritten),
        )
    ]


def _rows(connection: BaseDatabaseWrapper, question: str, *values: str | list[str]) -> Sequence[Any]:
    with connection.cursor() as cursor:
        cursor.execute(question, list(values) or None)
        return list(cursor.fetchall())


# Checks, run where a database is named: `check --database default`, before anything serves


def register_checks() -> None:
    """Register the check under the tag that runs only where databases are named."""
    checks.register(check_database, Tags.database)
    checks.register(check_looked, Tags.security, deploy=True)


def check_looked(
    app_configs: Sequence[AppConfig] | None = None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Say of a look at a deployment that it left the database out, so that its silence is not taken for praise."""
    if DEFAULT_DB_ALIAS in (databases or ()):
        return []
    return [
        checks.Info(
            "The database was not looked at: neither roles, grants and functions, nor what its log would quote.",
            hint="Run `lychd check --deploy --database default`.",
            id="lychd.I101",
        )
    ]


def check_database(
    app_configs: Sequence[AppConfig] | None = None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Refuse to serve from a database whose fences are not all up."""
    # Not on the owner's connection: a migration is how most of this is mended.
    return [
        message
        for alias in databases or ()
        if alias != OWNER_ALIAS and connections[alias].vendor == "postgresql"
        for message in _messages(connections[alias])
    ]


def _messages(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    if not _rows(connection, "SELECT 1 WHERE to_regclass('public.django_migrations') IS NOT NULL"):
        return
    yield from _role_messages(connection)
    yield from _function_messages(connection)
    if _rows(
        connection,
        "SELECT 1 FROM pg_catalog.pg_database WHERE datname = current_database() AND datctype IN ('C', 'POSIX')",
    ):
        yield Error(
            "The database has LC_CTYPE C or POSIX, under which every character outside ASCII counts as a letter.",
            hint="Make the database with a UTF-8 locale such as C.UTF-8.",
            id="lychd.E105",
        )
    strays = differences(connection, settings.LYCHD_SERVING_ROLE)
    if strays:
        yield Error(
            f"The serving role's privileges differ from the committed list: {'; '.join(strays[:5])}.",
            hint="Run the migrations as the owner; they apply the list.",
            id="lychd.E106",
        )
    if _rows(
        connection,
        "SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = %s"
        " AND pg_catalog.has_database_privilege(oid, current_database(), 'TEMPORARY')",
        settings.LYCHD_SERVING_ROLE,
    ):
        yield checks.Warning(
            "The serving role may make temporary tables, which it never needs.",
            hint="As the owner of the database: REVOKE TEMPORARY ON DATABASE … FROM PUBLIC.",
            id="lychd.W102",
        )
    if _rows(
        connection,
        "SELECT 1 FROM pg_catalog.pg_database CROSS JOIN LATERAL"
        " pg_catalog.aclexplode(coalesce(datacl, pg_catalog.acldefault('d', datdba))) AS given"
        " WHERE datname = current_database() AND given.grantee = 0 AND given.privilege_type = 'CONNECT'",
    ):
        yield checks.Warning(
            "Any role of the server may connect to this database, and could take the locks that operations wait for.",
            hint="As the owner of the database: REVOKE CONNECT ON DATABASE … FROM PUBLIC.",
            id="lychd.W104",
        )
    makers = _rows(connection, _LARGE_OBJECTS, settings.LYCHD_SERVING_ROLE)
    if makers:
        yield checks.Warning(
            "The serving role may make large objects, which nothing of the archive would ever clear.",
            hint=f"As a superuser, in this database: {embedded.NO_LARGE_OBJECTS}",
            id="lychd.W105",
        )
    own = _rows(connection, _OWN_SETTINGS, settings.LYCHD_SERVING_ROLE, list(_LIMITS))
    if own:
        yield checks.Warning(
            f"Sessions of the serving role begin with settings of its own: {', '.join(name for (name,) in own)}.",
            hint=f"It may set them itself. As a superuser: ALTER ROLE {settings.LYCHD_SERVING_ROLE} RESET …, each.",
            id="lychd.W103",
        )
    yield from _log_messages(connection)


def _role_messages(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    hint = "Serve as LYCHD_SERVING_ROLE and keep the owner's login for migrations."
    if _rows(
        connection,
        "SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)",
    ):
        yield Error(
            "The service is logged in as a superuser, whom no trigger or grant binds.", hint=hint, id="lychd.E101"
        )
    elif _rows(
        connection,
        "SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass('public.django_migrations')"
        " AND pg_catalog.pg_has_role(current_user, relowner, 'MEMBER')",
    ):
        yield Error("The service is logged in as the owner of its tables.", hint=hint, id="lychd.E102")


def _function_messages(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    hint = "Run the migrations as the owner; they put it back."
    bodies = _rows(
        connection,
        "SELECT p.prosrc FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace"
        " WHERE n.nspname = %s AND p.proname = %s",
        SCHEMA,
        IGNORE_FUNCTION,
    )
    if [body for (body,) in bodies] != [IGNORE_BODY]:
        yield Error("Triggers could be switched off by the setting pgtrigger.ignore.", hint=hint, id="lychd.E103")
    loose = [
        signature
        for signature, configuration in _rows(connection, _PINNED_FUNCTIONS, IGNORE_FUNCTION)
        if SEARCH_PATH not in configuration
    ]
    if loose:
        yield Error(f"Functions without a pinned search_path: {', '.join(loose)}.", hint=hint, id="lychd.E104")
    lendable = _lendable(connection)
    if lendable:
        yield Error(
            f"Trigger functions with the owner's rights that the service could misuse: {', '.join(lendable)}.",
            hint=hint,
            id="lychd.E107",
        )


def _lendable(connection: BaseDatabaseWrapper) -> list[str]:
    """The trigger functions that run as their owner and that the serving role could hang on a table of its own."""
    return [
        signature
        for (signature,) in _rows(
            connection,
            "SELECT p.oid::regprocedure::text FROM pg_catalog.pg_proc p"
            " JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace JOIN pg_catalog.pg_roles r ON r.rolname = %s"
            " WHERE n.nspname = %s AND p.prosecdef AND p.prorettype = 'pg_catalog.trigger'::regtype"
            " AND pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE') ORDER BY 1",
            settings.LYCHD_SERVING_ROLE,
            SCHEMA,
        )
    ]


def _log_messages(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    wanted = {
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
        "log_error_verbosity": "terse",
        "log_min_duration_statement": "-1",
    }
    found = dict(
        _rows(
            connection,
            "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY(%s::text[])",
            list(wanted),
        )
    )
    loud = [f"{name} = {value}" for name, value in wanted.items() if found.get(name) != value]
    if loud:
        yield checks.Warning(
            "The server's log could quote parameters or rows.",
            hint=f"Set in PostgreSQL: {', '.join(loud)}.",
            id="lychd.W101",
        )


def differences(connection: BaseDatabaseWrapper, role: str) -> list[str]:
    """Where the privileges that a role really has on tables and columns differ from the committed list, in words."""
    held: dict[str, set[str]] = {table: set() for table in _tables(connection)}
    wanted = {
        table: {*privileges_on(table), *(f"INSERT ({name})" for name in _written_one_by_one(connection, table))}
        for table in held
    }
    for table, privilege in _rows(
        connection,
        "WITH granted AS ("
        "   SELECT c.oid, NULL::name AS attribute, c.relacl AS acl FROM pg_catalog.pg_class c"
        "   UNION ALL SELECT a.attrelid, a.attname, a.attacl FROM pg_catalog.pg_attribute a WHERE NOT a.attisdropped)"
        " SELECT c.relname, a.privilege_type || coalesce(' (' || g.attribute || ')', '') FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN granted g ON g.oid = c.oid"
        " CROSS JOIN LATERAL pg_catalog.aclexplode(g.acl) a"
        " WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p', 'v', 'm')"
        " AND (a.grantee = 0 OR a.grantee = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = %s))",
        role,
    ):
        if table in held:
            held[table].add(privilege)
    return [
        f"{table} has {', '.join(sorted(privileges)) or 'nothing'} and should have {', '.join(sorted(wanted[table]))}"
        for table, privileges in held.items()
        if privileges != wanted[table]
    ]
