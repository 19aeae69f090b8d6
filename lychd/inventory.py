"""What the tables of this release consist of, and where a database differs from that.

`inventory.json` beside this module is the list, one object a line; `make inventory` writes it out of a database that
the migrations have just made. It names no role (but owner, service, PUBLIC), no server version and nothing that
PostgreSQL 17 and 18 print differently, so one list is right for every installation. Tables and functions of others in
the same schema are not looked at; whatever hangs on a table of ours is.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import connections, transaction
from django.db.migrations.loader import MigrationLoader

FILE: Final = Path(__file__).with_name("inventory.json")

Attributes = dict[str, Any]
Inventory = dict[str, dict[str, Attributes]]

# Words whose cut says whether this server and these functions make of a text what the release's own tests saw: the text
# of the fingerprint, parts of names, and a run that is longer than a word.
PROBE: Final = (
    f"{import_module('archive.migrations.0002_lexical').PROBE} Session.execute lib/engine.py 3.14 2024/05 {'1a@' * 100}"
)

_OURS: Final = "'^(archive|semantic|lychd|auth|django)_'"
_OWNER: Final = "(SELECT relowner FROM pg_class WHERE oid = to_regclass('public.django_migrations'))"
_TABLES: Final = (
    f"c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') AND c.relname ~ {_OURS}"
)


def _grants(acl: str) -> str:
    """Who may do what, by the part that a role has in the installation."""
    return f"""(
        SELECT jsonb_object_agg(held.who, held.what) FROM (
            SELECT each.who, string_agg(each.what, ' ' ORDER BY each.what COLLATE "C") AS what FROM (
                SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' WHEN a.grantee = {_OWNER} THEN 'owner'
                            WHEN a.grantee = (SELECT oid FROM pg_roles WHERE rolname = %(role)s) THEN 'service'
                       END AS who,
                       a.privilege_type || CASE WHEN a.is_grantable THEN ' (grantable)' ELSE '' END AS what
                FROM aclexplode({acl}) AS a) AS each
            WHERE each.who IS NOT NULL GROUP BY each.who) AS held)"""


def _kept_by(owner: str) -> str:
    return f"CASE WHEN {owner} = {_OWNER} THEN 'owner' ELSE 'another role' END"


_QUESTIONS: Final[Mapping[str, str]] = {
    "extension": "SELECT extname, '{}'::jsonb FROM pg_extension WHERE extname IN ('vector', 'pg_trgm')",
    # By what may be done and not by who gave it: the schema belongs to whoever made the database.
    "schema": """
        SELECT n.nspname, (
            SELECT jsonb_build_object('service uses it', has_schema_privilege(r.oid, n.oid, 'USAGE'),
                                      'service makes tables in it', has_schema_privilege(r.oid, n.oid, 'CREATE'))
            FROM pg_roles r WHERE r.rolname = %(role)s)
        FROM pg_namespace n WHERE n.nspname = 'public'""",
    "table": f"""
        SELECT c.relname, jsonb_build_object(
            'kind', c.relkind, 'persistence', c.relpersistence,
            'row security', c.relrowsecurity OR c.relforcerowsecurity,
            'options', (SELECT array_agg(o ORDER BY o) FROM unnest(c.reloptions) o),
            'owner', {_kept_by("c.relowner")},
            'grants', {_grants("coalesce(c.relacl, acldefault('r', c.relowner))")})
        FROM pg_class c WHERE {_TABLES}""",
    "column": f"""
        SELECT c.relname || '.' || a.attname, jsonb_build_object(
            'type', format_type(a.atttypid, a.atttypmod), 'not null', a.attnotnull,
            'default', pg_get_expr(d.adbin, d.adrelid), 'identity', nullif(a.attidentity::text, ''),
            'generated', nullif(a.attgenerated::text, ''), 'storage', a.attstorage,
            'compression', nullif(a.attcompression::text, ''), 'statistics', nullif(a.attstattarget, -1),
            'collation', nullif(nullif(a.attcollation, 0)::regcollation::text, '"default"'),
            'grants', {_grants("a.attacl")})
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE {_TABLES} AND a.attnum > 0 AND NOT a.attisdropped""",
    # Of a foreign key that triggers keep, those triggers may be off as well. NOT NULL is said of the column.
    "constraint": f"""
        SELECT c.relname || '.' || k.conname, jsonb_build_object(
            'definition', pg_get_constraintdef(k.oid),
            'kept', (SELECT bool_and(t.tgenabled IN ('O', 'A')) FROM pg_trigger t WHERE t.tgconstraint = k.oid))
        FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE {_TABLES} AND k.contype NOT IN ('n', 't')""",
    "index": f"""
        SELECT i.relname, jsonb_build_object(
            'definition', pg_get_indexdef(i.oid), 'valid', x.indisvalid AND x.indisready)
        FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid
        WHERE {_TABLES}""",
    "trigger": f"""
        SELECT c.relname || '.' || t.tgname, jsonb_build_object(
            'definition', pg_get_triggerdef(t.oid), 'on', t.tgenabled IN ('O', 'A'))
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE {_TABLES} AND NOT t.tgisinternal""",
    "policy": f"""
        SELECT c.relname || '.' || p.polname, '{{}}'::jsonb FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE {_TABLES}""",
    "rule": f"""
        SELECT c.relname || '.' || r.rulename, '{{}}'::jsonb FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
        WHERE {_TABLES} AND c.relkind IN ('r', 'p')""",
    "sequence": f"""
        SELECT c.relname, jsonb_build_object(
            'type', s.seqtypid::regtype, 'start', s.seqstart, 'step', s.seqincrement, 'least', s.seqmin,
            'most', s.seqmax, 'cache', s.seqcache, 'cycles', s.seqcycle, 'owner', {_kept_by("c.relowner")},
            'grants', {_grants("coalesce(c.relacl, acldefault('s', c.relowner))")})
        FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relname ~ {_OURS}""",
    "function": f"""
        SELECT p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', jsonb_build_object(
            'text', encode(sha256(convert_to(p.prosrc, 'UTF8')), 'hex'), 'returns', pg_get_function_result(p.oid),
            'language', l.lanname, 'definer', p.prosecdef, 'volatility', p.provolatile, 'strict', p.proisstrict,
            'parallel', p.proparallel, 'rows', p.prorows,
            'settings', (SELECT array_agg(o ORDER BY o) FROM unnest(p.proconfig) o),
            'owner', {_kept_by("p.proowner")},
            'grants', {_grants("coalesce(p.proacl, acldefault('f', p.proowner))")})
        FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
        WHERE p.pronamespace = 'public'::regnamespace AND p.proname ~ '^(archive|semantic|lychd|pgtrigger|_pgtrigger)_'
          AND NOT EXISTS (SELECT FROM pg_depend d
                          WHERE d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e')""",
}  # fmt: skip

