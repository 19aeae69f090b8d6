"""What is derived: generations, and one note in one of them."""

from typing import Final

from archive.authority import Action
from inspection.admin.cells import age_of, namespace, of_namespaces, pretty, time_of, whole
from inspection.admin.site import Table, column
from inspection.templatetags.showing import badge, breakable
from semantic.lifecycle import GenerationState
from semantic.lifecycle import State as DerivationState
from semantic.models import Derivation, Generation

TABLES: Final = (
    Table(
        Generation,
        "Generations",
        "Embedding index versions",
        Action.INSPECT_DERIVATION,
        of_namespaces(Generation),
        (
            column("Generation", "reference", breakable),
            column("State", "state", badge),
            column("Dimensions", "dimensions"),
            column("Registered by", "registered_by", breakable),
            namespace(),
            age_of("Age", "registered_at"),
        ),
        (
            column("Identifier", "id", whole),
            column("Manifest digest", "manifest_digest", whole),
            time_of("Registered", "registered_at"),
            column("Retired by", "retired_by", breakable),
            time_of("Retired", "retired_at"),
            column("Manifest", "manifest", pretty),
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
        of_namespaces(Derivation),
        (
            column("Source", "source_key", breakable),
            column("State", "state", badge),
            column("Generation", "generation.reference", breakable),
            column("Attempts", "attempt"),
            namespace(),
            age_of("Age", "prepared_at"),
        ),
        (
            column("Derivation", "id", whole),
            column("Note", "note_id", whole),
            column("Revision", "source_revision", breakable),
            column("Text digest", "text_digest", whole),
            column("Row version", "row_version"),
            time_of("Claimed", "claimed_at"),
            time_of("Deadline", "deadline"),
            column("Failure", "failure_code"),
            column("Invalidated by", "invalidation"),
            column("Vector digest", "vector_digest", whole),
            time_of("Prepared", "prepared_at"),
            time_of("Settled", "settled_at"),
            column("Receipt", "receipt", pretty),
        ),
        ("-namespace_id", "-prepared_at", "-id"),
        ("id", "note_id", "source_key"),
        tuple(state.value for state in DerivationState),
    ),
)
