"""How each trigger is tripped, and what it lets through: cases as data, one list a trigger.

Statements run as the serving role with the garden and the meadow held, unless a case says otherwise.
"""

from dataclasses import dataclass

from archive.bindings import Binding
from archive.lifecycle import NOTE_EDGES, State


@dataclass(frozen=True)
class Trip:
    """Statements that a trigger refuses, with its SQLSTATE and the word it says."""

    sqlstate: str
    says: str
    wrong: tuple[str, ...]


@dataclass(frozen=True)
class Pass:
    """The legal neighbour: statements that go through to the commit."""

    right: tuple[str, ...]


Case = Trip | Pass


def _each(sqlstate: str, says: str, *statements: str) -> list[Case]:
    return [Trip(sqlstate, says, (statement,)) for statement in statements]


# --- notes -----------------------------------------------------------------------------------------------------------

ROW_OF = {
    State.CANDIDATE: "candidate",
    State.PROMOTED: "promoted",
    State.ARCHIVED: "archived",
    State.REVOKED: "tombstone",
}


def move(row: str, state: State, step: int = 1, text: str = "text") -> str:
    cleared = "NULL, asserted_origin = NULL" if state is State.REVOKED else text
    return (
        f"UPDATE archive_note SET state = '{state}', lifecycle_version = lifecycle_version + {step}, text = {cleared}"
        f" WHERE id = %({row})s"
    )


def event_of(
    row: str, start: str = "old.from_state", end: str = "n.state", *, cause: str | None = None, by: str = "alice"
) -> str:
    """Record the step that the row has just made."""
    kind = "explicit" if cause is None else "superseded"
    return (
        "INSERT INTO archive_lifecycle_event (namespace_id, note_id, from_state, to_state, from_version, to_version,"
        " cause, caused_by_note_id, subject)"
        f" SELECT n.namespace_id, n.id, {start}, {end}, n.lifecycle_version - 1, n.lifecycle_version, '{kind}',"
        f" {cause or 'NULL::uuid'}, '{by}' FROM archive_note n"
        " LEFT JOIN LATERAL (SELECT to_state AS from_state FROM archive_lifecycle_event e WHERE e.note_id = n.id"
        f" ORDER BY to_version DESC LIMIT 1) old ON true WHERE n.id = %({row})s"
    )


def _born(*, state: str = "'candidate'", version: str = "1", source: str = "%(roses)s", text: str = "'Fresh.'") -> str:
    return (
        "INSERT INTO archive_note (id, namespace_id, source_id, source_revision, kind, state, lifecycle_version, text,"
        " classification, retention_class, admitted_subject)"
        f" VALUES (%(fresh)s, %(garden)s, {source}, 'fresh', 'note', {state}, {version}, {text},"
        " 'public', 'standard', 'alice')"
    )


_BIRTH_TOLD = event_of("fresh", start="NULL")

_FENCED_COLUMNS = {
    "id": "%(fresh)s",
    "namespace_id": "%(meadow)s",
    "space_id": "%(nowhere)s",
    "space_generation": "2",
    "source_id": "%(ash_source)s",
    "source_revision": "'other'",
    "kind": "'other'",
    "text_digest": "'other'",
    "char_count": "1",
    "byte_count": "1",
    "material_digest": "'other'",
    "classification": "'other'",
    "retention_class": "'other'",
    "retain_until": "now()",
    "observed_at": "now()",
    "admitted_subject": "'mallory'",
    "policy_revision": "'other'",
    "created_at": "now()",
}

# What a decision moves; everything else in a note is fenced, the number by the database's own rule.
MOVING_COLUMNS = {
    *("state", "lifecycle_version", "text", "asserted_origin", "state_changed_at"),
    *("promoted_at", "archived_at", "revoked_at", "superseded_by_id"),
}
FENCED_COLUMNS = set(_FENCED_COLUMNS)

_TIMES = ("state_changed_at", "promoted_at", "archived_at", "revoked_at")
_ARCHIVING = "UPDATE archive_note SET state = 'archived', lifecycle_version = lifecycle_version + 1"

_SUPERSEDED = (
    f"{_ARCHIVING}, state_changed_at = now(), archived_at = now(), superseded_by_id = %(candidate)s"
    " WHERE id = %(promoted)s"
)
_SUPERSEDING = (
    event_of("promoted", cause="%(candidate)s"),
    move("candidate", State.PROMOTED),
    event_of("candidate"),
)
_REVOKED_AND_SUPERSEDED = (
    "UPDATE archive_note SET state = 'revoked', lifecycle_version = lifecycle_version + 1, text = NULL,"
    " superseded_by_id = %(promoted)s WHERE id = %(candidate)s"
)

