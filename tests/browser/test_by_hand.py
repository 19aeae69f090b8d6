"""A curator's way by keyboard alone, with and without script."""

import pytest
from playwright.sync_api import expect

from tests.browser import shelf, walk
from tests.browser.shelf import NAMESPACE

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("script", [True, False])
def test_a_candidate_is_promoted_by_keyboard_alone(handbook, site, browser, script):
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    page.goto(f"{site}/ns/{NAMESPACE}/notes/{handbook.revision}")
    page.locator("#id_username").fill("lead-curator")
    page.keyboard.press("Tab")
    page.keyboard.type(shelf.PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="runbooks/disk-full")).to_be_visible()
    _reach(page, "Promote")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("revision 3, is promoted now, at version 2")
    expect(page.get_by_role("status")).to_contain_text("Revision 2 was archived with it")
    context.close()


def test_a_revocation_asks_first_and_works_without_script(handbook, site, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/ns/{NAMESPACE}/notes/{handbook.hidden}")
    page.locator("#id_username").fill("lead-curator")
    page.locator("#id_password").fill(shelf.PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Revoke…").click()
    page.get_by_label("Reason").select_option("unsafe")
    page.get_by_role("button", name="Destroy the text of version 1").click()
    expect(page.get_by_role("heading", name="A tombstone")).to_be_visible()
    context.close()


def test_a_command_is_copied_by_its_button(handbook, site, browser):
    visitor = walk.Visitor(browser, site, walk.LOOKS[0])
    page = visitor.page("lead-curator")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site)
    page.goto(f"{site}/ns/{NAMESPACE}")
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"lychd token create SUBJECT --namespace {NAMESPACE}"
    visitor.leave()


def _reach(page, name):
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            return
    raise AssertionError(f"no keyboard way to {name}")
