"""The shapes that only reads answer with."""

from typing import Final

from archive import limits
from archive.api import schema
from semantic.api.schema import RECEIPT as SEMANTIC_RECEIPT

CURSOR_OR_NULL: Final[schema.Schema] = schema.nullable({"type": "string"})
NOTES: Final = schema.component(
    "Notes", schema.shape({"items": schema.array(schema.NOTE, limits.PAGE_SIZE_MAX), "next_cursor": CURSOR_OR_NULL})
)
INTAKE_RECORD: Final = schema.component(
    "IntakeRecord",
    schema.shape(
        {
            "request_id": schema.ADDRESS_KEY,
            "request_digest": schema.DIGEST,
            "subject": schema.IDENTIFIER,
            "created_note": {"type": "boolean"},
            "created_at": schema.TIME,
            "note": schema.NOTE,
        }
    ),
)
EVENT: Final = schema.component(
    "Event",
    schema.shape(
        {
            "sequence": {"type": "integer", "minimum": 1},
            "note_id": schema.UUID,
            "from_state": schema.nullable(schema.NAMED_STATE),
            "to_state": schema.NAMED_STATE,
            "from_version": schema.whole(0, 2**31 - 1),
            "to_version": schema.VERSION,
            "cause": schema.NAMED_CAUSE,
            "caused_by_note": schema.nullable(schema.UUID),
            "reason": schema.nullable(schema.NAMED_REASON),
            "subject": schema.IDENTIFIER,
            "policy_revision": schema.IDENTIFIER,
            "created_at": schema.TIME,
        }
    ),
)
NOTE_EVENTS: Final = schema.component("NoteEvents", schema.shape({"items": schema.array(EVENT)}))
EVENTS: Final = schema.component(
    "Events",
    schema.shape(
        {"items": schema.array(EVENT, limits.PAGE_SIZE_MAX), "next_cursor": CURSOR_OR_NULL},
        description="`next_cursor` goes on where this page ended, also when nothing has happened since.",
    ),
)
HISTORICAL_RECEIPT: Final = schema.component(
    "HistoricalReceipt",
    schema.shape(
        {
            "receipt": {"oneOf": [schema.RECEIPT, SEMANTIC_RECEIPT]},
            "current_eligibility": {"type": "string", "enum": ["not_assessed"]},
        },
        description="What was selected then. It says nothing of what may be recalled today.",
    ),
)
OWN_INTAKES: Final = schema.component(
    "OwnIntakes",
    schema.shape(
        {
            "items": schema.array(
                schema.component(
                    "OwnIntake",
                    schema.shape(
                        {
                            "id": schema.UUID,
                            "source_key": schema.IDENTIFIER,
                            "source_revision": schema.IDENTIFIER,
                            "state": schema.NAMED_STATE,
                            "lifecycle_version": schema.VERSION,
                            "text_digest": schema.DIGEST,
                            "created_at": schema.TIME,
                            "state_changed_at": schema.TIME,
                            "decision": schema.nullable(
                                schema.component(
                                    "NewestDecision",
                                    schema.shape(
                                        {
                                            "to_state": schema.NAMED_STATE,
                                            "cause": schema.NAMED_CAUSE,
                                            "reason": schema.nullable(schema.NAMED_REASON),
                                            "created_at": schema.TIME,
                                        }
                                    ),
                                )
                            ),
                        }
                    ),
                ),
                limits.PAGE_SIZE_MAX,
            ),
            "next_cursor": CURSOR_OR_NULL,
        }
    ),
)
INTERFACE: Final = schema.component(
    "InterfaceProjection",
    schema.shape(
        {
            "pattern": schema.nullable({"type": "string", "pattern": schema.pattern(limits.PATTERN_NAME)}),
            "requests_profile": {
                "oneOf": [{"type": "boolean"}, {"type": "string", "enum": ["unknown"]}],
                "description": "`unknown` where nobody is configured to name the default, or cannot just now.",
            },
        },
        description="A comparison of two configurations; nothing of readiness, nor of any run.",
    ),
)
CONFIGURATION: Final = schema.component(
    "Configuration",
    schema.shape(
        {
            "profile": {"type": "string", "enum": [limits.PROFILE]},
            "policy": {"type": "string", "enum": [limits.LEXICAL_POLICY]},
            "bindings": schema.array(
                schema.component(
                    "Binding",
                    schema.shape(
                        {
                            "profile": {"type": "string", "enum": [limits.PROFILE]},
                            "namespace": schema.ADDRESS_KEY,
                            "owner": schema.IDENTIFIER,
                            "policy_revision": schema.IDENTIFIER,
                            "binding_digest": schema.DIGEST,
                            "text_configuration": {"type": "string"},
                            "second_person": {"type": "boolean"},
                        }
                    ),
                ),
                limits.PAGE_SIZE_MAX,
            ),
            "next_cursor": CURSOR_OR_NULL,
        },
        description="What is configured; nothing about material that is retained already.",
    ),
)