_NOTE_IDENTITY: list[Case] = [
    *_each(
        "LY001",
        "note_identity",
        *(f"UPDATE archive_note SET {name} = {new} WHERE id = %(promoted)s" for name, new in _FENCED_COLUMNS.items()),
        # Nor while a step is made.
        *(f"{_ARCHIVING}, {name} = {value} WHERE id = %(promoted)s" for name, value in _FENCED_COLUMNS.items()),
        # Of what a step moves, nothing moves without one, and no step moves what belongs to another.
        *(f"UPDATE archive_note SET {name} = now() WHERE id = %(promoted)s" for name in _TIMES),
        *(f"UPDATE archive_note SET {name} = now() WHERE id = %(tombstone)s" for name in _TIMES),
        "UPDATE archive_note SET superseded_by_id = %(candidate)s WHERE id = %(promoted)s",
        "UPDATE archive_note SET superseded_by_id = NULL WHERE id = %(archived)s",
        *(f"{_ARCHIVING}, {name} = now() WHERE id = %(promoted)s" for name in ("promoted_at", "revoked_at")),
        _REVOKED_AND_SUPERSEDED,
    ),
    Pass((_SUPERSEDED, *_SUPERSEDING)),
]

_NOTE_TEXT: list[Case] = [
    *_each(
        "LY001",
        "note_text",
        "UPDATE archive_note SET text = 'Other words.' WHERE id = %(candidate)s",
        "UPDATE archive_note SET text = text || ' ' WHERE id = %(promoted)s",
        "UPDATE archive_note SET text = NULL WHERE id = %(promoted)s",
        "UPDATE archive_note SET text = 'It speaks again.' WHERE id = %(tombstone)s",
        move("promoted", State.ARCHIVED, text="NULL"),
        move("promoted", State.REVOKED).replace("text = NULL", "text = 'Other words.'"),
        "UPDATE archive_note SET asserted_origin = 'letters/2' WHERE id = %(promoted)s",
        "UPDATE archive_note SET asserted_origin = NULL WHERE id = %(promoted)s",
        "UPDATE archive_note SET asserted_origin = 'letters/2' WHERE id = %(candidate)s",
        "UPDATE archive_note SET asserted_origin = 'letters/2' WHERE id = %(tombstone)s",
        f"{_ARCHIVING}, asserted_origin = NULL WHERE id = %(promoted)s",
        move("promoted", State.REVOKED).replace(", asserted_origin = NULL", ""),
        move("promoted", State.REVOKED).replace("asserted_origin = NULL", "asserted_origin = 'letters/2'"),
    ),
    Pass((move("promoted", State.REVOKED), event_of("promoted"))),
    Pass(("UPDATE archive_note SET text = text WHERE id = %(promoted)s",)),
]

_NOTE_EDGE: list[Case] = [
    *_each(
        "LY002",
        "note_birth",
        _born(state="'promoted'"),
        _born(state="'archived'"),
        _born(state="'revoked'", text="NULL"),
        _born(version="2"),
        _born(version="0"),
    ),
    Pass((_born(), _BIRTH_TOLD)),
    *(
        Trip("LY003", "note_version_step" if start is end else "note_edge", (move(ROW_OF[start], end),))
        for start in State
        for end in State
        if (start, end) not in NOTE_EDGES
    ),
    # The row that is promoted makes room for its successor first.
    *(
        Pass(
            (move("promoted", State.ARCHIVED), event_of("promoted"), move(ROW_OF[start], end), event_of(ROW_OF[start]))
        )
        for start, end in sorted(NOTE_EDGES)
        if start is not State.PROMOTED
    ),
    Pass((move("promoted", State.ARCHIVED), event_of("promoted"))),
    Pass((move("promoted", State.REVOKED), event_of("promoted"))),
    *_each(
        "LY003",
        "note_version_step",
        move("promoted", State.ARCHIVED, 0),
        move("promoted", State.ARCHIVED, 2),
        move("promoted", State.ARCHIVED, -1),
        "UPDATE archive_note SET lifecycle_version = lifecycle_version + 1 WHERE id = %(promoted)s",
    ),
]

