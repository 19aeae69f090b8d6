"""What the scenarios share: counts of rows, messages that were sent, a held namespace, a refusal without a trace."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from celery import signals

from tests.scenarios.counting import Counts


@pytest.fixture
def counts(garden: object, owner: "psycopg.Connection[Any]") -> Counts:
    """Row counts of every table, from the moment at which the garden is planted."""
    return Counts(owner)


@pytest.fixture
def messages() -> Iterator[list[str]]:
    """The name of every task that is sent while the test runs."""
    sent: list[str] = []

    def remember(sender: str | None = None, **_: object) -> None:
        sent.append(str(sender))

    signals.before_task_publish.connect(remember, weak=False)
    yield sent
    signals.before_task_publish.disconnect(remember)
