"""Receipts: what was shown to whom, without a word of it."""

from typing import ClassVar

from django.db import models
from django.db.models.expressions import RawSQL

from archive import forms, triggers
from archive.models.columns import InNamespace


class Recall(InNamespace):
    """One published recall. The receipt holds digests, versions, budgets and scores, never text (R-L-101, 102)."""

    id = models.UUIDField(primary_key=True, editable=False)
    request_id = models.TextField()
    schema = models.SmallIntegerField()
    request_digest = models.TextField()
    receipt = models.JSONField()
    receipt_digest = models.TextField()
    subject = models.TextField()
    purpose = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "archive_recall"
        constraints: ClassVar = [
            # Two recalls with one identity meet here; the loser reads the winner's receipt (0.3).
            models.UniqueConstraint(fields=["namespace", "request_id"], name="recall_request_once"),
            models.CheckConstraint(name="recall_schema", condition=models.Q(schema__in=[1, 2])),
            # A reader chooses by the column and verifies what the receipt says of itself: they never differ.
            models.CheckConstraint(
                name="recall_receipt_schema",
                condition=RawSQL(
                    "coalesce((receipt ->> 'schema') = schema::text, false)", [], output_field=models.BooleanField()
                ),
            ),
        ]
        # `recall_missed`, which counts misses, is made by a migration.
        indexes: ClassVar = [
            models.Index(fields=["namespace", "created_at", "id"], name="recall_keyset"),
            models.Index(
                fields=["receipt_digest", "namespace"],
                opclasses=["text_pattern_ops", "int8_ops"],
                name="recall_receipt_digest",
            ),
            models.Index(
                fields=["request_digest", "namespace"],
                opclasses=["text_pattern_ops", "int8_ops"],
                name="recall_request_digest",
            ),
        ]
        triggers: ClassVar = [
            *triggers.of_append_only_memory(),
            triggers.ReceiptTruth(name="truth", form=forms.LEXICAL),
        ]

    def __str__(self) -> str:
        return self.request_id
