"""Every row of the table of outages is met by a test that reads it."""

from pathlib import Path

import pytest

from tests.outages import table


@pytest.mark.parametrize("happened", table.rows())
def test_a_test_meets_every_row(happened):
    sources = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.parent.rglob("test_*.py"))
    assert f'"{happened}"' in sources


def test_the_table_is_not_empty():
    assert len(table.rows()) >= 7
    assert all(table.sentences(happened, "log") or table.sentences(happened, "doctor") for happened in table.rows())
