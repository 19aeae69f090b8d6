"""What the served suite takes for a fault in a log, and that it leaves no command out; neither needs a process."""

import pytest

from lychd.commands.entries import ENTRIES
from lychd.commands.grammar import BORROWED
from tests.served.house import CANARY, is_fault
from tests.served.lines import FRAMEWORKS, GOING_ON, USES


def test_every_command_is_used() -> None:
    assert {entry.line for entry in ENTRIES} == USES.keys() | GOING_ON
    assert BORROWED.keys() == FRAMEWORKS.keys()


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "A fault of the archive", "level": "error", "code": "internal"}',
        '{"level": "critical", "event": "gone"}',
        f'{{"level": "info", "event": "recall", "query": "{CANARY} roses"}}',
        f"the text of a note, {CANARY.lower()} planting",
        "Traceback (most recent call last):",
        '2026-12-01 10:00:00.000 UTC [7] ERROR:  relation "archive_note" does not exist',
        "[2026-12-01 10:00:00,000: ERROR/MainProcess] consumer: Cannot connect",
    ],
)
def test_a_line_that_tells_of_a_fault_or_quotes_a_note_is_found(line: str) -> None:
    assert is_fault(line)


@pytest.mark.parametrize(
    "line",
    [
        '{"level": "warning", "event": "refused", "code": "authority_refused"}',
        "2026-12-01 10:00:00.000 UTC [7] LOG:  database system is ready to accept connections",
        "2026-12-01 10:00:00.000 UTC [7] FATAL:  terminating connection due to administrator command",
    ],
)
def test_what_every_log_has_is_none(line: str) -> None:
    assert not is_fault(line)
