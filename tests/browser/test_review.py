"""The queue in a real browser: by keyboard alone, by touch on a phone, and with notes that move meanwhile."""

import pytest
from playwright.sync_api import expect

from archive import limits
from archive.authority import Caller
from archive.lifecycle import State
from archive.models import Note
from archive.operations import host
from archive.operations.intake import intake_many
from archive.operations.transition import promote, revoke
from archive.requests import Intake, Transition
from tests.browser import walk
from tests.browser.shelf import NAMESPACE, SECOND
from tests.browser.test_pages import RULES

pytestmark = pytest.mark.browser

DESK = f"/ns/{SECOND}/review"


@pytest.fixture
def lamps(handbook):
    """Twenty candidates, the longest, right-to-left, look-alike and equal ones among them."""
    binding = host.configure_namespace(SECOND, owner="ferry-office", policy_revision="policy-1", by="host:tests")
    host.grant("support-agent", binding, host.actions_of(("writer", "curator")), by="host:tests")
    keeper = Caller.in_namespace("support-agent", SECOND)
    texts = {number: f"Lamp {number} turns every {number} seconds." for number in range(20)}
    texts[3] = "Fog signal. " * (limits.NOTE_TEXT_MAX_CHARS // 12)
    texts[5] = "المنارة تدور كل عشر ثوان."
    texts[7] = "Ask at the p\u0430ypal desk."
    earlier = [Intake(f"old-{n}", f"lamp/{n:02}", "1", texts[9] if n == 9 else "It turned slowly.") for n in (4, 9)]
    for answer in intake_many(keeper, earlier):
        promote(keeper, Transition(answer.given().note.id, State.PROMOTED, 1))
    taken = intake_many(keeper, [Intake(f"new-{n}", f"lamp/{n:02}", "2", text) for n, text in texts.items()])
    return keeper, [answer.given().note for answer in taken]


def states():
    return sorted(Note.objects.filter(namespace__key=SECOND, source_revision="2").values_list("state", flat=True))


def open_desk(browser, site, width=1280, **options):
    visitor = walk.Visitor(browser, site, walk.Looks("light", width, 800))
    page = visitor.page(walk.CURATOR)
    page.goto(site + DESK)
    return visitor, page


def test_twenty_candidates_are_reviewed_by_keyboard_alone(lamps, site, browser):
    visitor, page = open_desk(browser, site)
    presses = 0
    for left in range(20, 0, -1):
        expect(page.locator("#waiting")).to_contain_text(f"of {left}")
        page.keyboard.press("a")
        presses += 1
        page.wait_for_url("**/review?at=*")
        expect(page.get_by_role("status").first).to_contain_text("is promoted now")
        if left > 1:
            expect(page.locator("#waiting")).to_contain_text(f"of {left - 1}")
    expect(page.get_by_role("heading", name="Nothing waits")).to_be_visible()
    assert presses == 20
    assert states() == ["promoted"] * 20
    assert (visitor.complaints, visitor.strangers) == ([], [])
    visitor.leave()


def test_keys_move_put_off_open_the_page_that_revokes_and_can_be_switched_off(lamps, site, browser):
    visitor, page = open_desk(browser, site)
    expect(page.locator("#waiting")).to_contain_text("1 of 20")
    page.keyboard.press("j")
    expect(page.locator("#waiting")).to_contain_text("2 of 20")
    page.keyboard.press("k")
    expect(page.locator("#waiting")).to_contain_text("1 of 20")
    page.keyboard.press("l")
    expect(page.locator("#waiting")).to_contain_text("of 19")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Revoke this note?")).to_be_visible()
    page.get_by_role("link", name="Keep it").click()
    expect(page.locator("#waiting")).to_contain_text("of 19")
    page.keyboard.press("?")
    expect(page.get_by_label("Keys are on")).to_be_visible()
    page.get_by_label("Keys are on").press("Space")
    expect(page.get_by_label("Keys are on")).not_to_be_checked()
    page.keyboard.press("a")
    page.keyboard.press("j")
    expect(page.get_by_label("Keys are on")).to_be_visible()
    page.reload()
    page.keyboard.press("a")
    page.reload()
    expect(page.locator("#waiting")).to_contain_text("of 19")
    assert states() == ["candidate"] * 20
    visitor.leave()


def test_a_key_pressed_while_typing_decides_nothing(lamps, site, browser):
    visitor, page = open_desk(browser, site)
    page.get_by_text("Filter the queue").click()
    page.get_by_label("Source, exactly").press_sequentially("alarj")
    expect(page.get_by_label("Source, exactly")).to_have_value("alarj")
    page.locator("select[name=reason]").focus()
    page.keyboard.press("a")
    page.reload()
    assert states() == ["candidate"] * 20
    visitor.leave()


def test_a_version_that_moves_under_the_curator_is_named_and_the_queue_goes_on(lamps, site, browser):
    keeper, notes = lamps
    visitor, page = open_desk(browser, site)
    expect(page.locator("#waiting")).to_contain_text("1 of 20")
    shown = page.locator("input[name=expected_version]").get_attribute("value")
    first = next(note for note in notes if note.source_key in page.locator("h1").inner_text())
    assert shown == "1"
    promote(keeper, Transition(first.id, State.PROMOTED, 1))
    page.keyboard.press("a")
    expect(page.get_by_role("status").first).to_contain_text("The note has moved since you read it")
    expect(page.get_by_role("status").first).to_contain_text(first.source_key)
    expect(page.locator("#waiting")).to_contain_text("of 19")
    visitor.leave()


def test_many_at_once_with_two_that_moved(lamps, site, browser):
    keeper, notes = lamps
    visitor, page = open_desk(browser, site)
    page.goto(f"{site}/ns/{SECOND}/notes?state=candidate")
    promote(keeper, Transition(notes[0].id, State.PROMOTED, 1))
    revoke(keeper, Transition(notes[1].id, State.REVOKED, 1))
    page.get_by_role("button", name="Look at all on this page").click()
    expect(page.get_by_role("heading", name="Promote these notes?")).to_be_visible()
    expect(page.get_by_text("moved: it can no longer go there")).to_have_count(2)
    promote(keeper, Transition(notes[2].id, State.PROMOTED, 1))
    revoke(keeper, Transition(notes[4].id, State.REVOKED, 1))
    page.get_by_role("button", name="Promote 18 notes").click()
    expect(page.get_by_role("heading", name="16 done, 2 refused")).to_be_visible()
    assert states() == ["promoted"] * 18 + ["revoked"] * 2
    assert visitor.complaints == []
    visitor.leave()


def test_a_whole_review_by_touch_on_a_phone(lamps, site, browser):
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(site + DESK)
    page.locator("#id_username").fill(walk.CURATOR)
    page.locator("#id_password").fill("correct horse battery staple")
    page.get_by_role("button", name="Sign in").tap()
    expect(page.locator("#change")).to_be_visible()
    page.get_by_role("button", name="Promote").tap()
    expect(page.get_by_role("status").first).to_contain_text("is promoted now")
    page.get_by_role("button", name="Later").tap()
    expect(page.locator("#waiting")).to_contain_text("of 18")
    page.get_by_role("link", name="Revoke…").tap()
    page.get_by_role("button", name="Destroy the text of version 1").tap()
    expect(page.get_by_role("status").first).to_contain_text("is revoked now")
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert sorted(set(states())) == ["candidate", "promoted", "revoked"]
    context.close()


def test_hidden_characters_hold_the_key_back_until_the_box_is_ticked(handbook, site, browser):
    visitor = walk.Visitor(browser, site, walk.LOOKS[0])
    page = visitor.page(walk.CURATOR)
    page.goto(f"{site}/ns/{NAMESPACE}/review?at={handbook.hidden}")
    page.keyboard.press("a")
    expect(page.get_by_label("I saw the 3 hidden characters")).to_be_visible()
    page.get_by_label("I saw the 3 hidden characters").check()
    page.keyboard.press("a")
    expect(page.get_by_role("status").first).to_contain_text("is promoted now")
    visitor.leave()


def test_the_pages_that_answer_a_form_are_accessible_keep_the_policy_and_fit(handbook, site, browser):
    from axe_playwright_python.sync_playwright import Axe

    binding = Caller.in_namespace(walk.CURATOR, NAMESPACE).binding
    host.grant(walk.CURATOR, binding, host.actions_of(("writer",)), by="host:tests")
    axe, found = Axe(), []
    for looks, visitor in walk.visitors(browser, site):
        page = visitor.page(walk.CURATOR)

        page.goto(f"{site}/ns/{NAMESPACE}/notes?state=candidate")
        for box in page.get_by_role("checkbox").all()[:2]:
            box.check()
        page.get_by_role("button", name="Look at what is ticked").click()
        expect(page.get_by_role("heading", name="Promote these notes?")).to_be_visible()
        found += _faults(axe, page, f"preview {looks.name}")
        page.get_by_role("button", name="Promote").click()
        expect(page.get_by_role("heading", name="done")).to_be_visible()
        found += _faults(axe, page, f"results {looks.name}")
        page.goto(f"{site}/ns/{NAMESPACE}/search")
        page.get_by_label("Question").fill("how do we restore a backup")
        page.get_by_label("Note or source you expected").fill("runbooks/disk-full")
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_role("heading", name="The ranking")).to_be_visible()
        found += _faults(axe, page, f"search {looks.name}")
        page.goto(f"{site}/ns/{NAMESPACE}/notes/{handbook.archived}")
        expect(page.get_by_role("heading", name="Take it in again")).to_be_visible()
        found += _faults(axe, page, f"again {looks.name}")
        found += [f"{looks.name}: {said}" for said in (*visitor.complaints, *visitor.strangers)]
    assert found == []


def _faults(axe, page, name):
    walk.photograph(page, name.replace(" ", "-"))
    for one in axe.run(page, options=RULES).response["violations"]:
        yield from (f"{name}: {one['id']} at {node['target']}" for node in one["nodes"])
    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        yield f"{name}: scrolls sideways"
