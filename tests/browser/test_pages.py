"""What only a browser can tell: contrast and names, the policy kept, no outside request, no sideways scroll."""

import os
from pathlib import Path
from typing import Any

import pytest

from inspection import reads
from tests.browser import looking, walk
from tests.browser.looking import RULES as RULES
from tests.browser.shelf import NAMESPACE

pytestmark = pytest.mark.browser

TWO = [walk.LOOKS[0], walk.LOOKS[3]]
"""Light and wide, dark and narrow: every page of the resolver in each scheme and each width."""


def looked_through(visitor: walk.Visitor, views: Any, axe: Any) -> list[str]:
    found: list[str] = []
    for view in views:
        page = visitor.visit(view)
        found += [f"{view.name} {visitor.looks.name}: {fault}" for fault in looking.faults(page, axe)]
        found += [f"{view.name} {visitor.looks.name}: {fault}" for fault in looking.unseen_focus(page)]
    found += [f"{visitor.looks.name}: {said}" for said in visitor.complaints]
    return [*found, *(f"{visitor.looks.name}: asked {address}" for address in visitor.strangers)]


@pytest.mark.parametrize("looks", walk.LOOKS, ids=lambda looks: looks.name)
def test_every_page_is_accessible_keeps_the_policy_fits_and_shows_its_focus(handbook, site, browser, looks):
    from axe_playwright_python.sync_playwright import Axe

    visitor = walk.Visitor(browser, site, looks)
    assert looked_through(visitor, walk.views(handbook), Axe()) == []
    visitor.leave()


@pytest.mark.parametrize("looks", TWO, ids=lambda looks: looks.name)
def test_every_page_of_the_resolver_empty_usual_longest_and_refused(handbook, site, browser, looks):
    from axe_playwright_python.sync_playwright import Axe

    views = list(walk.resolved(handbook))
    assert len(views) > 60
    visitor = walk.Visitor(browser, site, looks)
    assert looked_through(visitor, views, Axe()) == []
    visitor.leave()


@pytest.mark.parametrize("looks", TWO, ids=lambda looks: looks.name)
def test_a_fault_of_the_archive_has_a_page_like_all_others(handbook, site, browser, looks, monkeypatch):
    from axe_playwright_python.sync_playwright import Axe

    def fails(*_: object) -> None:
        raise RuntimeError

    visitor = walk.Visitor(browser, site, looks)
    page = visitor.page(walk.CURATOR)
    monkeypatch.setattr(reads, "overview", fails)
    assert page.goto(f"{site}/ns/{NAMESPACE}").status == 500
    assert "A fault of the archive" in page.content()
    assert [*looking.faults(page, Axe()), *looking.unseen_focus(page)] == []
    walk.photograph(page, f"fault-{looks.name}")
    assert [said for said in visitor.complaints if "status of 500" not in said] == []
    visitor.leave()


def test_twice_as_large_nothing_is_lost_and_nothing_scrolls_sideways(handbook, site, browser):
    """200 % of a window of 1280 is a window of 640 with twice the dots."""
    wide = walk.Visitor(browser, site, walk.LOOKS[0])
    large = walk.Visitor(browser, site, walk.Looks("light", 640, 400), dots=2)
    found = []
    for view in walk.views(handbook):
        before = looking.words(wide.visit(view))
        page = large.visit(view)
        if looking.scrolls_sideways(page):
            found.append(f"{view.name}: scrolls sideways")
        if lost := before - looking.words(page):
            found.append(f"{view.name}: lost {sorted(lost)[:10]}")
    assert found == []
    wide.leave()
    large.leave()


def test_screenshots(handbook, site, browser):
    folder = Path(os.environ.get("SCREENSHOTS", "/nonexistent"))
    if not folder.is_dir():
        pytest.skip("SCREENSHOTS names no folder; `python -m tests.browser.screenshots FOLDER` sets it")
    for looks, visitor in walk.visitors(browser, site):
        for view in walk.views(handbook):
            visitor.visit(view).screenshot(path=folder / f"{view.name}-{looks.name}.png", full_page=True)
