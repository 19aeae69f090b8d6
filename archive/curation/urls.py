"""The addresses of the decisions; each takes POST alone."""

from typing import Final

from django.urls import URLPattern, path, register_converter

from archive import limits
from archive.curation import again, bulk, views
from archive.lifecycle import State


class AddressKey:
    """A namespace key or a request identity in an address."""

    regex = limits.ADDRESS_KEY_PATTERN.removeprefix("^").removesuffix(r"\Z")

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(AddressKey, "key")

_NOTE: Final = "ns/<key:ns>/notes/<uuid:note_id>"

urlpatterns: list[URLPattern] = [
    path(f"{_NOTE}/promote", views.decide, {"to_state": State.PROMOTED}, name="promote"),
    path(f"{_NOTE}/archive", views.decide, {"to_state": State.ARCHIVED}, name="archive"),
    path(f"{_NOTE}/revoke", views.decide, {"to_state": State.REVOKED}, name="revoke"),
    path(f"{_NOTE}/later", views.later, name="later"),
    path("ns/<key:ns>/transitions", bulk.confirm, name="bulk-confirm"),
    path("ns/<key:ns>/intakes", again.take_in, name="take-in"),
]
