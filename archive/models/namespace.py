"""The catalogue of spaces, the retained namespaces, and the record of every change of binding."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from archive import triggers, truths
from archive.models.columns import CLOCK, InNamespace


class MemorySpace(models.Model):
    """A space owns namespaces; its lifecycle decides whether anything in it may be written. S1 has one, shared."""

    id = models.UUIDField(primary_key=True, editable=False)
    kind = models.TextField()
    owner_membership = models.UUIDField(null=True)
    generation = models.IntegerField(default=1)
    lifecycle = models.TextField(default="active")
    private_content_at = models.DateTimeField(null=True)
    sealed_at = models.DateTimeField(null=True)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "archive_memory_space"
        constraints: ClassVar = [
            models.CheckConstraint(name="space_kind", condition=Q(kind__in=["team_shared", "private"])),
            models.CheckConstraint(name="space_lifecycle", condition=Q(lifecycle__in=["active", "sealed", "retired"])),
            models.CheckConstraint(name="space_generation", condition=Q(generation__gte=1)),
            # A shared space is never an erasure target (R-D-059).
            models.CheckConstraint(
                name="space_shared_stays_active",
                condition=~Q(kind="team_shared")
                | Q(lifecycle="active", sealed_at__isnull=True, retired_at__isnull=True),
            ),
        ]
        triggers: ClassVar = [triggers.NoDelete(name="nodelete")]

    def __str__(self) -> str:
        return f"{self.kind} space {self.id}"


class Namespace(models.Model):
    """The retained scope of every act. The first admitted intake makes it; a binding migration alone changes it."""

    id = models.BigAutoField(primary_key=True)
    key = models.TextField()
    profile = models.TextField()
    owner = models.TextField()
    policy_revision = models.TextField()
    binding_digest = models.TextField()
    space_id = models.UUIDField(editable=False)
    space_generation = models.IntegerField(editable=False)
    classification = models.TextField()
    text_configuration = models.TextField()
    lexical_state = models.TextField(default="ready")
    lexer_fingerprint = models.TextField()
    row_version = models.IntegerField(default=1)
    created_at = models.DateTimeField(db_default=CLOCK)

    class Meta:
        db_table = "archive_namespace"
        constraints: ClassVar = [
            # Two first intakes may race; the second finds the row here.
            models.UniqueConstraint(fields=["key"], name="namespace_key"),
            models.CheckConstraint(name="namespace_public", condition=Q(classification="public")),
            models.CheckConstraint(
                name="namespace_lexical_state", condition=Q(lexical_state__in=["ready", "rebuilding"])
            ),
        ]
        triggers: ClassVar = [
            triggers.SpaceOfNamespace(name="space"),
            triggers.BindingFence(name="binding"),
            triggers.NoDelete(name="nodelete"),
            truths.NamespaceTruth(),
        ]

    def __str__(self) -> str:
        return self.key


class BindingMigration(InNamespace):
    """The record of one admitted change of binding (R-L-020).

    The column `transaction_id` (xid8, filled by the database) is what the fence of `archive_namespace` compares; it is
    no model field, since nothing but that trigger reads it.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    old_owner = models.TextField()
    new_owner = models.TextField()
    old_policy_revision = models.TextField()
    new_policy_revision = models.TextField()
    old_text_configuration = models.TextField()
    new_text_configuration = models.TextField()
    old_binding_digest = models.TextField()
    new_binding_digest = models.TextField()
    actor_subject = models.TextField()
    reason = models.TextField()
    created_at = models.DateTimeField(db_default=CLOCK)

    class Meta:
        db_table = "archive_binding_migration"
        indexes: ClassVar = [models.Index(fields=["namespace", "created_at", "id"], name="binding_migration_keyset")]
        triggers: ClassVar = [*triggers.of_append_only_memory(), truths.MigrationTruth()]

    def __str__(self) -> str:
        return f"{self.old_policy_revision} to {self.new_policy_revision}"
