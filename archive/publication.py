"""Publication: one receipt for each request identity of a namespace, whoever comes first (R-L-091, 251)."""

import json
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from django.db import connection

from archive import canonical, receipts
from archive.models import Namespace, Recall
from archive.models.columns import columns
from archive.refusals import RequestConflict

_COLUMNS: Final = columns(Recall)


class Publication(StrEnum):
    """How a recall ended: this caller published, asked again, or met another caller's publication."""

    PUBLISHED = "published"
    REPLAYED = "replayed"
    JOINED = "joined"


def published(namespace: Namespace, request_id: str, *, schema: int, digest: str) -> dict[str, Any] | None:
    """Return the receipt that this request has already; raises `RequestConflict` where another request has it."""
    rows = Recall.objects.raw(
        f"SELECT {_COLUMNS} FROM archive_recall WHERE namespace_id = %s AND request_id = %s",  # noqa: S608
        [namespace.id, request_id],
    )
    row = next(iter(rows), None)
    if row is None:
        return None
    if row.schema != schema or not canonical.same(row.request_digest, digest):
        raise RequestConflict
    return receipts.opened(row, namespace.key)


def publish(namespace: Namespace, receipt: dict[str, Any], created_at: datetime) -> tuple[Publication, dict[str, Any]]:
    """Publish a receipt under its request identity, or return the receipt that another caller published first."""
    with connection.cursor() as cursor:
        # Recalls stand side by side, so two with one identity may both come this far; the constraint lets one publish.
        cursor.execute(
            "INSERT INTO archive_recall (id, namespace_id, request_id, schema, request_digest, receipt, receipt_digest,"
            " subject, purpose, created_at) VALUES (%s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s, %s)"
            " ON CONFLICT (namespace_id, request_id) DO NOTHING RETURNING id",
            [
                receipt["receipt_id"],
                namespace.id,
                receipt["request_id"],
                receipt["schema"],
                receipt["request_digest"],
                json.dumps(receipt),
                receipt["receipt_digest"],
                receipt["subject"],
                receipt["purpose"],
                created_at,
            ],
        )
        if cursor.fetchone() is not None:
            return Publication.PUBLISHED, receipt
    winner = published(namespace, receipt["request_id"], schema=receipt["schema"], digest=receipt["request_digest"])
    if winner is None:
        raise RuntimeError("the row that conflicted is visible to the next statement")
    return Publication.JOINED, winner