_WORDS: Final = """
    SELECT c.cfgname, jsonb_build_object('cut', (
        SELECT encode(sha256(convert_to(
            string_agg(w.lexeme || ':' || w.tf, ' ' ORDER BY w.lexeme COLLATE "C"), 'UTF8')), 'hex')
        FROM public.archive_lexemes(c.oid::regconfig, %(probe)s::text, true) AS w))
    FROM pg_ts_config c WHERE c.cfgnamespace = 'pg_catalog'::regnamespace
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One object that is not as the release has it; `grave` unless all it can cost is time or space."""

    kind: str
    name: str
    what: str
    fix: str
    grave: bool = True

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.what}"


def read(alias: str) -> Inventory:
    """Read what a connection's database consists of."""
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        return ask(cursor)


def ask(cursor: Any) -> Inventory:
    """Ask all questions in the transaction of a cursor."""
    # With nothing of public on the path every name is printed whole, whoever asks.
    cursor.execute("SET LOCAL search_path = pg_catalog")
    found = {}
    for kind, question in _QUESTIONS.items():
        cursor.execute(question, {"role": settings.LYCHD_SERVING_ROLE} if "%(role)s" in question else None)
        found[kind] = {name: _whole(attributes) for name, attributes in cursor.fetchall()}
    return found


def words(alias: str) -> dict[str, Attributes]:
    """Digest how a connection's server cuts the words of the probe, under each text configuration it brings along."""
    with connections[alias].cursor() as cursor:
        cursor.execute(_WORDS, {"probe": PROBE})
        return {name: _whole(attributes) for name, attributes in cursor.fetchall()}


def _whole(attributes: Any) -> Attributes:
    given = json.loads(attributes) if isinstance(attributes, str) else attributes
    return {name: value for name, value in sorted((given or {}).items()) if value is not None and value is not False}


