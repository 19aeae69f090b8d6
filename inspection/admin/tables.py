"""Every table of the archive, of what is derived and of the host: its columns, by name. No text, vector or secret."""

import json
from typing import Any, Final

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.html import format_html

from archive.authority import Action
from archive.lifecycle import State
from archive.models import (
    BindingMigration,
    ConfiguredBinding,
    ConfiguredBindingHistory,
    Flag,
    Grant,
    IntakeRequest,
    LifecycleEvent,
    MemorySpace,
    Namespace,
    Note,
    Principal,
    Recall,
    Role,
    Source,
    Token,
)
from inspection.admin.scope import Scope
from inspection.admin.site import Column, Looking, LookingSite, Table, column
from inspection.templatetags.showing import age, breakable, full_time, short
from semantic.lifecycle import GenerationState
from semantic.lifecycle import State as DerivationState
from semantic.models import Derivation, Generation

_JSON_MAX: Final = 20_000


def _whole(value: object) -> object:
    return format_html("<code>{}</code>", value)


def _json(value: object) -> object:
    told = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    if len(told) > _JSON_MAX:
        told = told[:_JSON_MAX] + "\n… cut here; the page of the record shows it whole"
    return format_html('<pre class="json" tabindex="0">{}</pre>', told)


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _words(value: Any) -> str:
    return ", ".join(str(one) for one in value)


def _namespace() -> Column:
    return column("Namespace", "namespace.key", breakable)


def _age(label: str, where: str) -> Column:
    return column(label, where, age)


def _time(label: str, where: str) -> Column:
    return column(label, where, full_time)


# --- which rows ------------------------------------------------------------------------------------------------------


def _of_namespaces(model: type[Any]) -> Any:
    def rows(scope: Scope, action: Action) -> "QuerySet[Any]":
        found: QuerySet[Any] = model.objects.filter(namespace_id__in=scope.namespaces(action))
        return found

    return rows


def _namespaces(scope: Scope, action: Action) -> "QuerySet[Any]":
    return Namespace.objects.filter(id__in=scope.namespaces(action))


def _spaces(scope: Scope, action: Action) -> "QuerySet[Any]":
    return MemorySpace.objects.filter(
        Exists(Namespace.objects.filter(id__in=scope.namespaces(action), space_id=OuterRef("id")))
    )


def _by_key(model: type[Any]) -> Any:
    def rows(scope: Scope, action: Action) -> "QuerySet[Any]":
        found: QuerySet[Any] = model.objects.filter(namespace_key__in=scope.keys(action))
        return found

    return rows


def _principals(scope: Scope, action: Action) -> "QuerySet[Any]":
    """Whoever was ever granted anything in these namespaces; nobody else is shown to be there."""
    return Principal.objects.filter(
        Exists(Grant.objects.filter(subject=OuterRef("subject"), namespace_key__in=scope.keys(action)))
    )


def _tokens(scope: Scope, action: Action) -> "QuerySet[Any]":
    return Token.objects.filter(principal__in=_principals(scope, action))


def _roles(scope: Scope, action: Action) -> "QuerySet[Any]":
    return Role.objects.all()


