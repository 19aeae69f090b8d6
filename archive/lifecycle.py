"""The states of a note and the only edges between them (specification 5.7).

Code, triggers and the diagram in docs/architecture.md read these tables, so a new edge is written once.
"""

from enum import StrEnum


class State(StrEnum):
    """Where a note stands; only `PROMOTED` is ever recalled."""

    CANDIDATE = "candidate"
    PROMOTED = "promoted"
    ARCHIVED = "archived"
    REVOKED = "revoked"


class Cause(StrEnum):
    """Why a transition happened: somebody asked for it, or a newer revision took the place."""

    EXPLICIT = "explicit"
    SUPERSEDED = "superseded"


class Reason(StrEnum):
    """The closed list of reasons a decision may carry; free text would outlive a revocation."""

    DUPLICATE = "duplicate"
    OUTDATED = "outdated"
    WRONG = "wrong"
    UNSAFE = "unsafe"
    PERSONAL_DATA = "personal_data"
    OUT_OF_SCOPE = "out_of_scope"
    OTHER = "other"


class LexicalState(StrEnum):
    """Whether the postings of a namespace may answer."""

    READY = "ready"
    REBUILDING = "rebuilding"


NOTE_EDGES: frozenset[tuple[State, State]] = frozenset(
    {
        (State.CANDIDATE, State.PROMOTED),
        (State.PROMOTED, State.ARCHIVED),
        (State.CANDIDATE, State.REVOKED),
        (State.PROMOTED, State.REVOKED),
        (State.ARCHIVED, State.REVOKED),
    }
)


def is_legal(start: State, end: State) -> bool:
    """Say whether a note may go from `start` to `end`."""
    return (start, end) in NOTE_EDGES
