"""Every page of the service, found from its address patterns, with identifiers that exist."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import URLPattern, reverse

from archive.authority import Caller
from archive.curation import urls as curation
from archive.records import NoteRecord
from inspection.pages import urls as pages
from tests import cast

SECRET = "Xylopholist"
"""A word that stands in every text and in nothing else."""


POSTED = ("bulk-preview",)
"""Pages that change nothing and take a form all the same, since what they are asked does not belong in an address."""


@dataclass(frozen=True)
class Nursery:
    """One note in each state, a second revision that waits, and the receipt of a recall."""

    candidate: NoteRecord
    promoted: NoteRecord
    archived: NoteRecord
    revoked: NoteRecord
    request_id: str


def nursery(alice: Caller, bob: Caller) -> Nursery:
    """Bring every kind of row into being."""
    promoted = cast.promoted(alice, f"{SECRET} roses want sun.", source="roses", revision="1")
    candidate = cast.admitted(alice, f"{SECRET} roses want shade.", source="roses", revision="2")
    archived = cast.archived(alice, f"{SECRET} ferns want shade.", source="ferns")
    revoked = cast.revoked(alice, f"{SECRET} thistles want nothing.", source="thistles")
    cast.asked(bob, "roses", request_id="q-roses")
    return Nursery(candidate, promoted, archived, revoked, "q-roses")


def reading_pages(here: Nursery) -> Iterator[str]:
    """Every address of the reading pages, each kind of note included."""
    for pattern in pages.urlpatterns:
        if pattern.name in POSTED:
            continue
        yield from _filled(pattern, here)


def decision_pages(note: NoteRecord) -> Iterator[str]:
    """The addresses of the decisions, each about one note or about many."""
    for pattern in curation.urlpatterns:
        assert pattern.name is not None
        about_one = "note_id" in pattern.pattern.converters
        yield reverse(pattern.name, args=[cast.GARDEN, note.id] if about_one else [cast.GARDEN])
    for name in POSTED:
        yield reverse(name, args=[cast.GARDEN])


def namespace_pages(here: Nursery) -> list[str]:
    """The reading pages that stand in the namespace."""
    return [address for address in reading_pages(here) if address.startswith("/ns/")]


def _filled(pattern: URLPattern, here: Nursery) -> Iterator[str]:
    assert pattern.name is not None
    takes = set(pattern.pattern.converters)
    if "note_id" in takes:
        for note in (here.candidate, here.promoted, here.archived, here.revoked):
            address = reverse(pattern.name, args=[cast.GARDEN, note.id])
            yield f"{address}?version={note.lifecycle_version}" if pattern.name == "revocation" else address
    elif "request_id" in takes:
        yield reverse(pattern.name, args=[cast.GARDEN, here.request_id])
    elif pattern.name == "source":
        yield f"{reverse('source', args=[cast.GARDEN])}?key=roses"
    else:
        yield reverse(pattern.name, args=[cast.GARDEN] if "ns" in takes else [])
