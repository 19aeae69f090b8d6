"""Faults that the explorer finds by itself, in the acts of derivation and of recall by meaning.

Found is an invariant that does not hold after some schedule, or an ending outside the meeting's closed list. An
explorer that finds nothing wrong where something is wrong is worth nothing.
"""

from typing import Final

import pytest

from tests.faults.meaning import ATTEMPTS, CLAIMED, LOOSE, STORED
from tests.faults.planting import Code, Function, Gutted, Planting, Together
from tests.semantic.test_races import MEETINGS, met

FINAL: Final = "semantic.operations.recall:_final"
PREFLIGHT: Final = "semantic.operations.recall:_preflight"
GENERATION: Final = "__import__('semantic.models').models.Generation.objects.get"


# What is planted, and the meeting in which the explorer has to see it.
PLANTED: dict[str, tuple[Planting, str]] = {
    "a publication under no hold": (Code(FINAL, "with shared(", f"with {LOOSE}shared("), "publish x revoke"),
    "a claim that takes whatever there is": (
        Together(
            (
                Code(CLAIMED, "row.row_version != attempt.expected_row_version", "False"),
                Code(CLAIMED, "d.row_version = %s AND d.state", "%s::int IS NOT NULL AND d.state"),
                Code(CLAIMED, " AND (d.deadline IS NULL OR d.deadline <= c.now)", " "),
                Code(CLAIMED, "if attempt.retry else []", "if True else []"),
                Function("derivation_edge", "RAISE EXCEPTION 'attempt_alive' USING ERRCODE = 'LY007';", "NULL;"),
            )
        ),
        "claim x claim",
    ),
    "a completion of any claim": (
        Code(
            STORED,
            'attempt_token = %s AND attempt = %s"\n                " AND row_version = %s AND',
            '%s::uuid IS NOT NULL AND %s::int IS NOT NULL"\n                " AND %s::int IS NOT NULL AND',
        ),
        "complete x retry after expiry",
    ),
    "a completion past its deadline": (
        Together(
            (
                Code(STORED, " AND deadline > clock_timestamp()", ""),
                Function("derivation_zdone", "RAISE EXCEPTION 'attempt_expired' USING ERRCODE = 'LY007';", "NULL;"),
            )
        ),
        "complete x retry after expiry",
    ),
    "a failure that lets go of any claim": (
        Code(f"{ATTEMPTS}_Ledger._fail", " AND d.attempt_token = f.token", ""),
        "fail x retry after expiry",
    ),
    "a note that leaves its vector behind": (Gutted("archive_note", "semantic_invalidate"), "claim x revoke"),
    "a generation that leaves its vectors behind": (
        Together(
            (
                Gutted("semantic_generation", "invalidate"),
                Code("semantic.operations.generations:retire", "_invalidate(row)", "pass"),
            )
        ),
        "claim x retire",
    ),
    "a scan that keeps what is gone": (
        Function(
            "semantic_derivation_scan",
            "WHERE scan.derivation_id = gone.id AND gone.state = 'complete'",
            "WHERE false",
        ),
        "publish x revoke",
    ),
    "a preflight that looks at no generation": (
        Code(PREFLIGHT, "standing(namespace, configured)", f"{GENERATION}(namespace=namespace)"),
        "preflight x retire",
    ),
    "a publication that looks at its generation no more": (
        Code(FINAL, "standing(namespace, configured)", f"{GENERATION}(id=seen.id); seen = generation"),
        "publish x retire",
    ),
    "a publication beside another one": (
        Code("archive.publication:publish", " ON CONFLICT (namespace_id, request_id) DO NOTHING", ""),
        "publish x publish",
    ),
    "an identity that any request may use": (
        Code("archive.publication:published", "not canonical.same(row.request_digest, digest)", "False"),
        "publish x publish another request",
    ),
    "a replay that embeds again": (Code(PREFLIGHT, "earlier is not None", "False"), "publish x publish"),
    "an inference under a hold": (
        Code(
            "semantic.operations.recall:recall",
            "vector, execution = _embedded(question, wanted, configured)",
            "with shared(caller.binding): vector, execution = _embedded(question, wanted, configured)",
        ),
        "publish x retire",
    ),
    "a resolution that compares nothing": (
        Together(
            (
                Code(
                    "semantic.operations.resolution:resolve",
                    "_require_vectors(namespace, standing(namespace, configured), receipt)",
                    "pass",
                ),
                Code("archive.selections:_source", "note.state != State.PROMOTED or ", ""),
                Code("archive.selections:_source", 'note.lifecycle_version == chosen["lifecycle_version"]', "True"),
            )
        ),
        "resolve x promote the next",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_explorer_finds_what_is_wrong(crew, owner, settings, name):
    planting, meeting = PLANTED[name]
    (wanted,) = (one for one in MEETINGS if str(one) == meeting)

    with planting.planted():
        explored = met(wanted, crew, owner, settings)

    assert len(explored.bad) == 1, f"{explored.schedules} schedules and nothing found"
    print(f"{name}: {explored.bad[0][1].splitlines()[0]} (schedule {explored.bad[0][0]})")


def test_there_are_enough_of_them():
    assert len(PLANTED) >= 10
    assert {meeting for _, meeting in PLANTED.values()} <= {str(one) for one in MEETINGS}
