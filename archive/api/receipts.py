"""What recalls and resolutions of every kind share at this edge: their descriptions, and how they are answered."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from archive import refusals
from archive.api import bodies, description, schema
from archive.api.base import ArchiveView
from archive.publication import Publication
from archive.selections import Resolved


class ReceiptView(ArchiveView):
    """One address that leaves receipts or reads them; all of them count against one throttle."""

    scope: ClassVar[str] = "recalls"

    def resolving(self, request: Request, request_id: str) -> str:
        """Read which receipt is to be resolved; the body says nothing."""
        wanted = bodies.request_id(request_id)
        bodies.nothing(self.body(request, optional=True))
        return wanted


def recall_described(
    name: str, *more: type[refusals.Refusal], request: schema.Schema, answer: schema.Schema
) -> Callable[[description.View], description.View]:
    """Describe an operation that recalls and leaves a receipt."""
    return description.operation(
        name,
        {
            201: ("A receipt, published now.", answer),
            200: ("The receipt that the same request has already.", answer),
        },
        tag="recalls",
        request=request,
        parameters=[description.NS],
        refuses=(
            *description.IN_NAMESPACE,
            *description.WRITING,
            refusals.NamespaceAbsent,
            refusals.RequestConflict,
            refusals.IntegrityFailure,
            *more,
        ),
    )


def recalled(outcome: Publication, receipt: dict[str, Any], **more: Any) -> Response:
    """Answer with a receipt, and say by the status whether it is new."""
    status = HTTPStatus.CREATED if outcome is Publication.PUBLISHED else HTTPStatus.OK
    return Response({"outcome": outcome.value, "receipt": receipt, **more}, status=status)


def resolution_described(name: str, *more: type[refusals.Refusal]) -> Callable[[description.View], description.View]:
    """Describe an operation that turns a receipt into text."""
    return description.operation(
        name,
        {200: ("Every selected note with its text, for this one use.", schema.RESOLVED)},
        tag="recalls",
        request=schema.NOTHING,
        required=False,
        parameters=[description.NS, description.REQUEST_ID],
        refuses=(
            *description.IN_NAMESPACE,
            refusals.NamespaceAbsent,
            refusals.ReceiptAbsent,
            refusals.ReceiptSchemaMismatch,
            refusals.ReceiptBindingMismatch,
            refusals.SelectionStale,
            refusals.IntegrityFailure,
            *more,
        ),
    )


def resolved(done: Resolved) -> Response:
    """Answer with the texts of a receipt."""
    return Response({"receipt_id": str(done.receipt_id), "sources": [source.as_json() for source in done.sources]})