_NOTE_EVENT: list[Case] = [
    *_each("LY003", "note_without_event", _born(), move("promoted", State.ARCHIVED), move("promoted", State.REVOKED)),
    Trip("LY003", "note_without_event", (_born(), event_of("fresh", start="'promoted'"))),
    # By another than whoever took it in, and without the successor that the note names.
    Trip("LY003", "note_without_event", (_born(), event_of("fresh", start="NULL", by="bob"))),
    Trip("LY003", "note_without_event", (_SUPERSEDED, event_of("promoted"))),
    Trip("LY003", "note_without_event", (move("promoted", State.ARCHIVED), event_of("promoted", start="'candidate'"))),
    # Two steps in one transaction need two events.
    Trip(
        "LY003",
        "note_without_event",
        (move("promoted", State.ARCHIVED), move("promoted", State.REVOKED), event_of("promoted", start="'archived'")),
    ),
    Pass(
        (
            *(move("promoted", State.ARCHIVED), event_of("promoted")),
            *(move("promoted", State.REVOKED), event_of("promoted")),
        )
    ),
]

_NOTE_SAME_NAMESPACE: list[Case] = [
    *_each(
        "LY001",
        "other_namespace",
        _born(source="%(clover_source)s"),
        # A source that could follow later, in whatever namespace.
        _born(source="987654321"),
        f"{_ARCHIVING}, superseded_by_id = %(clover)s WHERE id = %(promoted)s",
    ),
    Pass((f"{_ARCHIVING}, superseded_by_id = %(candidate)s WHERE id = %(promoted)s", *_SUPERSEDING)),
]

# --- events, flags, requests -----------------------------------------------------------------------------------------


def _event(note: str, step: int, end: str, *, namespace: str = "%(garden)s", cause: str | None = None) -> str:
    kind = "explicit" if cause is None else "superseded"
    return (
        "INSERT INTO archive_lifecycle_event (namespace_id, note_id, from_state, to_state, from_version, to_version,"
        " cause, caused_by_note_id, subject, policy_revision)"
        f" VALUES ({namespace}, {note}, 'promoted', '{end}', {step - 1}, {step}, '{kind}', {cause or 'NULL'}, 'alice',"
        " 'policy-1')"
    )


_EVENT_TRUE: list[Case] = [
    *_each(
        "LY003",
        "event_without_transition",
        _event("%(promoted)s", 3, "archived"),
        _event("%(promoted)s", 4, "revoked"),
        _event("%(candidate)s", 2, "promoted"),
    ),
    Trip(
        "LY003",
        "event_without_transition",
        (_event("%(promoted)s", 3, "revoked"), move("promoted", State.ARCHIVED)),
    ),
    Pass((move("promoted", State.ARCHIVED), _event("%(promoted)s", 3, "archived"))),
    # A cause that was not promoted in this transaction, though the note names it too.
    Trip("LY003", "event_cause", (_SUPERSEDED, event_of("promoted", cause="%(candidate)s"))),
    # The event may be told before the step that it tells of; both are there at the commit.
    Pass((_event("%(promoted)s", 3, "archived"), move("promoted", State.ARCHIVED))),
]

_EVENT_SAME_NAMESPACE: list[Case] = [
    *_each(
        "LY001",
        "other_namespace",
        _event("%(clover)s", 3, "archived"),
        _event("%(promoted)s", 3, "archived", namespace="%(meadow)s"),
        _event("%(nowhere)s", 3, "archived"),
    ),
    Trip(
        "LY001",
        "other_namespace",
        (move("promoted", State.ARCHIVED), _event("%(promoted)s", 3, "archived", cause="%(clover)s")),
    ),
    Pass((_SUPERSEDED, *_SUPERSEDING)),
]


def _flag(note: str) -> str:
    return (
        f"INSERT INTO archive_flag (namespace_id, note_id, subject, reason) VALUES (%(garden)s, {note}, 'bob', 'wrong')"
    )


def _request(note: str) -> str:
    return (
        "INSERT INTO archive_intake_request (namespace_id, note_id, request_id, subject)"
        f" VALUES (%(garden)s, {note}, 'fresh', 'alice')"
    )


# --- the namespace ---------------------------------------------------------------------------------------------------


def _namespace(assignments: str, key: str = "garden") -> str:
    return f"UPDATE archive_namespace SET row_version = row_version + 1, {assignments} WHERE id = %({key})s"


def _setting(name: str, key: str = "garden") -> str:
    return f"SELECT set_config('lychd.{name}', %({key})s::text, true)"


