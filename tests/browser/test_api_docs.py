"""The page of the API's description in a real browser, under the policy that it is served with."""

import pytest

from tests.browser import looking, walk

pytestmark = pytest.mark.browser


def test_the_description_is_drawn_and_the_policy_is_not_broken(browser, site, settings):
    settings.LYCHD_OPEN_DESCRIPTION = True
    page = browser.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{site}/api/v1/docs")
    page.wait_for_selector(".opblock-summary")
    assert page.locator(".opblock-summary").count() >= 18
    assert said == []


@pytest.mark.parametrize("looks", [walk.LOOKS[0], walk.LOOKS[3]], ids=lambda looks: looks.name)
def test_the_description_is_accessible_and_fits(handbook, browser, site, settings, looks):
    from axe_playwright_python.sync_playwright import Axe

    settings.LYCHD_OPEN_DESCRIPTION = True
    visitor = walk.Visitor(browser, site, looks)
    page = visitor.page(None)
    page.goto(f"{site}/api/v1/docs")
    page.wait_for_selector(".opblock-summary")
    walk.photograph(page, f"api-docs-{looks.name}")
    assert list(looking.faults(page, Axe())) == []
    assert (visitor.complaints, visitor.strangers) == ([], [])
    visitor.leave()
