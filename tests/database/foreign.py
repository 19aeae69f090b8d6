"""Of every column: what writes it, and foreign values that a caller of the database may try to put there.

`Refused` is what a rule says to them, `Made` that the database's own value stands, `Unwritten` that nobody may bring a
value at all, and `Free` why there is none that the database could know to be wrong.
"""

from dataclasses import dataclass
from typing import Any

from archive import limits

OLD = "1999-01-01T00:00:00Z"
AHEAD = "2999-01-01T00:00:00Z"
ZEROS = "0" * 64
NO_IDENTIFIER = ("free words", "", "a" * 129, "a\n")
RANDOM_NOT = ("00000000-0000-1000-8000-000000000001", "66726565-2077-6f72-6473-206f66206d65")
OUTSIDE = (OLD, AHEAD, "infinity", "-infinity")


@dataclass(frozen=True)
class Refused:
    """Each of these values is refused under this SQLSTATE, in this word or by the constraint of this name."""

    sqlstate: str
    rule: str
    values: tuple[Any, ...]
    # What else has to differ, so that no other rule speaks first.
    beside: dict[str, Any] | None = None


@dataclass(frozen=True)
class Made:
    """The database's own value stands, whatever was sent."""

    value: Any


@dataclass(frozen=True)
class Unwritten:
    """The service has no privilege to bring a value."""


@dataclass(frozen=True)
class Free:
    """Why any value of the type is one that may be there."""

    why: str


Kind = Refused | Made | Unwritten | Free
Column = Kind | tuple[Kind, ...]


def false(rule: str, *values: Any, **beside: Any) -> Refused:
    return Refused("LY012", rule, values, beside or None)


def _receipt(*values: Any) -> Refused:
    return Refused("LY011", "receipt_row", values)


ARCHIVING = "UPDATE archive_note SET state = 'archived', lifecycle_version = lifecycle_version + 1"
NOWHERE = "00000000-0000-4000-8000-000000000000"
SPACE: dict[str, Column] = {"space_id": Made(NOWHERE), "space_generation": Made(7)}
# Another namespace is not held; the rules of one that is are those of the columns that name its rows.
NAMESPACE: dict[str, Column] = {"namespace_id": Refused("LY005", "namespace_not_held", (987654321,)), **SPACE}
ELSEWHERE = Refused("LY001", "other_namespace", (NOWHERE,))

