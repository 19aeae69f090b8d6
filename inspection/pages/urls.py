"""The addresses of the reading pages. Those of the decisions stand in archive.curation.urls."""

from typing import Final

from django.urls import URLPattern, path

from archive.curation import urls as _curation  # noqa: F401 - registers the converter of keys
from inspection.pages import bulk, desk, find, generations, search, sign, source, views

_NS: Final = "ns/<key:ns>"

urlpatterns: list[URLPattern] = [
    path("", views.door, name="door"),
    path("namespaces", views.namespaces, name="namespaces"),
    path("sign-in", sign.SignIn.as_view(), name="sign-in"),
    path("sign-out", sign.SignOut.as_view(), name="sign-out"),
    path(_NS, views.home, name="home"),
    path(f"{_NS}/review", desk.review, name="review"),
    path(f"{_NS}/review/preview", bulk.preview, name="bulk-preview"),
    path(f"{_NS}/notes", views.notes, name="notes"),
    path(f"{_NS}/notes/<uuid:note_id>", views.note, name="note"),
    path(f"{_NS}/notes/<uuid:note_id>/revocation", views.revocation, name="revocation"),
    path(f"{_NS}/search", search.search, name="search"),
    path(f"{_NS}/source", source.source, name="source"),
    path(f"{_NS}/receipts", views.receipts, name="receipts"),
    path(f"{_NS}/receipts/<key:request_id>", views.receipt, name="receipt"),
    path(f"{_NS}/receipts/<key:request_id>/file", views.receipt_file, name="receipt-file"),
    path(f"{_NS}/configuration", views.configuration, name="configuration"),
    path(f"{_NS}/events", views.events, name="events"),
    path(f"{_NS}/find", find.box, name="find"),
    path(f"{_NS}/generations", generations.generations, name="generations"),
    path(f"{_NS}/generations/numbers", generations.numbers, name="generations-numbers"),
]
