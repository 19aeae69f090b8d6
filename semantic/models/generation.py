"""Generations: one embedding index version each, described once and for all."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from archive import triggers as archive_triggers
from archive.models.columns import CLOCK, InNamespace
from semantic import triggers, truths
from semantic.lifecycle import GenerationState


class Generation(InNamespace):
    """One registered manifest. It is retired once and never comes back (R-L-162..165)."""

    id = models.UUIDField(primary_key=True, editable=False)
    reference = models.TextField()
    manifest = models.JSONField()
    manifest_digest = models.TextField()
    dimensions = models.IntegerField()
    state = models.TextField(default=GenerationState.ACTIVE.value)
    version = models.IntegerField(default=1)
    registered_by = models.TextField()
    registered_at = models.DateTimeField(db_default=CLOCK)
    retired_by = models.TextField(null=True)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "semantic_generation"
        constraints: ClassVar = [
            # Two registrations may race; the second finds the row here (R-L-163).
            models.UniqueConstraint(fields=["namespace", "reference"], name="generation_reference_once"),
            models.UniqueConstraint(fields=["namespace", "manifest_digest"], name="generation_manifest_once"),
            # What a derivation's composite foreign key names: a vector has its generation's dimension.
            models.UniqueConstraint(fields=["id", "dimensions"], name="generation_dimensions"),
            models.CheckConstraint(
                name="generation_retirement",
                condition=Q(state=GenerationState.ACTIVE.value, version=1, retired_by=None, retired_at=None)
                | Q(state=GenerationState.RETIRED.value, version=2, retired_by__isnull=False, retired_at__isnull=False),
            ),
        ]
        triggers: ClassVar = [
            *archive_triggers.of_memory(),
            triggers.GenerationFence(name="generation"),
            triggers.InvalidateGeneration(name="invalidate"),
            truths.GenerationTruth(),
        ]

    def __str__(self) -> str:
        return self.reference
