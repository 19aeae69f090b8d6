"""The addresses of what embeds or recalls by meaning, below /api/v1."""

from typing import Final

from django.urls import URLPattern, path

from semantic.api import views

urlpatterns: Final[list[URLPattern]] = [
    path("ns/<str:ns>/derivations/<str:derivation_id>/attempts", views.Attempts.as_view(), name="derivation-attempts"),
    path("ns/<str:ns>/semantic-recalls", views.SemanticRecalls.as_view(), name="semantic-recalls"),
    path(
        "ns/<str:ns>/semantic-recalls/<str:request_id>/resolve",
        views.SemanticResolutions.as_view(),
        name="semantic-recall-resolve",
    ),
]
"""`ns/{ns}/derivations` is not here: listing and preparing share that address, and the host puts them together."""
