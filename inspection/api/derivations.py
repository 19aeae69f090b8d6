"""What can be read of generations and derivations over HTTP: states and digests, no text and no coordinate."""

from typing import ClassVar

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from archive import refusals
from archive.api import bodies as archive_bodies
from archive.api import description
from archive.api import schema as shapes
from archive.api.base import ArchiveView
from inspection import derivations
from inspection.api.views import NAMESPACE, _page, caller_named
from semantic import refusals as ours
from semantic.api import bodies, schema
from semantic.operations.generations import discover


class GenerationConfiguration(ArchiveView):
    """Read which generation is configured."""

    query: ClassVar[tuple[str, ...]] = ("namespace",)

    @description.operation(
        "readGenerationConfiguration",
        {200: ("What is configured; it says nothing of what is registered.", schema.CONFIGURED)},
        tag="derivations",
        parameters=[NAMESPACE],
        refuses=(*description.IN_NAMESPACE, ours.DerivationOff),
    )
    def get(self, request: Request) -> Response:
        """Say which generation is configured for a namespace, before anything is registered."""
        found = discover(caller_named(request))
        return Response({"reference": found.reference, "manifest_digest": found.digest})


class Generations(ArchiveView):
    """List generations."""

    @description.operation(
        "listGenerations",
        {200: ("All of them, oldest first.", schema.GENERATIONS)},
        tag="derivations",
        parameters=[description.NS],
        refuses=description.IN_NAMESPACE,
    )
    def get(self, request: Request, ns: str) -> Response:
        """List the generations of a namespace with their coverage; none is not an error."""
        found = derivations.generations(self.caller(request, ns))
        return Response({"items": [one.as_json() for one in found]})


class GenerationRecords(ArchiveView):
    """Read one generation."""

    @description.operation(
        "readGeneration",
        {200: ("The generation.", schema.GENERATION)},
        tag="derivations",
        parameters=[description.NS, schema.REFERENCE],
        refuses=(*description.IN_NAMESPACE, ours.GenerationAbsent),
    )
    def get(self, request: Request, ns: str, reference: str) -> Response:
        """Read one generation: its manifest, state and coverage."""
        return Response(derivations.generation(self.caller(request, ns), reference).as_json())


class Derivations(ArchiveView):
    """List derivations."""

    query: ClassVar[tuple[str, ...]] = ("generation", "note_id", "limit", "cursor")

    @description.operation(
        "listDerivations",
        {200: ("One page, in the order of preparation.", schema.DERIVATIONS)},
        tag="derivations",
        parameters=[
            description.NS,
            OpenApiParameter("generation", shapes.IDENTIFIER, OpenApiParameter.QUERY),
            OpenApiParameter("note_id", shapes.UUID, OpenApiParameter.QUERY),
            description.LIMIT,
            description.CURSOR,
        ],
        refuses=description.IN_NAMESPACE,
    )
    def get(self, request: Request, ns: str) -> Response:
        """List derivations; one whose attempt ran out of time reads `expired`."""
        given = request.query_params
        note = given.get("note_id")
        page = _page(request)
        found = derivations.list_derivations(
            self.caller(request, ns),
            page,
            generation=given.get("generation"),
            note_id=None if note is None else archive_bodies.note_id(note),
        )
        return Response({"items": [one.as_json() for one in found.items], "next_cursor": found.next_cursor})


class DerivationRecords(ArchiveView):
    """Read one derivation."""

    @description.operation(
        "readDerivation",
        {200: ("The derivation with its latest attempt.", schema.DERIVATION)},
        tag="derivations",
        parameters=[description.NS, schema.DERIVATION_ID],
        refuses=(*description.IN_NAMESPACE, refusals.NamespaceAbsent, ours.DerivationAbsent),
    )
    def get(self, request: Request, ns: str, derivation_id: str) -> Response:
        """Read where one derivation stands by the database's clock."""
        wanted = bodies.derivation_id(derivation_id)
        return Response(derivations.derivation(self.caller(request, ns), wanted).as_json())
