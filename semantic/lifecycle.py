"""The states of a generation and of a derivation, and the only edges between them (specification 5.7).

Code, triggers and the diagram in docs/semantic.md read these tables.
"""

from enum import StrEnum
from typing import Final


class GenerationState(StrEnum):
    """A generation is active until it is retired, and never again."""

    ACTIVE = "active"
    RETIRED = "retired"


class State(StrEnum):
    """Where the latest attempt of a derivation stands. *Expired* is only ever shown, never stored (R-L-178)."""

    PREPARED = "prepared"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"
    INVALIDATED = "invalidated"


EXPIRED: Final = "expired"
"""What a running attempt is shown as once its deadline has passed by the database's clock."""


class Invalidation(StrEnum):
    """Why a derivation can never be complete again."""

    ARCHIVED = "archived"
    REVOKED = "revoked"
    SUPERSEDED = "superseded"
    GENERATION_RETIRED = "generation_retired"


EDGES: Final[frozenset[tuple[State, State]]] = frozenset(
    {
        (State.PREPARED, State.RUNNING),
        (State.RUNNING, State.COMPLETE),
        (State.RUNNING, State.FAILED),
        (State.FAILED, State.RUNNING),
        # Only once the old deadline has passed; the trigger asks the clock.
        (State.RUNNING, State.RUNNING),
        (State.PREPARED, State.INVALIDATED),
        (State.RUNNING, State.INVALIDATED),
        (State.FAILED, State.INVALIDATED),
        (State.COMPLETE, State.INVALIDATED),
    }
)