COLUMNS: dict[str, dict[str, Column]] = {
    "archive_memory_space": dict.fromkeys(
        (
            *("id", "kind", "owner_membership", "generation", "lifecycle"),
            *("private_content_at", "sealed_at", "retired_at"),
        ),
        Unwritten(),
    ),
    "archive_namespace": {
        "id": Unwritten(),
        "key": false("namespace_form", *NO_IDENTIFIER, "with/slash"),
        "profile": false("namespace_form", "other@1"),
        "owner": (false("namespace_form", *NO_IDENTIFIER), false("namespace_digest", "mallory", binding_digest=ZEROS)),
        "policy_revision": false("namespace_form", *NO_IDENTIFIER),
        "binding_digest": false("namespace_digest", ZEROS, "free words"),
        **SPACE,
        "classification": Refused("23514", "namespace_public", ("secret",)),
        "text_configuration": (
            false("namespace_form", "free words", ""),
            Refused("42704", "", ("no_such_configuration",)),
        ),
        "lexical_state": false("namespace_birth", "rebuilding"),
        "lexer_fingerprint": false("namespace_fingerprint", ZEROS),
        "row_version": false("namespace_birth", 2, 0),
        "created_at": false("namespace_time", *OUTSIDE),
    },
    "archive_source": {
        "id": Unwritten(),
        **NAMESPACE,
        "source_key": false("source_form", *NO_IDENTIFIER),
        "created_at": false("source_time", *OUTSIDE),
    },
    "archive_note": {
        "id": (
            false("note_identity_form", *RANDOM_NOT),
            Refused("23505", "archive_note_pkey", ("@promoted",)),
        ),
        "note_number": Unwritten(),
        **NAMESPACE,
        "source_id": Refused("LY001", "other_namespace", (987654321, "@clover_source")),
        "source_revision": false("note_form", *NO_IDENTIFIER),
        "kind": (
            false("note_form", "free words", "", "a" * 65),
            false("note_material", "other", material_digest=ZEROS),
        ),
        "asserted_origin": (
            false("note_form", "free words", "", "a" * 2049),
            false("note_material", "letters/9", material_digest=ZEROS),
        ),
        "state": Refused("LY002", "note_birth", ("promoted", "archived")),
        "lifecycle_version": Refused("LY002", "note_birth", (2, 0)),
        "text": (
            false("note_length", "Other words, and more of them."),
            false("note_digest", "Roses want evening fun."),
            *(
                false("note_text_form", text, char_count=None, byte_count=None, text_digest=None)
                for text in ("", " \t\n", "\u2028\u200b\u00a0", "a" + "\u0301" * (limits.MARKS_IN_A_ROW_MAX + 1))
            ),
        ),
        "text_digest": false("note_digest", ZEROS, "free words"),
        "char_count": false("note_length", 1, 16_384),
        "byte_count": false("note_length", 1, 65_536),
        "material_digest": false("note_material", ZEROS, "free words"),
        "classification": Refused("23514", "note_public", ("secret",)),
        "retention_class": false("note_form", "free words", "", "a" * 65),
        "retain_until": (
            false("note_form", "infinity", "-infinity", "12026-01-01T00:00:00Z"),
            false("note_material", AHEAD, material_digest=ZEROS),
        ),
        "observed_at": (
            false("note_form", "infinity", "-infinity"),
            false("note_material", OLD, material_digest=ZEROS),
        ),
        "admitted_subject": false("note_form", *NO_IDENTIFIER),
        "policy_revision": false("note_binding", "policy-9", "free words"),
        "created_at": false("note_time", *OUTSIDE),
        "state_changed_at": false("note_time", *OUTSIDE),
        **dict.fromkeys(("promoted_at", "archived_at", "revoked_at"), false("note_birth_times", OLD)),
        "superseded_by_id": (ELSEWHERE, false("note_birth_times", "@promoted")),
    },
    "archive_lifecycle_event": {
        "id": Made(-7),
        **NAMESPACE,
        "note_id": ELSEWHERE,
        "from_state": Refused("LY003", "note_without_event", ("promoted",)),
        "to_state": Refused("LY003", "note_without_event", ("promoted", "free words")),
        "from_version": Refused("23514", "event_version_step", (1, -1)),
        "to_version": (
            Refused("23514", "event_version_step", (2,)),
            Refused("LY003", "note_without_event", (3,), {"from_version": 2}),
        ),
        "cause": (
            Refused("23514", "event_cause", ("free words",)),
            Refused("23514", "event_superseded_names_its_cause", ("superseded",)),
        ),
        "caused_by_note_id": (
            ELSEWHERE,
            Refused("LY003", "note_without_event", ("@candidate",), {"cause": "superseded"}),
        ),
        "reason": Refused("23514", "event_reason", ("free words",)),
        "subject": (
            false("event_form", *NO_IDENTIFIER),
            Refused("LY003", "note_without_event", ("mallory",)),
        ),
        "policy_revision": false("event_binding", "policy-9", "free words"),
        "created_at": false("event_time", *OUTSIDE),
    },
    "archive_flag": {
        "id": Made(-7),
        **NAMESPACE,
        "note_id": ELSEWHERE,
        "lifecycle_version": false("flag_version", 1, 9, -1),
        "subject": false("flag_form", *NO_IDENTIFIER),
        "reason": Refused("23514", "flag_reason", ("free words",)),
        "created_at": false("flag_time", *OUTSIDE),
    },
    "archive_intake_request": {
        "id": Unwritten(),
        **NAMESPACE,
        "request_id": (
            false("request_form", *NO_IDENTIFIER, "with/slash"),
            false("request_digest", "another", request_digest=ZEROS),
        ),
        "request_digest": false("request_digest", ZEROS, "free words"),
        "material_digest": false("request_material", ZEROS, "free words"),
        "note_id": (ELSEWHERE, false("request_material", "@candidate")),
        "created_note": false("request_created", True),
        "subject": (
            false("request_form", *NO_IDENTIFIER),
            false("request_digest", "mallory", request_digest=ZEROS),
        ),
        "created_at": false("request_time", *OUTSIDE),
    },
    "archive_recall": {
        "id": _receipt(NOWHERE),
        **NAMESPACE,
        "request_id": _receipt("asked-otherwise"),
        "schema": Refused("23514", "recall_receipt_schema", (3,)),
        "request_digest": _receipt(ZEROS),
        "receipt": Refused("LY011", "receipt_form", ({"schema": 1, "text": "all of it"}, {})),
        "receipt_digest": _receipt(ZEROS),
        "subject": _receipt("mallory"),
        "purpose": _receipt("memory"),
        "created_at": _receipt(*OUTSIDE[:2]),
    },
    "archive_binding_migration": {
        "id": false("migration_form", *RANDOM_NOT),
        **NAMESPACE,
        "old_owner": false("migration_binding", "mallory"),
        "new_owner": (
            false("migration_form", *NO_IDENTIFIER),
            false("migration_digest", "mallory", new_binding_digest=ZEROS),
        ),
        "old_policy_revision": false("migration_binding", "policy-1"),
        "new_policy_revision": false("migration_form", *NO_IDENTIFIER),
        "old_text_configuration": false("migration_binding", "english"),
        "new_text_configuration": false("migration_form", "free words", ""),
        "old_binding_digest": false("migration_binding", ZEROS),
        "new_binding_digest": false("migration_digest", ZEROS),
        "actor_subject": false("migration_form", *NO_IDENTIFIER),
        "reason": false("migration_form", "", "a" * (limits.MIGRATION_REASON_MAX + 1)),
        "created_at": false("migration_time", *OUTSIDE),
        "transaction_id": Made("3"),
    },
    **dict.fromkeys(
        ("archive_posting",),
        dict.fromkeys(("namespace_id", "lexeme", "note_number", "tf", "length"), Unwritten()),
    ),
    "archive_corpus": dict.fromkeys(("namespace_id", "notes", "total_length"), Unwritten()),
    "lychd_binding_history": {
        "id": Unwritten(),
        **dict.fromkeys(
            (
                *("namespace_key", "owner", "policy_revision", "text_configuration", "generation", "second_person"),
                *("configured_by", "configured_at", "disabled_at", "recorded_at"),
            ),
            # Whatever the row says: it is another's to write.
            false("binding_history", None),
        ),
    },
}

