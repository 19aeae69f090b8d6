"""The operations of words, one row each, and every pair of them: a new operation joins all pairs by one row.

A row names what the operation does to the notes that all rows share, so that two rows meet: intakes share the request
`taken` or are of tulips/1, changes and recalls are about roses/1 and what takes its place. Where two rows would do so
only in passing, `CLOSER` names acts of theirs on one request, one note or one receipt.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Final

from archive.authority import Action
from tests.racing import world
from tests.racing.pairs import Ending, Meeting
from tests.racing.world import Part, withdrawal

Asked = tuple[str, Action]

INTAKES: Final[Asked] = ("alice", Action.INTAKE)

_REFUSED: Final = frozenset({"authority_refused", "binding_mismatch"})
_ADMITTED: Final = frozenset(
    f"{outcome} {standing}"
    for outcome in ("created", "existing", "replayed")
    for standing in ("candidate v1", "promoted v2", "archived v3", "revoked v2", "revoked v3")
)
_MOVED: Final = frozenset({"nothing there", "lifecycle_version_conflict", "illegal_transition"})
_INTAKE_REFUSALS: Final = frozenset({"request_conflict", "source_revision_conflict", "source_revision_revoked"})


@dataclass(frozen=True)
class Operation:
    """One row: its act, the act it meets itself with, who is asked for it, and all that it may ever answer."""

    name: str
    part: Part | None
    """None for the withdrawal, which takes back what the other operation needs."""
    twin: Part
    asked: Asked | None
    answers: frozenset[str]
    overtakes: frozenset[str] = frozenset()
    """What it may make another answer that came through the door before it; no order of whole operations ends so."""

    def __str__(self) -> str:
        return self.name

    def against(self, other: "Operation") -> Part:
        """What it does where it meets this other operation."""
        if self.part is not None:
            return self.part
        assert other.asked is not None
        return withdrawal(*other.asked)


OPERATIONS: Final = (
    Operation("intake-new", world.INTAKE, world.INTAKE, INTAKES, _ADMITTED | _INTAKE_REFUSALS | _REFUSED),
    Operation(
        "intake-replay",
        world.INTAKE_REPLAY,
        world.INTAKE_REPLAY,
        INTAKES,
        _ADMITTED | _REFUSED,
    ),
    Operation(
        "intake-conflict",
        world.INTAKE_CONFLICT,
        world.INTAKE_CONFLICT,
        INTAKES,
        # In conflict with what is not there yet, it is the one that is created.
        frozenset({"request_conflict", "created candidate v1"}) | _REFUSED,
    ),
    Operation(
        "promote",
        world.PROMOTE_2,
        world.PROMOTE_3,
        ("alice", Action.PROMOTE),
        frozenset({"promoted v2", "promoted v2 after 1", "promoted v2 after 2", "promoted v2 after 3"})
        | _MOVED
        | _REFUSED,
    ),
    Operation(
        "archive", world.ARCHIVE_1, world.ARCHIVE_1, ("alice", Action.ARCHIVE), _MOVED | _REFUSED | {"archived v3"}
    ),
    Operation(
        "revoke",
        world.REVOKE_1,
        world.REVOKE_1,
        ("alice", Action.REVOKE),
        frozenset({"revoked v2", "revoked v3"}) | _MOVED | _REFUSED,
    ),
    Operation(
        "recall",
        world.RECALL,
        world.RECALL,
        ("bob", Action.RECALL),
        frozenset(
            {"published roses/1", "published roses/2", "published", "joined roses/1", "replayed roses/1"} | _REFUSED
        ),
    ),
    Operation(
        "resolve",
        world.RESOLVE,
        world.RESOLVE,
        ("bob", Action.RESOLVE),
        frozenset({"resolved roses/1", "resolved", "selection_stale", "receipt_absent", "receipt_binding_mismatch"})
        | _REFUSED,
    ),
    Operation(
        "binding migration",
        world.MIGRATE,
        world.MIGRATE,
        ("otto", Action.MIGRATE_BINDING),
        frozenset({"migrated", "nothing to do"}) | _REFUSED,
        overtakes=_REFUSED,
    ),
    Operation(
        "grant withdrawal",
        None,
        withdrawal(*INTAKES),
        None,
        frozenset({"withdrew 0", "withdrew 1", "withdrew 2"}),
        overtakes=frozenset({"authority_refused"}),
    ),
)

CLOSER: Final[dict[tuple[str, str], tuple[Part, Part]]] = {
    # One request with two materials.
    ("intake-new", "intake-conflict"): (world.INTAKE, world.INTAKE_REUSED),
    # The very note that is taken in, as soon as it can be found.
    ("intake-new", "promote"): (world.INTAKE, world.PROMOTE_NEW),
    ("intake-new", "archive"): (world.INTAKE, world.ARCHIVE_NEW),
    ("intake-new", "revoke"): (world.INTAKE, world.REVOKE_NEW),
    # The receipt that is being published.
    ("recall", "resolve"): (world.RECALL, world.RESOLVE_ASKED),
    # A permission that the migration carries over while it is taken back.
    ("binding migration", "grant withdrawal"): (world.MIGRATE_CARRYING, withdrawal(*INTAKES)),
}

QUIET: Final[dict[tuple[str, str], str]] = {
    ("resolve", "resolve"): "both hold the namespace shared and write nothing: neither waits, whatever the order",
}
"""Pairs that truly cannot meet, with the reason; that they never wait and always end alike is asserted instead."""

# JOINED: the loser of two publications reads the winner's receipt, which no order of whole recalls does.
JOINED: Final = frozenset({("published roses/1", "joined roses/1"), ("joined roses/1", "published roses/1")})


def pair(first: Operation, second: Operation) -> Meeting:
    """How these two meet."""
    return together((first, second), _acts(first, second), f"{first} x {second}")


def together(operations: tuple[Operation, ...], parts: tuple[Part, ...], name: str) -> Meeting:
    """A meeting of these operations with these acts."""
    also = frozenset(_overtaken(operations))
    if [operation.name for operation in operations] == ["recall", "recall"]:
        also |= JOINED
    return Meeting(
        parts,
        also,
        asked=tuple(operation.asked for operation in operations),
        answers=tuple(operation.answers for operation in operations),
        name=name,
        doors=any("binding_mismatch" in operation.overtakes for operation in operations),
    )


def _acts(first: Operation, second: Operation) -> tuple[Part, Part]:
    if first is second:
        return first.part or first.twin, first.twin
    return CLOSER.get((first.name, second.name)) or (first.against(second), second.against(first))


def _overtaken(operations: tuple[Operation, ...]) -> Iterable[Ending]:
    """Every ending in which at least one operation is refused because of another that got between its checks."""
    words: list[frozenset[str]] = []
    for place in range(len(operations)):
        others = [other for at, other in enumerate(operations) if at != place]
        words.append(frozenset().union(*(other.overtakes for other in others)))
    if not any(words):
        return
    choices = [sorted(some | operation.answers) for some, operation in zip(words, operations, strict=True)]
    for ending in product(*choices):
        if any(word in some for word, some in zip(ending, words, strict=True)):
            yield ending


def named(name: str) -> Operation:
    """The row of this name."""
    return next(operation for operation in OPERATIONS if operation.name == name)


PAIRS: Final = tuple(pair(first, second) for first, second in combinations_with_replacement(OPERATIONS, 2))
