"""The addresses of what changes or recalls, below /api/v1."""

from typing import Final

from django.urls import URLPattern, path

from archive.api import views

urlpatterns: Final[list[URLPattern]] = [
    path("ns/<str:ns>/notes/batch", views.IntakeBatches.as_view(), name="notes-batch"),
    path("ns/<str:ns>/transitions", views.Transitions.as_view(), name="transitions"),
    path("ns/<str:ns>/notes/<str:note_id>/text", views.Texts.as_view(), name="note-text"),
    path("ns/<str:ns>/notes/<str:note_id>/promote", views.Promotions.as_view(), name="note-promote"),
    path("ns/<str:ns>/notes/<str:note_id>/archive", views.Archivals.as_view(), name="note-archive"),
    path("ns/<str:ns>/notes/<str:note_id>/revoke", views.Revocations.as_view(), name="note-revoke"),
    path("ns/<str:ns>/notes/<str:note_id>/flags", views.Flags.as_view(), name="note-flags"),
    path("ns/<str:ns>/recalls", views.Recalls.as_view(), name="recalls"),
    path("ns/<str:ns>/recalls/<str:request_id>/resolve", views.Resolutions.as_view(), name="recall-resolve"),
]
"""`ns/{ns}/notes` is not here: listing and taking in share that address, and the host puts them together."""