_HOST = Free("the host's own account; whoever writes it is the host, and nothing of the archive is decided by it")
_NAMED = Free("a name that the host chose; a grant under a name that nothing bears allows nothing")
_WHEN = Free("a time that the host chose, ahead or past; only the clock decides what it allows")
COLUMNS |= {
    "lychd_role": {"name": _HOST, "actions": _HOST},
    "lychd_binding": {
        "id": Unwritten(),
        **dict.fromkeys(("namespace_key", "owner", "policy_revision", "text_configuration", "generation"), _NAMED),
        **dict.fromkeys(("second_person", "configured_by"), _HOST),
        **dict.fromkeys(("configured_at", "disabled_at"), _WHEN),
    },
    "lychd_principal": {
        "id": Unwritten(),
        "user_id": _HOST,
        "subject": _NAMED,
        "active": _HOST,
        "created_at": _WHEN,
        "linked_at": Made(OLD),
    },
    "lychd_grant": {
        "id": Unwritten(),
        **dict.fromkeys(("subject", "namespace_key", "owner", "purpose", "policy_revision", "action"), _NAMED),
        **dict.fromkeys(("valid_from", "valid_until", "revoked_at", "created_at"), _WHEN),
        "granted_by": _HOST,
    },
    "lychd_token": {
        "id": Unwritten(),
        "principal_id": Refused("23503", "lychd_token_principal_id_cd468092_fk_lychd_principal_id", (987654321,)),
        **dict.fromkeys(("name", "prefix", "created_by", "namespaces"), _HOST),
        "digest": Free("whoever writes a token chooses its secret"),
        **dict.fromkeys(("created_at", "expires_at", "revoked_at", "last_used_at"), _WHEN),
    },
}

# One new row in each table as a copy of one that is there; the rest of the act that it belongs to follows it.
COPIES: dict[str, tuple[str, dict[str, Any]]] = {
    "archive_namespace": ("id = %(garden)s", {"key": "hedge"}),
    "archive_source": ("id = %(roses)s", {"source_key": "tulips"}),
    "archive_note": ("id = %(candidate)s", {"id": "@fresh", "source_revision": "9"}),
    "archive_lifecycle_event": (
        "note_id = %(candidate)s AND to_version = 1",
        {"note_id": "@fresh"},
    ),
    "archive_flag": ("true", {"subject": "wanda"}),
    "archive_intake_request": ("note_id = %(promoted)s", {"request_id": "another"}),
    "archive_recall": ("true", {"id": "@fresh", "request_id": "asked-again"}),
    "archive_binding_migration": ("true", {"id": "@fresh"}),
    "lychd_binding_history": ("true", {}),
    "lychd_principal": ("subject = 'bob'", {"subject": "zoe"}),
    "lychd_token": ("true", {"digest": ZEROS}),
}

# What a step may not say of itself: SQLSTATE, word, statements.
STEPS: list[tuple[str, str, tuple[str, ...]]] = [
    *(
        ("LY012", "note_time", (f"{ARCHIVING}, {times} WHERE id = %(promoted)s",))
        for times in (
            f"state_changed_at = '{OLD}', archived_at = '{OLD}'",
            f"state_changed_at = '{AHEAD}', archived_at = '{AHEAD}'",
            f"archived_at = '{OLD}'",
            f"state_changed_at = '{OLD}'",
            "archived_at = clock_timestamp()",
        )
    ),
    ("LY012", "note_successor", (f"{ARCHIVING}, superseded_by_id = %(successor)s WHERE id = %(promoted)s",)),
    ("LY012", "note_successor", (f"{ARCHIVING}, superseded_by_id = id WHERE id = %(promoted)s",)),
    (
        "LY012",
        "namespace_fingerprint",
        (
            "SELECT set_config('lychd.lexical_rebuild', %(garden)s::text, true)",
            "UPDATE archive_namespace SET row_version = row_version + 1, lexer_fingerprint = 'x' WHERE id = %(garden)s",
        ),
    ),
]
