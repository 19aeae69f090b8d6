"""Every column of what is derived: a foreign value is refused by name, or the database's own stands."""

import pytest
from psycopg import sql

from tests.semantic import foreign
from tests.semantic.foreign import COLUMNS, Tried
from tests.semantic.test_fences import as_serving, born, held, registered, tried, world  # noqa: F401

pytestmark = pytest.mark.django_db

CELLS = [(table, column) for table, columns in COLUMNS.items() for column in columns]


def test_what_every_statement_starts_from_is_taken(as_serving, world):  # noqa: F811
    for statement in (born(), registered(), foreign.done()):
        assert tried(as_serving, world, statement) is None


@pytest.mark.parametrize(("table", "column"), CELLS)
def test_a_foreign_value_is_refused_by_name_or_has_no_effect(as_serving, world, table, column):  # noqa: F811
    for cell in COLUMNS[table][column]:
        if isinstance(cell, Tried):
            refusal = tried(as_serving, world, cell.statement)
            assert refusal, cell
            assert refusal.sqlstate == cell.sqlstate, (cell, refusal)
            names = {refusal.diag.message_primary, refusal.diag.constraint_name}
            assert not cell.rule or cell.rule in names, (cell, refusal)
            continue
        count = sql.SQL("SELECT count(*) FROM {} WHERE {}::text = {}").format(
            sql.Identifier(table), sql.Identifier(column), sql.Literal(cell.value)
        )
        with held(as_serving, world):
            assert as_serving.execute(cell.statement.encode(), world).rowcount == 1
            assert as_serving.execute(count).fetchone() == (0,)
