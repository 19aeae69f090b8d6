"""A pytest plugin that plants one fault after the other and runs, for each, the tests that have to notice.

One process, one database: a fault is in while its tests run and out before the next one. Before the first and after the
last, every named test has to be green, so that red means the fault and nothing is left of any.
"""

import json
import os
from collections.abc import Generator, Sequence
from typing import Any, Final

import pytest

from tests.faults.planting import Unplantable

NAMES: Final = "FAULTS"
REPORT: Final = "FAULTS_REPORT"
SHARD: Final = "FAULTS_SHARD"

# A fault that only makes the code stumble over a name proves nothing.
_STUMBLES: Final = (NameError, ImportError, SyntaxError, Unplantable)


def pytest_configure(config: pytest.Config) -> None:
    """Take a database of this process's own, and count its leases for itself."""
    from django.conf import settings
    from django.db import connections

    connections["default"].settings_dict["TEST"]["NAME"] = f"test_lychd_faults_{os.environ[SHARD]}"
    settings.LYCHD_EMBEDDING_LOCK = settings.LYCHD_STATE_DIR / f"embedding-faults-{os.environ[SHARD]}.lock"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Remember what a failing test raised."""
    report = yield
    if call.excinfo is not None:
        report.raised = call.excinfo
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run the faults in place of the tests."""
    if session.testsfailed:
        raise session.Interrupted(f"{session.testsfailed} errors while collecting")
    _Round(session).all()
    return True


class _Nothing:
    """Stands for the next test after each, so that everything smaller than the session is torn down."""

    def __init__(self, session: pytest.Session) -> None:
        self.listchain = lambda: [session]


class _Round:
    def __init__(self, session: pytest.Session) -> None:
        from tests.faults.registry import FAULTS

        wanted = json.loads(os.environ[NAMES])
        self.session = session
        self.items = {item.nodeid: item for item in session.items}
        self.nothing: Any = _Nothing(session)
        self.faults = [fault for fault in FAULTS if fault.name in wanted]
        self.pipe = int(os.environ[REPORT])

    def all(self) -> None:
        named = {item.nodeid: item for fault in self.faults for item in self._named(fault.tests)}
        if not self._green(named.values(), "before any fault"):
            return
        for fault in self.faults:
            verdict, why = self._verdict(fault)
            self._tell(fault=fault.name, verdict=verdict, why=why)
        self._green(named.values(), "after all faults")

    def _named(self, tests: Sequence[str]) -> list[pytest.Item]:
        found: list[pytest.Item] = []
        for test in tests:
            if test.endswith("*"):
                found += [item for name, item in self.items.items() if name.startswith(test[:-1])]
            elif test in self.items:
                found.append(self.items[test])
        return found

    def _verdict(self, fault: Any) -> tuple[str, str]:
        missing = [test for test in fault.tests if not self._named([test])]
        if missing:
            return "missed", f"there is no test {missing[0]}"
        try:
            with fault.planting.planted():
                return self._noticed(self._named(fault.tests))
        except Unplantable as reason:
            return "missed", f"cannot be planted: {reason}"

    def _noticed(self, items: Sequence[pytest.Item]) -> tuple[str, str]:
        try:
            for item in items:
                for report in self._run(item):
                    if not report.failed:
                        continue
                    raised = getattr(report, "raised", None)
                    if raised is not None and isinstance(raised.value, _STUMBLES):
                        return "missed", f"{item.nodeid} only stumbled: {raised.exconly()}"
                    where = "" if report.when == "call" else f" in its {report.when}"
                    return "found", f"{item.nodeid}{where}: {_spoken(report)}"
        finally:
            self.session._setupstate.teardown_exact(self.nothing)
        return "missed", f"{len(items)} tests stayed green"

    def _green(self, items: Any, when: str) -> bool:
        ordered = list(items)
        red = []
        for place, item in enumerate(ordered):
            following = ordered[place + 1] if place + 1 < len(ordered) else self.nothing
            red += [f"{item.nodeid}: {_spoken(report)}" for report in self._run(item, following) if report.failed]
        if red:
            self._tell(fault=f"no fault, {when}", verdict="red", why="; ".join(red))
        return not red

    def _run(self, item: pytest.Item, following: pytest.Item | None = None) -> list[pytest.TestReport]:
        from _pytest.runner import runtestprotocol

        return runtestprotocol(item, log=False, nextitem=following or self.nothing)

    def _tell(self, **line: str) -> None:
        os.write(self.pipe, (json.dumps(line) + "\n").encode())


def _spoken(report: Any) -> str:
    """The first line of what a failing test raised."""
    raised = getattr(report, "raised", None)
    return "" if raised is None else raised.exconly().splitlines()[0][:160]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tear down what the session holds: the database too."""
    session._setupstate.teardown_exact(None)
