"""The namespace that is measured, filled through the operations, and the bare connection beside it."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import psycopg
from django.db import connection, connections

from archive import limits
from archive.authority import Caller
from archive.lifecycle import State
from archive.models import Namespace
from archive.operations.intake import intake_many
from archive.operations.transition import transition_many
from archive.requests import Intake, Transition
from lychd import scratch
from lychd.bench.texts import Texts
from lychd.roles import OWNER_ALIAS

NAMESPACE: Final = "bench"
CONFIGURATION: Final = "english"

Progress = Callable[[str, int, int], None]

_numbers = itertools.count()


def fresh(prefix: str) -> str:
    """An identity that this run has not used."""
    return f"{prefix}-{next(_numbers)}"


@dataclass
class Ground:
    """One namespace with a caller who may everything in it, and how many notes it has been given."""

    database: str
    texts: Texts
    progress: Progress
    key: str = NAMESPACE
    caller: Caller = field(init=False)
    notes: int = 0
    spare: list[UUID] = field(default_factory=list)

    def __post_init__(self) -> None:
        scratch.serve(self.key, CONFIGURATION)
        self.caller = Caller.in_namespace(scratch.SUBJECT, self.key)

    @property
    def namespace(self) -> Namespace:
        return Namespace.objects.get(key=self.key)

    def wanted(self, count: int) -> list[Intake]:
        """Intakes of new texts, each a source of its own."""
        texts = self.texts.passages(count, seed=next(_numbers))
        return [Intake(fresh("r"), fresh("s"), "1", text) for text in texts]

    def candidates(self, count: int) -> list[UUID]:
        """Take this many notes in."""
        return self._taken_in(self.wanted(count))

    def promoted(self, count: int) -> list[UUID]:
        """Take this many notes in and promote them."""
        return self._promoted(self.candidates(count))

    def promote_texts(self, texts: Sequence[str]) -> list[UUID]:
        """Take these very texts in and promote them."""
        return self._promoted(self._taken_in([Intake(fresh("r"), fresh("s"), "1", text) for text in texts]))

    def _taken_in(self, wanted: Sequence[Intake]) -> list[UUID]:
        found: list[UUID] = []
        for start in range(0, len(wanted), limits.BATCH_INTAKE_MAX):
            answers = intake_many(self.caller, wanted[start : start + limits.BATCH_INTAKE_MAX])
            found += [answer.given().note.id for answer in answers]
        return found

    def _promoted(self, ids: list[UUID]) -> list[UUID]:
        for start in range(0, len(ids), limits.BATCH_TRANSITION_MAX):
            changes = [Transition(one, State.PROMOTED, 1) for one in ids[start : start + limits.BATCH_TRANSITION_MAX]]
            for answer in transition_many(self.caller, changes):
                answer.given()
        self.notes += len(ids)
        return ids

    def grow(self, size: int) -> None:
        """Bring the namespace to this many promoted notes and let its statistics and visibility catch up."""
        while self.notes < size:
            self.promoted(min(limits.BATCH_INTAKE_MAX, size - self.notes))
            self.progress(f"{size} notes", self.notes, size)
        settle()

    def asked(self, count: int) -> Sequence[str]:
        """Questions of the set, over and over if need be."""
        return list(itertools.islice(itertools.cycle(self.texts.questions), count))


def settle() -> None:
    """Do now what autovacuum would do during the measurement, on every table."""
    owner = connections[OWNER_ALIAS]
    with owner.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
    owner.close()


def bare() -> "psycopg.Connection[Any]":
    """A plain connection to the same database as the same role, with everything prepared on the server."""
    parameters = connection.get_connection_params()
    wanted = {key: value for key, value in parameters.items() if key in ("dbname", "user", "password", "host", "port")}
    found = psycopg.connect(**wanted, autocommit=True)
    found.prepare_threshold = 0
    return found
