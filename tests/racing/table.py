"""What was explored, one line a meeting, at the end of a run; the processes of a parallel run bring theirs back."""

from typing import Any, Final

PROPERTY: Final = "explored"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the lines that the tests told, in their order."""
    lines = [
        line
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, line in report.user_properties
        if name == PROPERTY
    ]
    if lines:
        terminalreporter.section("schedules explored")
        for line in lines:
            terminalreporter.line(line)
