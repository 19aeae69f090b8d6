"""Words know nothing of meaning: the tests of the archive pass unchanged however derivation and semantic are switched.

With both off they run in every suite; here they run again, as a suite of its own, with derivation alone (R-L-200,
R-L-216).
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lychd import embedded
from lychd.environment import CHECKOUT
from tests.commands.conftest import environment

TESTS = ("tests/lexical", "tests/scenarios", "tests/operations")
DERIVATION = {
    "LYCHD_DERIVATION_GENERATION": "notes-1",
    "LYCHD_DERIVATION_EMBEDDER": "stand-in",
    "LYCHD_TEST_EMBEDDER": "true",
}
BOTH = {**DERIVATION, "LYCHD_SEMANTIC": "true"}


@pytest.mark.slow
@pytest.mark.longest
def test_the_tests_of_the_archive_pass_unchanged_with_derivation_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "1", *TESTS],
            env={**environment(state), **DERIVATION, "LYCHD_TEST_STATE_DIR": str(state)},
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        if (state / "test").exists():
            embedded.remove(state / "test")

    assert ran.returncode == 0, ran.stdout[-4000:]
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed
    assert int(passed[1]) > 900


def test_the_switches_reach_the_settings_of_a_suite(tmp_path: Path) -> None:
    """Else the run above would be the one of every day."""
    asked = (
        "from django.conf import settings as s; print(bool(s.LYCHD_ARCHIVE['derivation']), s.LYCHD_ARCHIVE['semantic'])"
    )
    for switched, told in (({}, "False False"), (DERIVATION, "True False"), (BOTH, "True True")):
        ran = subprocess.run(
            [sys.executable, "-c", asked],
            env={**environment(tmp_path), **switched, "DJANGO_SETTINGS_MODULE": "lychd.settings_test"},
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.strip() == told
