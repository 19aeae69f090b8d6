"""`python -m tests.browser.screenshots FOLDER`: every page, light and dark, wide and on a phone, as pictures."""

import os
import sys
from pathlib import Path

import pytest

TAKEN = ("screenshots", "test_back_office", "fault_of_the_archive", "wrong_passwords", "description", "answer_a_form")
"""The tests that come by a page of which a picture is taken."""


def main(arguments: list[str]) -> int:
    """Take the pictures through the suite's own server, so that they show what is tested."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tests.browser.screenshots FOLDER\n")
        return 64
    folder = Path(arguments[0]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["SCREENSHOTS"] = str(folder)
    here = Path(__file__).parent
    return int(pytest.main(["-q", "-m", "browser", str(here), "-k", " or ".join(TAKEN)]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
