"""What can be done with derivations over HTTP; generations are registered and retired by commands alone (5.14)."""

from http import HTTPStatus

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from archive import refusals
from archive.api import description
from archive.api.base import ArchiveView
from archive.api.receipts import ReceiptView, recall_described, recalled, resolution_described, resolved
from semantic import refusals as ours
from semantic import tasks
from semantic.api import bodies, schema
from semantic.operations.preparation import prepare
from semantic.operations.recall import recall
from semantic.operations.request import request as request_attempt
from semantic.operations.resolution import resolve


class Preparations(ArchiveView):
    """Prepare a note for embedding."""

    @description.operation(
        "prepareDerivation",
        {
            201: ("Prepared now; nothing is embedded by it.", schema.PREPARED),
            200: ("What was prepared before.", schema.PREPARED),
        },
        tag="derivations",
        request=schema.PREPARATION,
        parameters=[description.NS],
        refuses=(
            *description.IN_NAMESPACE,
            *description.WRITING,
            *schema.IN_GENERATION,
            refusals.RecordAbsent,
            ours.SourceNotEligible,
        ),
    )
    def post(self, request: Request, ns: str) -> Response:
        """Note down that a promoted note may be embedded; asked again it is the same derivation."""
        note_id = bodies.preparation(self.body(request))
        done = prepare(self.caller(request, ns), note_id)
        row = done.derivation
        told = {"id": str(row.id), "state": row.state, "attempt": row.attempt, "row_version": row.row_version}
        return Response(told, status=HTTPStatus.CREATED if done.created else HTTPStatus.OK)


class Attempts(ArchiveView):
    """Ask for one attempt."""

    @description.operation(
        "requestAttempt",
        {
            202: ("Asked for; look at `status_url` for what becomes of it.", schema.REQUESTED),
            200: ("Complete already; nothing was asked for.", schema.DERIVATION),
        },
        tag="derivations",
        request=schema.ATTEMPT,
        parameters=[description.NS, schema.DERIVATION_ID],
        refuses=(
            *description.IN_NAMESPACE,
            *schema.IN_GENERATION,
            ours.DerivationAbsent,
            ours.DerivationInvalidated,
            ours.DerivationNotClaimable,
            ours.CoordinationUnavailable,
        ),
    )
    def post(self, request: Request, ns: str, derivation_id: str) -> Response:
        """Ask the worker to embed it; changes no row, and nothing asks again by itself."""
        wanted = bodies.attempt(self.body(request), bodies.derivation_id(derivation_id))
        caller = self.caller(request, ns)
        requested = request_attempt(caller, wanted)
        if not requested.needed:
            return Response(requested.derivation.as_json())
        tasks.send(caller, wanted, getattr(request._request, "correlation_id", ""))
        address = reverse("derivation", kwargs={"ns": ns, "derivation_id": derivation_id})
        return Response({"status_url": address}, status=HTTPStatus.ACCEPTED)


class SemanticRecalls(ReceiptView):
    """Recall by meaning."""

    @recall_described(
        "recallByMeaning",
        *(*schema.IN_GENERATION, *schema.EMBEDDING, ours.SemanticOff),
        request=schema.RECALL,
        answer=schema.RECALLED,
    )
    def post(self, request: Request, ns: str) -> Response:
        """Select embedded notes near to a query and leave a receipt; there is no fallback to words."""
        wanted = bodies.recall(self.body(request))
        done = recall(self.caller(request, ns), wanted)
        return recalled(done.outcome, done.receipt, caller_execution=done.caller_execution)


class SemanticResolutions(ReceiptView):
    """Resolve a semantic receipt."""

    @resolution_described("resolveByMeaning", *schema.IN_GENERATION, ours.SemanticOff)
    def post(self, request: Request, ns: str, request_id: str) -> Response:
        """Turn a semantic receipt into text while every fence of it holds, all of it or nothing."""
        wanted = self.resolving(request, request_id)
        return resolved(resolve(self.caller(request, ns), wanted))
