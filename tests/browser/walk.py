"""Every page worth a look, who looks at it, and the ways in which it is looked at."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from django.urls import reverse

from archive.curation import management_urls as managing
from inspection.pages import urls as reading
from tests.browser import shelf
from tests.browser.shelf import LONGEST, NAMESPACE, PASSWORD, SECOND, Shelf

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CURATOR, AUDITOR, NEWCOMER, KEEPER = shelf.USERS


@dataclass(frozen=True)
class View:
    """One page, and whoever looks at it; None is nobody."""

    name: str
    address: str
    user: str | None = CURATOR


SCHEMES: Final[tuple[Literal["light"], Literal["dark"]]] = ("light", "dark")


@dataclass(frozen=True)
class Looks:
    """A colour scheme and a width."""

    scheme: Literal["light", "dark"]
    width: int
    height: int

    @property
    def name(self) -> str:
        return f"{self.scheme}-{self.width}"


LOOKS = tuple(Looks(scheme, width, height) for scheme in SCHEMES for width, height in ((1280, 800), (360, 740)))


def views(here: Shelf) -> tuple[View, ...]:
    """Name every page with real identifiers."""
    ns, notes = f"/ns/{NAMESPACE}", f"/ns/{NAMESPACE}/notes"
    return (
        View("sign-in", "/sign-in", None),
        View("home", ns),
        View("home-empty", f"/ns/{SECOND}"),
        View("home-refused", "/", NEWCOMER),
        View("review", f"{ns}/review"),
        View("review-revision", f"{ns}/review?at={here.revision}"),
        View("review-hidden", f"{ns}/review?at={here.hidden}"),
        View("review-arabic", f"{ns}/review?source=support/ar/refund-status"),
        View("review-longest", f"{ns}/review?at={here.longest}"),
        View("review-filtered", f"{ns}/review?age=month&source=nothing/here"),
        View("review-empty", f"/ns/{SECOND}/review"),
        View("review-refused", f"{ns}/review", AUDITOR),
        View("unbroken-review", f"/ns/{LONGEST}/review"),
        View("source", f"{ns}/source?key=runbooks/disk-full&from=1&to=3"),
        View("source-refused", f"{ns}/source?key=runbooks/disk-full&from=1&to=3", AUDITOR),
        View("search", f"{ns}/search"),
        View("unbroken-source", f"/ns/{LONGEST}/source?key={'s' * 128}&from={'1' * 128}&to={'2' * 128}"),
        View("notes", notes),
        View("notes-candidates", f"{notes}?state=candidate"),
        View("notes-none", f"{notes}?state=candidate&source=nothing/here"),
        View("notes-wrong", f"{notes}?state=lost"),
        View("note-revision", f"{notes}/{here.revision}"),
        View("note-hidden", f"{notes}/{here.hidden}"),
        View("note-promoted", f"{notes}/{here.promoted}"),
        View("note-archived", f"{notes}/{here.archived}"),
        View("note-longest", f"{notes}/{here.longest}"),
        View("note-arabic", f"{notes}/{here.arabic}"),
        View("note-without-text", f"{notes}/{here.revision}", AUDITOR),
        View("tombstone", f"{notes}/{here.tombstone}"),
        View("revocation", f"{notes}/{here.promoted}/revocation?version=2"),
        View("moved", f"{notes}/{here.promoted}/revocation?version=1"),
        View("receipts", f"{ns}/receipts"),
        View("receipts-empty", f"/ns/{SECOND}/receipts"),
        View("receipt", f"{ns}/receipts/{here.receipt}"),
        View("receipt-miss", f"{ns}/receipts/{here.miss}"),
        View("events", f"{ns}/events"),
        View("find", f"{ns}/find"),
        View("generations-none", f"{ns}/generations"),
        View("configuration", f"{ns}/configuration"),
        View("people", f"{ns}/people", KEEPER),
        View("people-refused", f"{ns}/people", AUDITOR),
        View("settings", f"{ns}/settings", KEEPER),
        View("tables", "/admin/"),
        View("tables-notes", "/admin/archive/note/"),
        View("tables-note", f"/admin/archive/note/{here.promoted}/change/"),
        View("tables-receipts", "/admin/archive/recall/"),
        View("tables-events", "/admin/archive/lifecycleevent/?state=revoked"),
        View("tables-none", "/admin/archive/note/?q=nothing"),
        View("tables-refused", "/admin/archive/note/", NEWCOMER),
        View("nowhere", "/no/such/page"),
        View("unbroken-home", f"/ns/{LONGEST}"),
        View("unbroken-notes", f"/ns/{LONGEST}/notes?source={'s' * 128}"),
        View("unbroken-note", f"/ns/{LONGEST}/notes/{here.unbroken}"),
        View("unbroken-revocation", f"/ns/{LONGEST}/notes/{here.unbroken}/revocation?version=1"),
        View("unbroken-moved", f"/ns/{LONGEST}/notes/{here.unbroken}/revocation?version=9"),
        View("unbroken-receipts", f"/ns/{LONGEST}/receipts"),
        View("unbroken-receipt", f"/ns/{LONGEST}/receipts/{'q' * 128}"),
        View("unbroken-events", f"/ns/{LONGEST}/events"),
    )


POSTED: Final = frozenset({"sign-out", "bulk-preview"})
"""Addresses that only a form leads to; what they answer is looked at where the form is sent."""
KEPT: Final = frozenset({"people", "settings"})
"""Pages of whoever grants and configures."""
NO_PAGES: Final = frozenset({"receipt-file", "generations-numbers"})
"""Addresses that answer with a file or with numbers."""


def resolved(here: Shelf) -> Iterator[View]:
    """Every page that the address patterns have: as usual, empty, with the longest values, and refused."""
    shelves = {
        "usual": (NAMESPACE, here.revision, here.receipt, "runbooks/disk-full", 1),
        "empty": (SECOND, here.revision, here.receipt, "nothing/here", 1),
        "longest": (LONGEST, here.unbroken, "q" * 128, "s" * 128, 1),
    }
    patterns = [*reading.urlpatterns, *(one for one in managing.urlpatterns if one.name in KEPT)]
    for pattern in patterns:
        assert pattern.name is not None
        if pattern.name in POSTED | NO_PAGES:
            continue
        takes = set(pattern.pattern.converters)
        for kind, (ns, note, request, key, version) in shelves.items():
            values = {"ns": ns, "note_id": note, "request_id": request}
            address = reverse(pattern.name, kwargs={name: values[name] for name in takes})
            address += {"source": f"?key={key}", "revocation": f"?version={version}"}.get(pattern.name, "")
            user = KEEPER if pattern.name in KEPT else CURATOR
            yield View(f"{pattern.name}-{kind}", address, user)
            if kind == "usual" and "ns" in takes:
                yield View(f"{pattern.name}-refused", address, NEWCOMER)


class Visitor:
    """Somebody in front of the browser, in one look; keeps what the console complains about."""

    def __init__(self, browser: "Browser", site: str, looks: Looks, *, dots: float = 1) -> None:
        self._dots = dots
        self._browser, self._site, self._looks, self.looks = browser, site, looks, looks
        self._pages: dict[str | None, Page] = {}
        self.complaints: list[str] = []
        self.strangers: list[str] = []

    def page(self, user: str | None) -> "Page":
        """This person's own browser window, signed in."""
        if user not in self._pages:
            context = self._browser.new_context(
                color_scheme=self._looks.scheme,
                viewport={"width": self._looks.width, "height": self._looks.height},
                reduced_motion="reduce",
                device_scale_factor=self._dots,
            )
            page = context.new_page()
            page.on("console", lambda said: self.complaints.append(said.text) if _complains(said.text) else None)
            page.on("pageerror", lambda error: self.complaints.append(str(error)))
            page.on(
                "request", lambda sent: None if sent.url.startswith(self._site) else self.strangers.append(sent.url)
            )
            self._pages[user] = page
            if user is not None:
                sign_in(page, self._site, user)
        return self._pages[user]

    def visit(self, view: View) -> "Page":
        """Open one page as whoever looks at it."""
        page = self.page(view.user)
        page.goto(self._site + view.address)
        return page

    def leave(self) -> None:
        for page in self._pages.values():
            page.context.close()


def sign_in(page: "Page", site: str, user: str) -> None:
    """Go through the sign-in."""
    page.goto(f"{site}/sign-in")
    page.fill("#id_username", user)
    page.fill("#id_password", PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_load_state()


def photograph(page: "Page", name: str) -> None:
    """Keep a picture of a page that only a form leads to, where SCREENSHOTS names a folder."""
    folder = Path(os.environ.get("SCREENSHOTS", "/nonexistent"))
    if folder.is_dir():
        page.screenshot(path=folder / f"{name}.png", full_page=True)


def _complains(said: str) -> bool:
    # A page that is itself a refusal is reported by its status; that is no fault of the page.
    return "Failed to load resource: the server responded with a status of 4" not in said


def visitors(browser: "Browser", site: str) -> "Iterator[tuple[Looks, Visitor]]":
    """A visitor for each look, gone at the end."""
    for looks in LOOKS:
        visitor = Visitor(browser, site, looks)
        yield looks, visitor
        visitor.leave()