TABLES: Final = (
    Table(
        Namespace,
        "Namespaces",
        "What was ever taken in, under which owner and policy",
        Action.INSPECT_METADATA,
        _namespaces,
        (
            column("Namespace", "key", breakable),
            column("Owner", "owner", breakable),
            column("Policy", "policy_revision", breakable),
            column("Words", "text_configuration"),
            column("State of the words", "lexical_state"),
            _age("Age", "created_at"),
        ),
        (
            column("Profile", "profile"),
            column("Classification", "classification"),
            column("Binding digest", "binding_digest", _whole),
            column("Lexer fingerprint", "lexer_fingerprint", _whole),
            column("Row version", "row_version"),
            column("Space", "space_id", _whole),
            _time("Retained at", "created_at"),
        ),
        ("key", "id"),
        ("key",),
    ),
    Table(
        Note,
        "Notes",
        "Each revision of each source, tombstones too",
        Action.INSPECT_METADATA,
        _of_namespaces(Note),
        (
            column("Source", "source.source_key", breakable),
            column("Revision", "source_revision", breakable),
            column("State", "state"),
            column("Version", "lifecycle_version"),
            _namespace(),
            _age("Age", "created_at"),
        ),
        (
            column("Note", "id", _whole),
            column("Kind", "kind"),
            column("Origin, as asserted", "asserted_origin", breakable),
            column("Text digest", "text_digest", _whole),
            column("Material digest", "material_digest", _whole),
            column("Characters", "char_count"),
            column("Bytes", "byte_count"),
            column("Classification", "classification"),
            column("Retention", "retention_class"),
            _time("Retained until", "retain_until"),
            _time("Observed", "observed_at"),
            column("Taken in by", "admitted_subject", breakable),
            column("Policy", "policy_revision", breakable),
            _time("Taken in", "created_at"),
            _time("State since", "state_changed_at"),
            _time("Promoted", "promoted_at"),
            _time("Archived", "archived_at"),
            _time("Revoked", "revoked_at"),
            column("Replaced by", "superseded_by_id", _whole),
        ),
        ("-namespace_id", "-created_at", "-id"),
        ("id", "source__source_key", "text_digest"),
        tuple(state.value for state in State),
    ),
    Table(
        Source,
        "Sources",
        "Where texts came from, as asserted",
        Action.INSPECT_METADATA,
        _of_namespaces(Source),
        (column("Source", "source_key", breakable), _namespace(), _age("Age", "created_at")),
        (_time("First seen", "created_at"),),
        ("namespace_id", "source_key"),
        ("source_key",),
    ),
    Table(
        LifecycleEvent,
        "Events",
        "Every step of every note, and who took it",
        Action.INSPECT_METADATA,
        _of_namespaces(LifecycleEvent),
        (
            column("Event", "id"),
            column("To", "to_state"),
            column("Note", "note_id", short),
            column("By", "subject", breakable),
            _namespace(),
            _age("Age", "created_at"),
        ),
        (
            column("Note, in full", "note_id", _whole),
            column("From", "from_state"),
            column("From version", "from_version"),
            column("To version", "to_version"),
            column("Cause", "cause"),
            column("Caused by note", "caused_by_note_id", _whole),
            column("Reason", "reason"),
            column("Policy", "policy_revision", breakable),
            _time("Happened", "created_at"),
        ),
        ("-namespace_id", "-id"),
        ("id", "note_id"),
        tuple(state.value for state in State),
        state_in="to_state",
    ),
    Table(
        IntakeRequest,
        "Intakes",
        "Request identities and the note that each led to",
        Action.INSPECT_METADATA,
        _of_namespaces(IntakeRequest),
        (
            column("Request", "request_id", breakable),
            column("Note", "note_id", short),
            column("New note", "created_note", _yes),
            column("By", "subject", breakable),
            _namespace(),
            _age("Age", "created_at"),
        ),
        (
            column("Note, in full", "note_id", _whole),
            column("Request digest", "request_digest", _whole),
            column("Material digest", "material_digest", _whole),
            _time("Asked", "created_at"),
        ),
        ("namespace_id", "request_id"),
        ("request_id", "note_id"),
    ),
    Table(
        Flag,
        "Flags",
        "Marks that agents left on notes",
        Action.INSPECT_METADATA,
        _of_namespaces(Flag),
        (
            column("Flag", "id"),
            column("Reason", "reason"),
            column("Note", "note_id", short),
            column("By", "subject", breakable),
            _namespace(),
            _age("Age", "created_at"),
        ),
        (
            column("Note, in full", "note_id", _whole),
            column("Version", "lifecycle_version"),
            _time("Flagged", "created_at"),
        ),
        ("-namespace_id", "-id"),
        ("id", "note_id"),
    ),
    Table(
        Recall,
        "Receipts",
        "What was selected for whom, without a word of it",
        Action.INSPECT_RECEIPT,
        _of_namespaces(Recall),
        (
            column("Request", "request_id", breakable),
            column("Schema", "schema"),
            column("Asked by", "subject", breakable),
            column("Digest", "receipt_digest", short),
            _namespace(),
            _age("Age", "created_at"),
        ),
        (
            column("Receipt", "id", _whole),
            column("Receipt digest", "receipt_digest", _whole),
            column("Request digest", "request_digest", _whole),
            column("Purpose", "purpose"),
            _time("Published", "created_at"),
            column("As stored", "receipt", _json),
        ),
        ("-namespace_id", "-created_at", "-id"),
        ("id", "request_id", "receipt_digest"),
    ),
    Table(
        Generation,
        "Generations",
        "Embedding index versions",
        Action.INSPECT_DERIVATION,
        _of_namespaces(Generation),
        (
            column("Generation", "reference", breakable),
            column("State", "state"),
            column("Dimensions", "dimensions"),
            column("Registered by", "registered_by", breakable),
            _namespace(),
            _age("Age", "registered_at"),
        ),
        (
            column("Identifier", "id", _whole),
            column("Manifest digest", "manifest_digest", _whole),
            _time("Registered", "registered_at"),
            column("Retired by", "retired_by", breakable),
            _time("Retired", "retired_at"),
            column("Manifest", "manifest", _json),
        ),
        ("-namespace_id", "reference"),
        ("id", "reference", "manifest_digest"),
        tuple(state.value for state in GenerationState),
    ),
    Table(
        Derivation,
        "Derivations",
        "One note in one generation; vectors are never shown",
        Action.INSPECT_DERIVATION,
        _of_namespaces(Derivation),
        (
            column("Source", "source_key", breakable),
            column("State", "state"),
            column("Generation", "generation.reference", breakable),
            column("Attempts", "attempt"),
            _namespace(),
            _age("Age", "prepared_at"),
        ),
        (
            column("Derivation", "id", _whole),
            column("Note", "note_id", _whole),
            column("Revision", "source_revision", breakable),
            column("Text digest", "text_digest", _whole),
            column("Row version", "row_version"),
            _time("Claimed", "claimed_at"),
            _time("Deadline", "deadline"),
            column("Failure", "failure_code"),
            column("Invalidated by", "invalidation"),
            column("Vector digest", "vector_digest", _whole),
            _time("Prepared", "prepared_at"),
            _time("Settled", "settled_at"),
            column("Receipt", "receipt", _json),
        ),
        ("-namespace_id", "-prepared_at", "-id"),
        ("id", "note_id", "source_key"),
        tuple(state.value for state in DerivationState),
    ),
    Table(
        BindingMigration,
        "Binding migrations",
        "Every admitted change of owner, policy or words",
        Action.INSPECT_METADATA,
        _of_namespaces(BindingMigration),
        (
            column("Migration", "id", short),
            column("To owner", "new_owner", breakable),
            column("To policy", "new_policy_revision", breakable),
            column("By", "actor_subject", breakable),
            _namespace(),
            _age("Age", "created_at"),
        ),
        (
            column("From owner", "old_owner", breakable),
            column("From policy", "old_policy_revision", breakable),
            column("From words", "old_text_configuration"),
            column("To words", "new_text_configuration"),
            column("Reason", "reason"),
            _time("Migrated", "created_at"),
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
            column("In full", "id", _whole),
            _time("Private content since", "private_content_at"),
            _time("Sealed", "sealed_at"),
            _time("Retired", "retired_at"),
        ),
        ("id",),
        ("id",),
    ),
    Table(
        ConfiguredBinding,
        "Configured namespaces",
        "What is served today",
        Action.DISCOVER_CONFIGURATION,
        _by_key(ConfiguredBinding),
        (
            column("Namespace", "namespace_key", breakable),
            column("Owner", "owner", breakable),
            column("Policy", "policy_revision", breakable),
            column("Generation", "generation", breakable),
            column("Second person", "second_person", _yes),
            _age("Configured", "configured_at"),
        ),
        (
            column("Words", "text_configuration"),
            column("Configured by", "configured_by", breakable),
            _time("Configured at", "configured_at"),
            _time("Disabled", "disabled_at"),
        ),
        ("namespace_key",),
        ("namespace_key",),
    ),
    Table(
        ConfiguredBindingHistory,
        "Earlier configurations",
        "Every form that a configured namespace has had",
        Action.DISCOVER_CONFIGURATION,
        _by_key(ConfiguredBindingHistory),
        (
            column("Namespace", "namespace_key", breakable),
            column("Owner", "owner", breakable),
            column("Policy", "policy_revision", breakable),
            column("Configured by", "configured_by", breakable),
            column("Second person", "second_person", _yes),
            _age("Recorded", "recorded_at"),
        ),
        (
            column("Words", "text_configuration"),
            column("Generation", "generation", breakable),
            _time("Configured at", "configured_at"),
            _time("Disabled", "disabled_at"),
        ),
        ("-id",),
        ("namespace_key",),
    ),
    Table(
        Grant,
        "Grants",
        "One action for one subject, given and withdrawn",
        Action.GRANT,
        _by_key(Grant),
        (
            column("Subject", "subject", breakable),
            column("Action", "action"),
            column("Namespace", "namespace_key", breakable),
            column("Given by", "granted_by", breakable),
            _age("Withdrawn", "revoked_at"),
            _age("Age", "created_at"),
        ),
        (
            column("Purpose", "purpose"),
            column("Owner", "owner", breakable),
            column("Policy", "policy_revision", breakable),
            _time("From", "valid_from"),
            _time("Until", "valid_until"),
            _time("Withdrawn at", "revoked_at"),
            _time("Given", "created_at"),
        ),
        ("-id",),
        ("subject", "action"),
    ),
    Table(
        Principal,
        "Principals",
        "Who acts, under which subject",
        Action.GRANT,
        _principals,
        (column("Subject", "subject", breakable), column("Active", "active", _yes), _age("Age", "created_at")),
        (column("User", "user_id"), _time("Made", "created_at")),
        ("subject",),
        ("subject",),
    ),
    Table(
        Token,
        "Tokens",
        "By prefix; the secret is kept nowhere and its digest shown nowhere",
        Action.GRANT,
        _tokens,
        (
            column("Prefix", "prefix"),
            column("Subject", "principal.subject", breakable),
            column("Name", "name", breakable),
            _age("Last used", "last_used_at"),
            _time("Ends", "expires_at"),
            _age("Age", "created_at"),
        ),
        (
            column("Made by", "created_by", breakable),
            _time("Revoked", "revoked_at"),
            _time("Last used at", "last_used_at"),
            _time("Made", "created_at"),
        ),
        ("-id",),
        ("prefix", "principal__subject"),
    ),
    Table(
        Role,
        "Roles",
        "Names for sets of actions that are granted together",
        Action.GRANT,
        _roles,
        (column("Role", "name"), column("Actions", "actions", _words)),
        (),
        ("name",),
        ("name",),
    ),
)

site: Final = LookingSite(name="admin")
for _table in TABLES:
    site.register(_table.model, type(f"{_table.model.__name__}Looking", (Looking,), {"table": _table}))
