"""Under which bindings namespaces are and were served."""

from typing import Any, Final

from django.db.models import Exists, OuterRef, QuerySet

from archive.authority import Action
from archive.models import BindingMigration, ConfiguredBinding, ConfiguredBindingHistory, MemorySpace, Namespace
from inspection.admin.cells import age_of, by_key, namespace, of_namespaces, time_of, whole, yes
from inspection.admin.scope import Scope
from inspection.admin.site import Table, column
from inspection.templatetags.showing import breakable, short


def _spaces(scope: Scope, action: Action) -> "QuerySet[Any]":
    return MemorySpace.objects.filter(
        Exists(Namespace.objects.filter(id__in=scope.namespaces(action), space_id=OuterRef("id")))
    )


TABLES: Final = (
    Table(
        BindingMigration,
        "Binding migrations",
        "Every admitted change of owner, policy or words",
        Action.INSPECT_METADATA,
        of_namespaces(BindingMigration),
        (
            column("Migration", "id", short),
            column("To owner", "new_owner", breakable),
            column("To policy", "new_policy_revision", breakable),
            column("By", "actor_subject", breakable),
            namespace(),
            age_of("Age", "created_at"),
        ),
        (
            column("From owner", "old_owner", breakable),
            column("From policy", "old_policy_revision", breakable),
            column("From words", "old_text_configuration"),
            column("To words", "new_text_configuration"),
            column("Reason", "reason"),
            time_of("Migrated", "created_at"),
        ),
        ("-namespace_id", "-created_at", "-id"),
        ("id",),
    ),
    Table(
        MemorySpace,
        "Spaces",
        "Who owns namespaces",
        Action.INSPECT_METADATA,
        _spaces,
        (
            column("Space", "id", short),
            column("Kind", "kind"),
            column("Lifecycle", "lifecycle"),
            column("Generation", "generation"),
        ),
        (
            column("In full", "id", whole),
            time_of("Private content since", "private_content_at"),
            time_of("Sealed", "sealed_at"),
            time_of("Retired", "retired_at"),
        ),
        ("id",),
        ("id",),
    ),
    Table(
        ConfiguredBinding,
        "Configured namespaces",
        "What is served today",
        Action.DISCOVER_CONFIGURATION,
        by_key(ConfiguredBinding),
        (
            column("Namespace", "namespace_key", breakable),
            column("Owner", "owner", breakable),
            column("Policy", "policy_revision", breakable),
            column("Generation", "generation", breakable),
            column("Second person", "second_person", yes),
            age_of("Configured", "configured_at"),
        ),
        (
            column("Words", "text_configuration"),
            column("Configured by", "configured_by", breakable),
            time_of("Configured at", "configured_at"),
            time_of("Disabled", "disabled_at"),
        ),
        ("namespace_key",),
        ("namespace_key",),
    ),
    Table(
        ConfiguredBindingHistory,
        "Earlier configurations",
        "Every form that a configured namespace has had",
        Action.DISCOVER_CONFIGURATION,
        by_key(ConfiguredBindingHistory),
        (
            column("Namespace", "namespace_key", breakable),
            column("Owner", "owner", breakable),
            column("Policy", "policy_revision", breakable),
            column("Configured by", "configured_by", breakable),
            column("Second person", "second_person", yes),
            age_of("Recorded", "recorded_at"),
        ),
        (
            column("Words", "text_configuration"),
            column("Generation", "generation", breakable),
            time_of("Configured at", "configured_at"),
            time_of("Disabled", "disabled_at"),
        ),
        ("-id",),
        ("namespace_key",),
    ),
)
