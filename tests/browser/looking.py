"""What a browser alone can say of a page: contrast and names, whether it fits, how focus looks, what zoom keeps."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from playwright.sync_api import Page

RULES: Final = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}

# Focus given by a program counts as given by the keyboard once a key was the last thing pressed.
_UNFOCUSED: Final = """() => {
  const looks = (it) => {
    const {outlineStyle, outlineWidth, outlineColor, boxShadow, borderColor, clipPath} = getComputedStyle(it);
    const outline = outlineStyle === "none" ? "" : [outlineStyle, outlineWidth, outlineColor].join();
    return [outline, boxShadow, borderColor, clipPath].join();
  };
  const found = [];
  const every = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  for (const it of document.querySelectorAll(every)) {
    if (it.disabled || !it.checkVisibility()) continue;
    if (document.activeElement) document.activeElement.blur();
    const before = looks(it);
    it.focus({preventScroll: true});
    if (document.activeElement === it && looks(it) === before) found.push(it.outerHTML.slice(0, 120));
  }
  if (document.activeElement) document.activeElement.blur();
  return found;
}"""
_SIDEWAYS: Final = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
# Times go on while one looks.
_WORDS: Final = """() => {
  const shown = document.querySelector("main, #content");
  const seen = new Set();
  const walk = document.createTreeWalker(shown, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (node.parentElement.closest("time, svg, script, option") || !node.parentElement.checkVisibility()) continue;
    for (const word of node.textContent.split(/\\s+/)) if (word) seen.add(word);
  }
  return [...seen];
}"""


def faults(page: "Page", axe: Any) -> Iterator[str]:
    """Whatever axe finds, and sideways scrolling."""
    for one in axe.run(page, options=RULES).response["violations"]:
        yield from (f"{one['id']} at {node['target']}" for node in one["nodes"])
    if page.evaluate(_SIDEWAYS):
        yield "scrolls sideways"


def unseen_focus(page: "Page") -> Iterator[str]:
    """Every element that takes the focus and looks as before."""
    page.keyboard.press("Tab")
    for element in page.evaluate(_UNFOCUSED):
        yield f"no visible focus: {element}"


def words(page: "Page") -> set[str]:
    """Every word of the page's own part that is not hidden."""
    return set(page.evaluate(_WORDS))


def scrolls_sideways(page: "Page") -> bool:
    return bool(page.evaluate(_SIDEWAYS))
