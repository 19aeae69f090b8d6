"""`python -m tests.browser.screenshots FOLDER`: every page, light and dark, wide and on a phone, as pictures."""

import os
import sys
from pathlib import Path

import pytest


def main(arguments: list[str]) -> int:
    """Take the pictures through the suite's own server, so that they show what is tested."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tests.browser.screenshots FOLDER\n")
        return 64
    folder = Path(arguments[0]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["SCREENSHOTS"] = str(folder)
    taken = [str(Path(__file__).with_name(name)) for name in ("test_pages.py", "test_back_office.py")]
    return int(pytest.main(["-q", "-m", "browser", *taken, "-k", "screenshots or test_back_office"]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
