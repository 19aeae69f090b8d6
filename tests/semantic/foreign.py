"""Of every column of what is derived: what writes it, and foreign values (tests/database/foreign.py has the kinds).

A statement is the whole of an act with one value changed; the values are SQL.
"""

from dataclasses import dataclass

from semantic import truths
from semantic.lifecycle import State
from tests.database.foreign import AHEAD, NOWHERE, OLD
from tests.semantic.test_fences import CLAIM, INTO, RETIRE, born, change, of_generation, registered

ZEROS = "repeat('0', 64)"
WRONG_TIMES = (f"'{OLD}'", f"'{AHEAD}'", "'infinity'")
NO_NAMES = ("'free words'", "''", "repeat('a', 129)")
NOT_RANDOM = ("'00000000-0000-1000-8000-000000000001'", "'66726565-2077-6f72-6473-206f66206d65'")


@dataclass(frozen=True)
class Tried:
    """A statement that is refused under this SQLSTATE, in this word or by the constraint of this name."""

    sqlstate: str
    rule: str
    statement: str


@dataclass(frozen=True)
class Stands:
    """A statement that goes through, after which no row of the table has this value in the column."""

    statement: str
    value: str


Cell = Tried | Stands
_DONE = {
    "state": "'complete'",
    "row_version": "row_version + 1",
    "attempt_token": "NULL",
    "claimed_at": "NULL",
    "deadline": "NULL",
}
_RECEIPT = truths.completion("%(unit)s::vector", "statement_timestamp()").partition("receipt = ")[2]


def done(**columns: str) -> str:
    """Complete the running row, with some columns changed."""
    values = {
        **_DONE,
        "vector": "%(unit)s::vector",
        "settled_at": "statement_timestamp()",
        "receipt": _RECEIPT,
        **columns,
    }
    return change("running", ", ".join(f"{name} = {value}" for name, value in values.items()))


def _born(rule: str, column: str, *values: str, sqlstate: str = "LY012") -> tuple[Cell, ...]:
    return tuple(Tried(sqlstate, rule, born(**{column: value})) for value in values)


def _registered(rule: str, column: str, *values: str, sqlstate: str = "LY012") -> tuple[Cell, ...]:
    return tuple(Tried(sqlstate, rule, registered(**{column: value})) for value in values)


def _done(rule: str, column: str, *values: str, sqlstate: str = "LY012") -> tuple[Cell, ...]:
    return tuple(Tried(sqlstate, rule, done(**{column: value})) for value in values)


def _retired(rule: str, old: str, *values: str) -> tuple[Cell, ...]:
    return tuple(Tried("LY012", rule, of_generation(RETIRE.replace(old, value))) for value in values)


def _manifest(change_of_it: str) -> str:
    return (
        f"(SELECT {change_of_it} FROM (SELECT jsonb_set(manifest, '{{reference}}', '\"new\"') AS m"
        " FROM semantic_generation WHERE id = %(active)s) AS one)"
    )


def _set(path: str, value: str) -> str:
    return _manifest(f"jsonb_set(m, '{{{path}}}', '{value}')")


_MANIFESTS = (
    _manifest('m || \'{"note": "free words"}\''),
    _manifest("m - 'metric'"),
    _manifest("m #- '{embed_binding,model}'"),
    _set("embed_binding,note", '"free words"'),
    _set("metric", '"other"'),
    _set("attempt_seconds", "600"),
    _set("attempt_seconds", "60.0"),
    _set("owner", '"free words"'),
    _set("embed_binding,max_tokens", "0"),
    _set("embed_binding,padding", '{"from": 1}'),
    _set("l2_tolerance", "1"),
)
_ATTEMPTS = (
    "'{}'",
    f'{_RECEIPT} || \'{{"note": "free words"}}\'',
    f"({_RECEIPT}) - 'tokens'",
    f"{_RECEIPT} || '{{\"input_bytes\": 0}}'",
    f'{_RECEIPT} || \'{{"tokens": "many"}}\'',
    f'{_RECEIPT} || \'{{"profile": "other@1"}}\'',
)
_UNTRUE = tuple(
    f"{_RECEIPT} || jsonb_build_object('{name}', {value})"
    for name, value in {
        "binding_digest": ZEROS,
        "derivation_digest": ZEROS,
        "vector_digest": ZEROS,
        "attempt": "7",
        "l2": "'f64:3feffffffffffffd'",
        "started_at": "'1999-01-01T00:00:00.000000Z'",
        "finished_at": "'1999-01-01T00:00:00.000000Z'",
    }.items()
)