def _migration(key: str = "garden", *, owner: str = "estate", policy: str = "policy-9", words: str = "simple") -> str:
    return (
        "INSERT INTO archive_binding_migration (id, namespace_id, new_owner, new_policy_revision,"
        " new_text_configuration, actor_subject, reason)"
        f" VALUES (%(fresh)s, %({key})s, '{owner}', '{policy}', '{words}', 'otto', 'why')"
    )


_MOVED = f"policy_revision = 'policy-9', binding_digest = '{Binding('garden', 'estate', 'policy-9').digest}'"
_REBOUND = _namespace(_MOVED)
_REWORDED = _namespace(f"{_MOVED}, text_configuration = 'english'")


def _also(assignments: str, update: str) -> str:
    return update.replace("row_version + 1,", f"row_version + 1, {assignments},")


_BINDING: list[Case] = [
    *_each(
        "LY001",
        "namespace_identity",
        *(
            _namespace(f"{name} = {value}")
            for name, value in {
                "id": "987654321",
                "key": "'hedge'",
                "profile": "'other'",
                "space_id": "%(nowhere)s",
                "space_generation": "2",
                "classification": "'other'",
                "created_at": "now()",
            }.items()
        ),
        "UPDATE archive_namespace SET row_version = row_version WHERE id = %(garden)s",
        "UPDATE archive_namespace SET row_version = row_version + 2 WHERE id = %(garden)s",
    ),
    *_each(
        "LY001",
        "namespace_binding",
        _namespace("owner = 'mallory'"),
        _namespace("policy_revision = 'policy-9'"),
        _namespace("binding_digest = 'new'"),
        _namespace("text_configuration = 'english', lexical_state = 'rebuilding'"),
    ),
    # The setting alone, the record alone, the record of another namespace, and another change than the recorded one.
    Trip("LY001", "namespace_binding", (_setting("binding_migration"), _REBOUND)),
    Trip("LY001", "namespace_binding", (_migration(), _REBOUND)),
    Trip("LY001", "namespace_binding", (_migration("meadow"), _setting("binding_migration"), _REBOUND)),
    Trip("LY001", "namespace_binding", (_migration(), _setting("binding_migration", "meadow"), _REBOUND)),
    *(
        Trip("LY001", "namespace_binding", (record, _setting("binding_migration"), _REBOUND))
        for record in (_migration(owner="mallory"), _migration(policy="policy-8"), _migration(words="english"))
    ),
    Pass((_migration(), _setting("binding_migration"), _REBOUND)),
    # Another text configuration makes the postings wrong until they are rebuilt.
    Trip("LY001", "namespace_lexical_state", (_migration(words="english"), _setting("binding_migration"), _REWORDED)),
    Pass(
        (
            _migration(words="english"),
            _setting("binding_migration"),
            _also("lexical_state = 'rebuilding'", _REWORDED),
        )
    ),
    # A record of another owner or policy opens the binding alone, whoever says besides that he rebuilds.
    *(
        Trip("LY001", "namespace_lexical_state", (record, _setting("binding_migration"), *more, moved))
        for more in ((), (_setting("lexical_rebuild"),))
        for record, moved in (
            (_migration(), _also("lexical_state = 'rebuilding'", _REBOUND)),
            (_migration(), _also("lexer_fingerprint = 'other'", _REBOUND)),
            (_migration(words="english"), _also("lexical_state = 'rebuilding', lexer_fingerprint = 'x'", _REWORDED)),
        )
    ),
    *_each(
        "LY001",
        "namespace_lexical_state",
        _namespace("lexical_state = 'rebuilding'"),
        _namespace("lexer_fingerprint = 'other'"),
    ),
    Trip(
        "LY001",
        "namespace_lexical_state",
        (_setting("lexical_rebuild", "meadow"), _namespace("lexer_fingerprint = 'x'")),
    ),
    Pass((_setting("lexical_rebuild"), _namespace("lexical_state = 'rebuilding'"))),
    Pass((_setting("lexical_rebuild"), _namespace("lexer_fingerprint = archive_lexer_fingerprint('simple')"))),
]

# --- the host --------------------------------------------------------------------------------------------------------


def _grant(assignments: str) -> str:
    return f"UPDATE lychd_grant SET {assignments} WHERE subject = 'bob' AND namespace_key = 'garden'"


def _principal(assignments: str, row: str = "principal") -> str:
    return f"UPDATE lychd_principal SET {assignments} WHERE id = %({row})s"


def _token(assignments: str) -> str:
    return f"UPDATE lychd_token SET {assignments} WHERE id = %(token)s"


