"""The page of the API's description in a real browser, under the policy that it is served with."""

import pytest

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