COLUMNS: dict[str, dict[str, tuple[Cell, ...]]] = {
    "semantic_generation": {
        "id": _registered("generation_form", "id", *NOT_RANDOM),
        "namespace_id": _registered("namespace_not_held", "namespace_id", "987654321", sqlstate="LY005"),
        "space_id": (Stands(registered(space_id=f"'{NOWHERE}'"), NOWHERE),),
        "space_generation": (Stands(registered(space_generation="7"), "7"),),
        "reference": _registered("generation_manifest", "reference", "'other'", "'free words'", sqlstate="LY006"),
        "manifest": (
            *_registered("generation_form", "manifest", *_MANIFESTS),
            *_registered(
                "generation_binding",
                "manifest",
                _set("namespace", '"meadow"'),
                _set("policy_revision", '"policy-9"'),
                _set("binding_digest", f'"{"0" * 64}"'),
            ),
        ),
        "manifest_digest": _registered("generation_digest", "manifest_digest", ZEROS, "'free words'"),
        "dimensions": _registered("generation_manifest", "dimensions", "3", sqlstate="LY006"),
        "state": _registered("generation_birth", "state", "'retired'", "'free words'", sqlstate="LY006"),
        "version": _registered("generation_birth", "version", "2", "0", sqlstate="LY006"),
        "registered_by": _registered("generation_form", "registered_by", *NO_NAMES),
        "registered_at": _registered("generation_time", "registered_at", *WRONG_TIMES),
        "retired_by": (
            *_registered("generation_retirement", "retired_by", "'otto'", sqlstate="23514"),
            *_retired("generation_form", "'otto'", *NO_NAMES),
        ),
        "retired_at": (
            *_registered("generation_retirement", "retired_at", "now()", sqlstate="23514"),
            *_retired("generation_time", "now()", *WRONG_TIMES),
        ),
    },
    "semantic_derivation": {
        "id": _born("derivation_form", "id", *NOT_RANDOM),
        "namespace_id": _born("namespace_not_held", "namespace_id", "987654321", sqlstate="LY005"),
        "space_id": (Stands(born(space_id=f"'{NOWHERE}'"), NOWHERE),),
        "space_generation": (Stands(born(space_generation="7"), "7"),),
        "generation_id": _born("derivation_source", "generation_id", "%(old)s", sqlstate="LY007"),
        "note_id": _born("derivation_source", "note_id", "%(candidate_note)s", sqlstate="LY007"),
        "chunk": _born("derivation_chunk", "chunk", "'half-note'", sqlstate="23514"),
        "source_key": _born("derivation_source_key", "source_key", "'other'", "'free words'"),
        "source_revision": _born("derivation_source", "source_revision", "'other'", sqlstate="LY007"),
        "text_digest": _born("derivation_source", "text_digest", ZEROS, sqlstate="LY007"),
        "note_lifecycle_version": _born("derivation_source", "note_lifecycle_version", "1", "9", sqlstate="LY007"),
        "state": _born("derivation_birth", "state", "'running'", "'free words'", sqlstate="LY003"),
        "attempt": _born("derivation_birth", "attempt", "1", "-1", sqlstate="LY003"),
        "row_version": _born("derivation_birth", "row_version", "2", "0", sqlstate="LY003"),
        "attempt_token": (
            *_born("derivation_token_while_running", "attempt_token", "gen_random_uuid()", sqlstate="23514"),
            *(
                Tried("LY012", "derivation_token", change("prepared", CLAIM.replace("gen_random_uuid()", value)))
                for value in NOT_RANDOM
            ),
        ),
        "claimed_at": tuple(
            Tried("LY012", "derivation_time", change("prepared", CLAIM.replace("clock_timestamp()", value)))
            for value in (f"'{OLD}'::timestamptz", "now() - interval '1 second'")
        ),
        "deadline": (
            Tried(
                "23514",
                "derivation_deadline",
                change("prepared", CLAIM.replace("60 seconds", "1 hour")),
            ),
        ),
        "dimensions": _born("derivation_generation_dimensions", "dimensions", "3", sqlstate="23503"),
        "vector": (
            *_born("derivation_vector_while_complete", "vector", "%(unit)s::vector", sqlstate="23514"),
            *_done("derivation_vector", "vector", "'[1]'", sqlstate="LY007"),
        ),
        "vector_digest": _done("derivation_digest", "vector_digest", ZEROS, "'free words'"),
        "l2_norm": _done("derivation_vector", "l2_norm", "0.9995", "'NaN'", sqlstate="LY007"),
        "receipt": (
            *_done("derivation_receipt_form", "receipt", *_ATTEMPTS),
            *_done("derivation_receipt_row", "receipt", *_UNTRUE),
        ),
        "failure_code": tuple(
            Tried("LY012", "derivation_failure", change("running", INTO[State.FAILED].replace("'internal'", value)))
            for value in ("'free words'", "''", "repeat('a', 65)")
        ),
        "invalidation": (
            *_born("derivation_invalidation", "invalidation", "'archived'", sqlstate="23514"),
            Tried(
                "23514",
                "derivation_invalidation",
                change("prepared", INTO[State.INVALIDATED].replace("'archived'", "'free words'")),
            ),
        ),
        "prepared_at": _born("derivation_time", "prepared_at", *WRONG_TIMES),
        "settled_at": (
            *_born("derivation_time", "settled_at", "now()"),
            *_done("derivation_time", "settled_at", *WRONG_TIMES),
            Stands(change("prepared", CLAIM.replace("settled_at = NULL", f"settled_at = '{OLD}'")), OLD),
        ),
    },
    # Kept by triggers alone.
    "semantic_scan": {
        name: (Tried("42501", "", f"INSERT INTO semantic_scan ({name}) VALUES (NULL)"),)
        for name in ("derivation_id", "generation_id", "half")
    },
    "semantic_coverage": {
        name: (Tried("42501", "", f"INSERT INTO semantic_coverage ({name}) VALUES (NULL)"),)
        for name in ("generation_id", "complete", "rebuilding")
    },
}
