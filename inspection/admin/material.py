"""What was taken in and what became of it: namespaces, notes, their history, recalls."""

from typing import Any, Final

from django.db.models import QuerySet

from archive.authority import Action
from archive.lifecycle import State
from archive.models import Flag, IntakeRequest, LifecycleEvent, Namespace, Note, Recall, Source
from archive.records import NUMBER
from inspection.admin.cells import age_of, namespace, of_namespaces, pretty, time_of, whole, yes
from inspection.admin.scope import Scope
from inspection.admin.site import Table, column
from inspection.templatetags.showing import badge, breakable, short


def _namespaces(scope: Scope, action: Action) -> "QuerySet[Any]":
    return Namespace.objects.filter(id__in=scope.namespaces(action))


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
            age_of("Age", "created_at"),
        ),
        (
            column("Profile", "profile"),
            column("Classification", "classification"),
            column("Binding digest", "binding_digest", whole),
            column("Lexer fingerprint", "lexer_fingerprint", whole),
            column("Row version", "row_version"),
            column("Space", "space_id", whole),
            time_of("Retained at", "created_at"),
        ),
        ("key", "id"),
        ("key",),
    ),
    Table(
        Note,
        "Notes",
        "Each revision of each source, tombstones too",
        Action.INSPECT_METADATA,
        of_namespaces(Note),
        (
            column("Source", "source.source_key", breakable),
            column("Revision", "source_revision", breakable),
            column("State", "state", badge),
            column("Version", "lifecycle_version"),
            namespace(),
            age_of("Age", "created_at"),
        ),
        (
            column("Note", "id", whole),
            column("Kind", "kind"),
            column("Origin, as asserted", "asserted_origin", breakable),
            column("Text digest", "text_digest", whole),
            column("Material digest", "material_digest", whole),
            column("Characters", "char_count"),
            column("Bytes", "byte_count"),
            column("Classification", "classification"),
            column("Retention", "retention_class"),
            time_of("Retained until", "retain_until"),
            time_of("Observed", "observed_at"),
            column("Taken in by", "admitted_subject", breakable),
            column("Policy", "policy_revision", breakable),
            time_of("Taken in", "created_at"),
            time_of("State since", "state_changed_at"),
            time_of("Promoted", "promoted_at"),
            time_of("Archived", "archived_at"),
            time_of("Revoked", "revoked_at"),
            column("Replaced by", "superseded_by_id", whole),
        ),
        ("-namespace_id", NUMBER.desc()),
        ("id", "source__source_key", "text_digest"),
        tuple(state.value for state in State),
    ),
    Table(
        Source,
        "Sources",
        "Where texts came from, as asserted",
        Action.INSPECT_METADATA,
        of_namespaces(Source),
        (column("Source", "source_key", breakable), namespace(), age_of("Age", "created_at")),
        (time_of("First seen", "created_at"),),
        ("namespace_id", "source_key"),
        ("source_key",),
    ),
    Table(
        LifecycleEvent,
        "Events",
        "Every step of every note, and who took it",
        Action.INSPECT_METADATA,
        of_namespaces(LifecycleEvent),
        (
            column("Event", "id"),
            column("To", "to_state", badge),
            column("Note", "note_id", short),
            column("By", "subject", breakable),
            namespace(),
            age_of("Age", "created_at"),
        ),
        (
            column("Note, in full", "note_id", whole),
            column("From", "from_state"),
            column("From version", "from_version"),
            column("To version", "to_version"),
            column("Cause", "cause"),
            column("Caused by note", "caused_by_note_id", whole),
            column("Reason", "reason"),
            column("Policy", "policy_revision", breakable),
            time_of("Happened", "created_at"),
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
        of_namespaces(IntakeRequest),
        (
            column("Request", "request_id", breakable),
            column("Note", "note_id", short),
            column("New note", "created_note", yes),
            column("By", "subject", breakable),
            namespace(),
            age_of("Age", "created_at"),
        ),
        (
            column("Note, in full", "note_id", whole),
            column("Request digest", "request_digest", whole),
            column("Material digest", "material_digest", whole),
            time_of("Asked", "created_at"),
        ),
        ("namespace_id", "request_id"),
        ("request_id", "note_id"),
    ),
    Table(
        Flag,
        "Flags",
        "Marks that agents left on notes",
        Action.INSPECT_METADATA,
        of_namespaces(Flag),
        (
            column("Flag", "id"),
            column("Reason", "reason"),
            column("Note", "note_id", short),
            column("By", "subject", breakable),
            namespace(),
            age_of("Age", "created_at"),
        ),
        (
            column("Note, in full", "note_id", whole),
            column("Version", "lifecycle_version"),
            time_of("Flagged", "created_at"),
        ),
        ("-namespace_id", "-id"),
        ("id", "note_id"),
    ),
    Table(
        Recall,
        "Receipts",
        "What was selected for whom, without a word of it",
        Action.INSPECT_RECEIPT,
        of_namespaces(Recall),
        (
            column("Request", "request_id", breakable),
            column("Schema", "schema"),
            column("Asked by", "subject", breakable),
            column("Digest", "receipt_digest", short),
            namespace(),
            age_of("Age", "created_at"),
        ),
        (
            column("Receipt", "id", whole),
            column("Receipt digest", "receipt_digest", whole),
            column("Request digest", "request_digest", whole),
            column("Purpose", "purpose"),
            time_of("Published", "created_at"),
            column("As stored", "receipt", pretty),
        ),
        ("-namespace_id", "-created_at", "-id"),
        ("id", "request_id", "receipt_digest"),
    ),
)
