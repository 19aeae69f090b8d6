"""Resolution: turn a receipt into text under today's authority, all of it or nothing (R-L-110..117)."""

from archive import canonical, receipts, selections
from archive.authority import Action, Caller, Point
from archive.models import Recall
from archive.requests import well_formed
from archive.selections import Resolved
from archive.transactions import shared


def resolve(caller: Caller, request_id: str) -> Resolved:
    """Give the text of every note a receipt selected, or refuse the whole; nothing is ranked or replaced.

    Raises `ReceiptAbsent`, `ReceiptSchemaMismatch`, `ReceiptBindingMismatch`, `SelectionStale`, `IntegrityFailure`.
    """
    well_formed("/request_id", request_id)
    lookup = canonical.lookup_digest(Action.RESOLVE, caller.namespace, {"request_id": request_id})
    question = caller.asks(Action.RESOLVE, about=lookup)
    question.require(Point.A0)
    with shared(caller.binding) as namespace:
        row = Recall.objects.filter(namespace=namespace, request_id=request_id).first()
        if row is not None:
            question = question.about(row.receipt_digest)
        question.require(Point.A1)
        receipt = selections.opened(row, receipts.LEXICAL_SCHEMA, namespace, caller)
        resolved = selections.resolved(namespace, receipt)
    question.require(Point.A2)
    return resolved
