"""What the database says of itself: its tables, constraints, triggers and functions, read from the catalogue."""

from dataclasses import dataclass
from typing import Any

import psycopg

Rows = list[tuple[Any, ...]]

_OURS = (
    "c.relnamespace = 'public'::regnamespace"
    " AND (starts_with(c.relname, 'archive_') OR starts_with(c.relname, 'lychd_'))"
)


def ask(connection: "psycopg.Connection[Any]", question: str, *values: Any) -> Rows:
    return connection.execute(question.encode(), list(values) or None).fetchall()


def tables(connection: "psycopg.Connection[Any]") -> list[str]:
    """The tables of the archive and of its host."""
    return [
        name
        for (name,) in ask(
            connection, f"SELECT c.relname FROM pg_class c WHERE {_OURS} AND c.relkind IN ('r', 'p') ORDER BY 1"
        )
    ]


def every_table(connection: "psycopg.Connection[Any]") -> list[str]:
    """Every table of the schema, Django's own included."""
    return [
        name
        for (name,) in ask(
            connection,
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
            " ORDER BY 1",
        )
    ]


def columns(connection: "psycopg.Connection[Any]", table: str) -> dict[str, str]:
    """The columns of one table and their types."""
    return dict(
        ask(
            connection,
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            f"public.{table}",
        )
    )


def constraints(connection: "psycopg.Connection[Any]", kinds: str) -> list[tuple[str, str]]:
    """The constraints of some kinds (c, f, p, u, x): table and name."""
    return ask(
        connection,
        "SELECT c.relname, k.conname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid"
        f' WHERE {_OURS} AND k.contype = ANY (string_to_array(%s, NULL)::"char"[]) ORDER BY 1, 2',
        kinds,
    )


def lone_unique_indexes(connection: "psycopg.Connection[Any]") -> list[tuple[str, str]]:
    """The unique indexes that no constraint stands for, partial ones above all."""
    return ask(
        connection,
        "SELECT c.relname, x.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
        f" JOIN pg_class x ON x.oid = i.indexrelid WHERE {_OURS} AND i.indisunique"
        " AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))"
        " ORDER BY 1, 2",
    )


@dataclass(frozen=True, slots=True)
class ForeignKey:
    table: str
    name: str
    column: str
    type: str
    parent: str


def foreign_keys(connection: "psycopg.Connection[Any]") -> list[ForeignKey]:
    """Every foreign key; each is of one column."""
    rows = ask(
        connection,
        "SELECT c.relname, k.conname, a.attname, format_type(a.atttypid, NULL), p.relname, cardinality(k.conkey)"
        " FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class p ON p.oid = k.confrelid"
        " JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]"
        f" WHERE {_OURS} AND k.contype = 'f' ORDER BY 1, 2",
    )
    assert all(width == 1 for *_, width in rows)
    return [ForeignKey(*row[:-1]) for row in rows]


def required_columns(connection: "psycopg.Connection[Any]") -> list[tuple[str, str]]:
    """Every column that may not be null."""
    return ask(
        connection,
        "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        f" WHERE {_OURS} AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull ORDER BY 1, 2",
    )


@dataclass(frozen=True, slots=True)
class Trigger:
    table: str
    pgid: str
    rule: str
    """The name in the model: `nodelete` for `pgtrigger_nodelete_b33dd`."""


def triggers(connection: "psycopg.Connection[Any]", *, of_all: bool = False) -> list[Trigger]:
    """The triggers that this part wrote: on its own tables, and not those that a derived part hung there.

    A derived part begins their names with its own (`semantic_`), and its own tests try them.
    """
    found = ask(
        connection,
        "SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " WHERE NOT t.tgisinternal AND c.relnamespace = 'public'::regnamespace ORDER BY 1, 2",
    )
    rules = [Trigger(table, name, _rule(name)) for table, name in found]
    if of_all:
        return rules
    ours = set(tables(connection))
    return [one for one in rules if one.table in ours and not one.rule.startswith("semantic_")]


def _rule(name: str) -> str:
    return name.removeprefix("pgtrigger_").rsplit("_", 1)[0] if name.startswith("pgtrigger_") else name


@dataclass(frozen=True, slots=True)
class Function:
    signature: str
    name: str
    settings: tuple[str, ...]
    definer: bool
    returns: str
    public: bool
    """Whether everybody may call it."""


def functions(connection: "psycopg.Connection[Any]") -> list[Function]:
    """Every function of the schema that no extension brought."""
    rows = ask(
        connection,
        "SELECT p.oid::regprocedure::text, p.proname, coalesce(p.proconfig, '{}'), p.prosecdef,"
        " p.prorettype::regtype::text,"
        " EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee = 0)"
        " FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND NOT EXISTS ("
        "   SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e')"
        " ORDER BY 1",
    )
    return [Function(row[0], row[1], tuple(row[2]), *row[3:]) for row in rows]