_GRANT: list[Case] = [
    *_each(
        "LY001",
        "grant_fence",
        *(
            _grant(f"{name} = 'other', revoked_at = now()")
            for name in ("subject", "namespace_key", "owner", "purpose", "policy_revision", "action", "granted_by")
        ),
        *(_grant(f"{name} = now(), revoked_at = now()") for name in ("valid_from", "valid_until", "created_at")),
        _grant("id = id + 1000000, revoked_at = now()"),
        _grant("revoked_at = NULL"),
        _grant("valid_until = NULL"),
    ),
    Trip("LY001", "grant_fence", (_grant("revoked_at = now()"), _grant("revoked_at = NULL"))),
    Trip("LY001", "grant_fence", (_grant("revoked_at = now()"), _grant("revoked_at = now() + interval '1 day'"))),
    Pass((_grant("revoked_at = now()"),)),
]

_NEW_USER = (
    "INSERT INTO auth_user (password, is_superuser, username, first_name, last_name, email, is_staff, is_active,"
    " date_joined) VALUES ('', false, 'ruth', '', '', '', false, true, now())"
)

_PRINCIPAL: list[Case] = [
    *_each(
        "LY001",
        "principal_fence",
        _principal("id = 987654321"),
        _principal("subject = 'mallory'"),
        _principal("created_at = now()"),
        _principal("user_id = %(rolf)s"),
        _principal("linked_at = now()"),
        _principal("linked_at = NULL"),
        _principal("linked_at = NULL, user_id = NULL"),
        _principal("linked_at = now()", "unlinked"),
    ),
    Trip("LY001", "principal_fence", (_principal("user_id = NULL"), _principal("user_id = %(rolf)s"))),
    Pass((_principal("active = false"),)),
    Pass((_principal("user_id = NULL"),)),
    Pass(
        (
            _NEW_USER,
            _principal("user_id = (SELECT id FROM auth_user WHERE username = 'ruth')", "unlinked"),
        )
    ),
]

_TOKEN: list[Case] = [
    *_each(
        "LY001",
        "token_fence",
        *(_token(f"{name} = 'other'") for name in ("digest", "prefix", "name", "created_by")),
        _token("id = 987654321"),
        _token("principal_id = %(unlinked)s"),
        _token("created_at = now()"),
        _token("expires_at = expires_at + interval '1 second'"),
        _token("namespaces = NULL"),
        _token("namespaces = namespaces || ARRAY['shed']"),
        _token("namespaces = ARRAY['shed']"),
        _token("namespaces = ARRAY['garden', NULL]"),
    ),
    Trip("LY001", "token_fence", (_token("revoked_at = now()"), _token("revoked_at = NULL"))),
    Trip("LY001", "token_fence", (_token("revoked_at = now()"), _token("revoked_at = now() + interval '1 day'"))),
    Pass((_token("revoked_at = now()"), _token("last_used_at = now()"))),
    Trip("LY001", "token_fence", (_token("namespaces = ARRAY['meadow']"), _token("namespaces = ARRAY['garden']"))),
    Pass((_token("expires_at = expires_at - interval '1 day'"),)),
    Pass((_token("namespaces = ARRAY['garden']"), _token("namespaces = '{}'"))),
]

CASES: dict[tuple[str, str], list[Case]] = {
    ("archive_namespace", "binding"): _BINDING,
    ("archive_note", "note_identity"): _NOTE_IDENTITY,
    ("archive_note", "note_text"): _NOTE_TEXT,
    ("archive_note", "note_edge"): _NOTE_EDGE,
    ("archive_note", "note_event"): _NOTE_EVENT,
    ("archive_note", "same_namespace"): _NOTE_SAME_NAMESPACE,
    ("archive_lifecycle_event", "event_true"): _EVENT_TRUE,
    ("archive_lifecycle_event", "same_namespace"): _EVENT_SAME_NAMESPACE,
    ("archive_flag", "same_namespace"): [
        *_each("LY001", "other_namespace", _flag("%(clover)s"), _flag("%(nowhere)s")),
        Pass((_flag("%(promoted)s"),)),
    ],
    ("archive_intake_request", "same_namespace"): [
        *_each("LY001", "other_namespace", _request("%(clover)s"), _request("%(nowhere)s")),
        Pass((_request("%(promoted)s"),)),
    ],
    ("lychd_grant", "grant"): _GRANT,
    ("lychd_principal", "principal"): _PRINCIPAL,
    ("lychd_token", "token"): _TOKEN,
}
