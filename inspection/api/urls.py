"""The addresses of reads, below /api/v1."""

from typing import Final

from django.urls import URLPattern, path

from inspection.api import derivations, views

urlpatterns: Final[list[URLPattern]] = [
    path("configuration", views.Configuration.as_view(), name="configuration"),
    path("interface-projection", views.InterfaceProjection.as_view(), name="interface-projection"),
    path("ns/<str:ns>/notes/<str:note_id>", views.NoteRecords.as_view(), name="note"),
    path("ns/<str:ns>/notes/<str:note_id>/events", views.NoteEvents.as_view(), name="note-events"),
    path("ns/<str:ns>/intakes", views.OwnIntakes.as_view(), name="intakes"),
    path("ns/<str:ns>/intakes/<str:request_id>", views.IntakeRecords.as_view(), name="intake"),
    path("ns/<str:ns>/events", views.Events.as_view(), name="events"),
    path(
        "generation-configuration",
        derivations.GenerationConfiguration.as_view(),
        name="generation-configuration",
    ),
    path("ns/<str:ns>/generations", derivations.Generations.as_view(), name="generations"),
    path("ns/<str:ns>/generations/<path:reference>", derivations.GenerationRecords.as_view(), name="generation"),
    path("ns/<str:ns>/derivations/<str:derivation_id>", derivations.DerivationRecords.as_view(), name="derivation"),
    path("ns/<str:ns>/receipts/<str:request_id>", views.Receipts.as_view(), name="receipt"),
]
