"""Time that passes without waiting: a deadline moved into the past by somebody whom no trigger binds."""

from typing import Any
from uuid import UUID

import psycopg

from semantic import limits


def age(superuser: "psycopg.Connection[Any]", derivation_id: UUID, seconds: int = limits.ATTEMPT_SECONDS + 1) -> None:
    """Let `seconds` pass for one running attempt."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(
            "UPDATE semantic_derivation SET claimed_at = claimed_at - make_interval(secs => %s),"
            " deadline = deadline - make_interval(secs => %s) WHERE id = %s",
            [seconds, seconds, derivation_id],
        )
