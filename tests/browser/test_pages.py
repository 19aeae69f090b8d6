"""What only a browser can tell: contrast and names, the policy kept, no outside request, no sideways scroll."""

import os
from pathlib import Path

import pytest

from tests.browser import walk

pytestmark = pytest.mark.browser

RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}


def test_every_page_is_accessible_keeps_the_policy_and_fits(handbook, site, browser):
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()
    found = []
    for looks, visitor in walk.visitors(browser, site):
        for view in walk.views(handbook):
            page = visitor.visit(view)
            for one in axe.run(page, options=RULES).response["violations"]:
                found += [f"{view.name} {looks.name}: {one['id']} at {node['target']}" for node in one["nodes"]]
            if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                found.append(f"{view.name} {looks.name}: scrolls sideways")
        found += [f"{looks.name}: {said}" for said in visitor.complaints]
        found += [f"{looks.name}: asked {address}" for address in visitor.strangers]
    assert found == []


def test_screenshots(handbook, site, browser):
    folder = Path(os.environ.get("SCREENSHOTS", "/nonexistent"))
    if not folder.is_dir():
        pytest.skip("SCREENSHOTS names no folder; `python -m tests.browser.screenshots FOLDER` sets it")
    for looks, visitor in walk.visitors(browser, site):
        for view in walk.views(handbook):
            visitor.visit(view).screenshot(path=folder / f"{view.name}-{looks.name}.png", full_page=True)
