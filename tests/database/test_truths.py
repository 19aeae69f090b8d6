"""Every column of every table, out of the catalogue: a foreign value is refused by name, or the database's own stands.

A column that is added later has to be declared in tests/database/foreign.py: what writes it, or why any value may.
"""

import re
from typing import Any

import psycopg
import pytest
from psycopg import sql

from archive import canonical, limits, truths
from archive.requests import has_too_many_marks, is_blank
from tests.database import catalogue, foreign
from tests.database.foreign import COLUMNS, COPIES, Free, Made, Refused, Unwritten
from tests.database.world import hold, receipt_again, tried, write_again
from tests.semantic import foreign as derived

pytestmark = pytest.mark.django_db

OTHERS = re.compile("^(auth|django)_")


def kinds(column: foreign.Column) -> tuple[foreign.Kind, ...]:
    return column if isinstance(column, tuple) else (column,)


CELLS = [(table, column) for table, columns in COLUMNS.items() for column in columns]


def test_every_column_of_every_table_is_declared(as_owner):
    """What is Django's own is no truth of the archive: users, sessions, the log of the admin, the migrations."""
    ours = [name for name in catalogue.every_table(as_owner) if not OTHERS.match(name)]
    declared = {table: set(columns) for table, columns in {**COLUMNS, **derived.COLUMNS}.items()}
    assert declared == {table: set(catalogue.columns(as_owner, table)) for table in ours}
    every = [kind for columns in COLUMNS.values() for column in columns.values() for kind in kinds(column)]
    assert all(kind.why for kind in every if isinstance(kind, Free))


def test_what_every_copy_starts_from_is_taken(as_serving, world):
    """Otherwise a refusal below could be about anything."""
    for table in COPIES:
        if table != "lychd_binding_history":
            assert tried(as_serving, world, held(world), *acts(table, world, {})) is None, table


def held(world: Any) -> Any:
    return lambda connection: hold(connection, world, "garden", "meadow")


def acts(table: str, world: Any, changes: dict[str, Any]) -> list[Any]:
    """The rows of one act, with changes in that of a table: a note and the event of its birth go together."""
    together = ("archive_note", "archive_lifecycle_event")
    return [
        _written(one, world, changes if one == table else {}) for one in (together if table in together else (table,))
    ]


def _written(table: str, world: Any, changes: dict[str, Any]) -> Any:
    where, base = COPIES[table]

    def write(connection: "psycopg.Connection[Any]") -> None:
        whole = base
        if table == "archive_recall":
            whole = {**base, **receipt_again(connection, {**base, "id": world["fresh"]})}
        assert write_again(connection, table, where, world, {**whole, **changes}) == 1

    return write


@pytest.mark.parametrize(("table", "column"), CELLS)
def test_a_foreign_value_is_refused_by_name_or_has_no_effect(as_serving, world, table, column):
    for kind in kinds(COLUMNS[table][column]):
        if isinstance(kind, Refused):
            for value in kind.values:
                changes = {**(kind.beside or {}), column: value}
                refusal = tried(as_serving, world, held(world), *acts(table, world, changes))
                assert refusal, value
                names = {refusal.diag.message_primary, refusal.diag.constraint_name, ""}
                assert refusal.sqlstate == kind.sqlstate, (value, refusal)
                assert kind.rule in names, (value, refusal)
        elif isinstance(kind, Made):
            deeds = [*acts(table, world, {column: kind.value}), gone(table, column, kind.value)]
            assert tried(as_serving, world, held(world), *deeds) is None
        elif isinstance(kind, Unwritten):
            insert = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES (NULL)").format(
                sql.Identifier(table), sql.Identifier(column)
            )
            refusal = tried(as_serving, world, held(world), insert)
            assert refusal
            assert refusal.sqlstate == "42501"


def gone(table: str, column: str, value: Any) -> Any:
    def look(connection: "psycopg.Connection[Any]") -> None:
        found = sql.SQL("SELECT count(*) FROM {} WHERE {}::text = %s").format(
            sql.Identifier(table), sql.Identifier(column)
        )
        assert connection.execute(found, [str(value)]).fetchone() == (0,), (table, column)

    return look


@pytest.mark.parametrize(("sqlstate", "rule", "statements"), foreign.STEPS)
def test_a_step_says_nothing_false_of_itself(as_serving, world, sqlstate, rule, statements):
    refusal = tried(as_serving, world, held(world), *statements)
    assert refusal
    assert (refusal.sqlstate, refusal.diag.message_primary) == (sqlstate, rule)


def test_a_number_drawn_early_is_not_the_number_of_an_event(as_serving, world):
    """A default is taken before the hold; whoever drew it and waited would appear behind a follower's cursor."""

    def early(connection: "psycopg.Connection[Any]") -> None:
        ((drawn,),) = catalogue.ask(connection, "SELECT nextval('archive_lifecycle_event_id_seq')")
        note, event = acts("archive_lifecycle_event", world, {"id": drawn})
        note(connection)
        event(connection)
        told = "SELECT id FROM archive_lifecycle_event WHERE note_id = %s"
        ((given,),) = catalogue.ask(connection, told, world["fresh"])
        assert given > drawn

    assert tried(as_serving, world, held(world), early) is None


@pytest.mark.parametrize("number", [0x20, 0xA0, 0x200B, 0xE0020, 0x1D173])
def test_what_shows_nothing_is_blank_for_the_archive_too(number):
    assert is_blank(chr(number))


def test_the_lists_of_the_database_are_those_of_the_archive(as_owner):
    """What is blank for the database is so for every Python, and a run of marks is one for both."""
    for low, *high in (span.split("-") for span in limits.BLANKS.split(" ")):
        for point in range(int(low, 16), int((high or [low])[0], 16) + 1):
            assert is_blank(chr(point)), hex(point)
    run = truths._class(limits.MARKS)
    for span in limits.MARKS.split(" "):
        text = chr(int(span.split("-")[-1], 16)) * (limits.MARKS_IN_A_ROW_MAX + 1)
        assert has_too_many_marks(text)
        (found,) = as_owner.execute(
            f"SELECT %s::text ~ '[{run}]{{{limits.MARKS_IN_A_ROW_MAX + 1}}}'".encode(), [text]
        ).fetchone()
        assert found, span


def test_the_database_computes_what_python_does(as_serving, world):
    """Digests filled in are those of archive/canonical.py, whatever the words."""
    for text in ('Quotes " and \\ and \t and é.', "漢字かな交じり文 \U0001f339", "\u007f and \u2028 inside"):
        with as_serving.transaction(force_rollback=True):
            hold(as_serving, world, "garden", "meadow")
            left = dict.fromkeys(("text_digest", "char_count", "byte_count"))
            for act in acts("archive_note", world, {"text": text, **left}):
                act(as_serving)
            row = as_serving.execute(
                "SELECT text_digest, char_count, byte_count FROM archive_note WHERE id = %s", [world["fresh"]]
            ).fetchone()
        assert row == (canonical.text_digest(text), len(text), len(text.encode()))
