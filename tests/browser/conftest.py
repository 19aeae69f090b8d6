"""A real browser: Debian's chromium, or the one that CHROMIUM names. `pytest -m browser tests/browser` asks for it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import shelf

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The browser's own loop runs in this thread, and Django would take it for one of ours.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "browser: needs chromium and playwright; not part of `make test`")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test` needs no browser: these tests are there only for who asks for them."""
    asked_for = "browser" in (config.option.markexpr or "")
    return None if asked_for or not collection_path.name.startswith("test_") else True


@pytest.fixture
def handbook(transactional_db: None) -> shelf.Shelf:
    """The handbook, loaded before the browser starts."""
    return shelf.load()


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """One browser for all tests."""
    from playwright.sync_api import sync_playwright

    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def site(handbook: shelf.Shelf, live_server: Any) -> str:
    """The address of a server that serves the handbook."""
    return str(live_server.url)
