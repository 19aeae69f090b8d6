"""What was asked of the database while something happened, and whether it could have been written to meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection
from psycopg import IsolationLevel


@dataclass(frozen=True)
class Asked:
    """One statement, and whether its transaction read one moment and could write nothing."""

    sql: str
    looked_only: bool


@contextmanager
def looked_at() -> Iterator[list[Asked]]:
    """Collect every statement of this thread; what BEGIN said is known to the driver alone."""
    found: list[Asked] = []

    def told(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        session = context["connection"].connection
        one_moment = session.isolation_level is IsolationLevel.REPEATABLE_READ
        found.append(Asked(statement, one_moment and session.read_only is True))
        return execute(statement, params, many, context)

    with connection.execute_wrapper(told):
        yield found
