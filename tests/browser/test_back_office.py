"""What is done on the back office's pages in a real browser: roles and tokens, a pasted identifier, live numbers."""

from typing import Any

import pytest
from playwright.sync_api import expect

from archive.authority import Action, Caller
from archive.models import Grant, Token
from archive.operations import host
from semantic.operations.attempts import Attempt, run_attempt
from semantic.operations.generations import register
from semantic.operations.preparation import prepare
from semantic.presets import STAND_IN
from tests.browser import walk
from tests.browser.shelf import NAMESPACE
from tests.browser.test_pages import RULES

pytestmark = pytest.mark.browser


def looked_at(page, visitor, name) -> list[str]:
    """What is wrong with a page that only a form leads to."""
    from axe_playwright_python.sync_playwright import Axe

    found = [f"{name}: {one['id']}" for one in Axe().run(page, options=RULES).response["violations"]]
    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        found.append(f"{name}: scrolls sideways")
    walk.photograph(page, f"{name}-{visitor.looks.name}")
    return [*found, *visitor.complaints, *visitor.strangers]


@pytest.mark.parametrize("looks", [walk.LOOKS[0], walk.LOOKS[3]], ids=lambda looks: looks.name)
def test_a_role_is_given_and_a_token_issued_and_each_is_shown_first(handbook, site, browser, looks):
    visitor = walk.Visitor(browser, site, looks)
    page = visitor.page(walk.KEEPER)
    # The host gave the first grant; a page gives more to whoever is known there.
    host.grant("newcomer", Caller.in_namespace(walk.KEEPER, NAMESPACE).binding, [Action.FLAG], by="host:tests")
    page.goto(f"{site}/ns/{NAMESPACE}/people")
    page.get_by_label("Subject", exact=True).fill("newcomer")
    page.get_by_label("Role", exact=True).select_option("recaller")
    page.get_by_role("button", name="Give it…").click()
    expect(page.get_by_role("heading", name="Give recaller to newcomer?")).to_be_visible()
    assert not Grant.objects.filter(subject="newcomer", action="recall").exists()
    assert looked_at(page, visitor, "people-confirm") == []
    page.get_by_role("button", name="Give it", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("newcomer holds recaller now")
    assert Grant.objects.filter(subject="newcomer", action="recall").exists()

    page.get_by_text("Issue a token for newcomer").click()
    page.get_by_role("button", name="Issue a token…").locator("visible=true").click()
    page.get_by_role("button", name="Issue and show it").click()
    expect(page.get_by_role("heading", name="A token for newcomer")).to_be_visible()
    secret = page.locator(".command code").inner_text()
    assert Token.objects.filter(digest=host.digest_of_secret(secret)).exists()
    assert looked_at(page, visitor, "people-token") == []
    visitor.leave()


def test_a_pasted_identifier_leads_to_its_page_by_keyboard_and_without_script(handbook, site, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    walk.sign_in(page, site, walk.CURATOR)
    page.goto(f"{site}/ns/{NAMESPACE}")
    page.get_by_label("Identifier").fill(str(handbook.promoted)[:8])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="runbooks/restore-from-backup")).to_be_visible()
    assert page.url.endswith(f"/notes/{handbook.promoted}")
    context.close()


def test_the_numbers_of_a_generation_keep_themselves_up_to_date(handbook, site, browser, settings: Any):
    settings.LYCHD_TEST_EMBEDDER = True
    settings.LYCHD_ARCHIVE = {
        **settings.LYCHD_ARCHIVE,
        "derivation": {
            "generation": "handbook-1",
            "embed_profile": "model.embed@1",
            "embed_binding": dict(STAND_IN),
            "attempt_seconds": 60,
        },
    }
    keeper = Caller.in_namespace(walk.KEEPER, NAMESPACE)
    host.grant(walk.KEEPER, keeper.binding, host.actions_of(["deriver"]), by="host:tests")
    register(keeper)
    row = prepare(keeper, handbook.promoted).derivation
    for looks in walk.LOOKS:
        visitor = walk.Visitor(browser, site, looks)
        page = visitor.page(walk.KEEPER)
        page.goto(f"{site}/ns/{NAMESPACE}/generations")
        expect(page.locator("[data-progress]")).to_contain_text("The numbers keep themselves up to date")
        assert looked_at(page, visitor, "generations") == []
        page.goto(f"{site}/ns/{NAMESPACE}")
        assert looked_at(page, visitor, "home-deriving") == []
        visitor.leave()
    visitor = walk.Visitor(browser, site, walk.LOOKS[0])
    page = visitor.page(walk.KEEPER)
    page.goto(f"{site}/ns/{NAMESPACE}/generations")
    expect(page.locator("b[data-count=complete]")).to_have_text("0")
    run_attempt(keeper, Attempt(row.id, row.row_version))
    expect(page.locator("b[data-count=complete]")).to_have_text("1", timeout=15_000)
    expect(page.locator("[data-progress]")).to_contain_text("handbook-1: 1 of")
    visitor.leave()