@cache
def released() -> Mapping[str, Mapping[str, Attributes]]:
    """What this release carries."""
    listed: Inventory = json.loads(FILE.read_text(encoding="utf-8"))
    return listed


def differences(alias: str) -> list[Difference]:
    """Name everything in a connection's database that is not as this release has it."""
    return compare(read(alias))


def compare(found: Inventory) -> list[Difference]:
    """Name everything that is missing, other, or there although the release has no such thing."""
    return [one for kind in _QUESTIONS for one in _compared(kind, found[kind], released()[kind])]


def _compared(kind: str, found: Mapping[str, Attributes], expected: Mapping[str, Attributes]) -> Iterator[Difference]:
    for name in sorted({*found, *expected}):
        if name not in found:
            yield Difference(kind, name, "is missing", _origin(kind, name))
        elif name not in expected:
            yield _stranger(kind, name, found[name])
        elif found[name] != expected[name]:
            yield _other(kind, name, found[name], expected[name])


def _stranger(kind: str, name: str, attributes: Attributes) -> Difference:
    # An index that keeps nothing unique costs room and answers nothing otherwise.
    harmless = kind == "index" and "UNIQUE" not in str(attributes.get("definition"))
    fix = "As the owner: drop it, unless a newer release made it."
    return Difference(kind, name, "is not of this release", fix, grave=not harmless)


_LONG: Final = ("text", "definition")


def _other(kind: str, name: str, found: Attributes, expected: Attributes) -> Difference:
    moved = [key for key in sorted({*found, *expected}) if found.get(key) != expected.get(key)]
    parts = [
        f"has another {key}" if key in _LONG else f"has {key} {found.get(key)}, not {expected.get(key)}"
        for key in moved
    ]
    table, _, part = name.partition(".")
    if moved == ["grants"]:
        fix = "Run `lychd migrate`; it applies the grants."
    elif moved == ["on"]:
        fix = f"As the owner: ALTER TABLE {table} ENABLE TRIGGER {part}."
    elif moved == ["kept"]:
        fix = f"As a superuser: ALTER TABLE {table} ENABLE TRIGGER ALL, and the same for the table that it names."
    else:
        fix = _origin(kind, name)
    return Difference(kind, name, "; ".join(parts), fix)


def _origin(kind: str, name: str) -> str:
    """Where the statement stands that makes an object: the last migration of ours that names it."""
    if kind == "extension":
        return f"As a superuser: CREATE EXTENSION {name}."
    table, _, part = name.partition("(")[0].rpartition(".")
    patterns = {
        "trigger": (rf"CREATE TRIGGER {part}\b|pgid='{part}'",),
        "function": (rf"FUNCTION (public\.)?{part}\(|pgid='{part}'",),
        "column": (rf"\b{table}\b", rf"\b{part}\b"),
    }.get(kind, (rf"\b{part}\b",))
    graph = MigrationLoader(None, ignore_no_migrations=True).graph
    for key in reversed(dict.fromkeys(key for leaf in graph.leaf_nodes() for key in graph.forwards_plan(leaf))):
        for operation in graph.nodes[key].operations:
            if all(re.search(pattern, repr(vars(operation))) for pattern in patterns):
                return f"As the owner: run the statement for it out of `lychd sqlmigrate {key[0]} {key[1]}`."
    return "As the owner: change it back; see Upgrades in docs/operations.md."


def as_text(listed: Mapping[str, Mapping[str, Attributes]]) -> str:
    """Write an inventory with one object a line, so that two changes of it meet in one line only."""
    kinds = []
    for kind in sorted(listed):
        lines = [
            f"  {json.dumps(name)}: {json.dumps(attributes, sort_keys=True)}"
            for name, attributes in sorted(listed[kind].items())
        ]
        kinds.append(f'"{kind}": {{\n' + ",\n".join(lines) + "\n}" if lines else f'"{kind}": {{}}')
    return "{\n" + ",\n".join(kinds) + "\n}\n"


def main() -> None:
    """Write the inventory of a database that the migrations have just made."""
    import django

    django.setup()
    from lychd import scratch

    with scratch.database("inventory"):
        FILE.write_text(as_text({**read("owner"), "words": words("owner")}), encoding="utf-8")


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lychd.settings")
    main()
