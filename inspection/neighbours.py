"""Which promoted notes are nearest in meaning to what a candidate would take the place of; nothing is embedded for it.

A candidate has no vector: only what was promoted is ever handed to a model. What can be compared is the revision of its
source that is promoted today, by the vector that it already has. It is a hint beside a decision and no recall, so the
nearest by the short copies of the vectors are enough; how near they are is computed from the whole ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db import connection

from archive import canonical
from archive.authority import Action, Caller
from archive.models import Namespace
from archive.operations.review import Reviewed
from inspection.generations import named_generation

SHOWN: Final = 3
LOOKED_AT: Final = 8
MOST: Final = 20_000
"""Among so many vectors the nearest are found in the blink in which a page may come; among more only if asked for."""


class WhyNot(StrEnum):
    """Why there was nothing to compare."""

    NOT_ALLOWED = (
        "Not compared by meaning: that takes the permission to inspect derivations, which the role inspector has."
    )
    OFF = "Not compared by meaning: derivation is switched off here."
    NOT_REGISTERED = "Not compared by meaning: the generation that is named here is not in use."
    NOTHING_PROMOTED = "Not compared by meaning: a candidate has no vector, and nothing of its source is promoted."
    NOT_DERIVED = "Not compared by meaning: the revision that is promoted today has no vector yet."
    TOO_MANY = "Not compared by meaning unless asked for: there are too many vectors to do so at every candidate."


@dataclass(frozen=True, slots=True)
class Nearest:
    """One promoted note of another source, and the cosine of the angle between the two."""

    note_id: UUID
    source_key: str
    source_revision: str
    cosine: float


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The nearest, and what they were taken from: `complete` of the promoted notes have a vector of the generation."""

    why_not: WhyNot | None
    nearest: tuple[Nearest, ...] = ()
    generation: str = ""
    complete: int = 0
    promoted: int = 0

    @property
    def asking_helps(self) -> bool:
        return self.why_not is WhyNot.TOO_MANY


_NEAREST: Final = """
WITH used AS MATERIALIZED (
    SELECT generation.id,
           coalesce((SELECT notes FROM archive_corpus WHERE namespace_id = %(namespace)s), 0)::bigint AS promoted,
           coalesce((SELECT complete FROM semantic_coverage WHERE generation_id = generation.id), 0)::bigint AS complete
    FROM semantic_generation AS generation
    WHERE generation.namespace_id = %(namespace)s AND generation.reference = %(generation)s::text
      AND generation.state = 'active'
),
own AS MATERIALIZED (
    SELECT derivation.id, derivation.vector, scan.half
    FROM used
    JOIN semantic_derivation AS derivation
      ON derivation.generation_id = used.id AND derivation.note_id = %(note)s::uuid AND derivation.state = 'complete'
    JOIN semantic_scan AS scan ON scan.derivation_id = derivation.id
),
near AS MATERIALIZED (
    SELECT scan.derivation_id
    FROM used CROSS JOIN own JOIN semantic_scan AS scan ON scan.generation_id = used.id
    WHERE scan.derivation_id <> own.id AND used.complete <= %(most)s::bigint
    ORDER BY scan.half <#> own.half
    LIMIT %(looked_at)s::int
),
best AS (
    SELECT note.id, source.source_key, note.source_revision, 1 - (derivation.vector <=> own.vector) AS cosine
    FROM near CROSS JOIN own
    JOIN semantic_derivation AS derivation ON derivation.id = near.derivation_id
    JOIN archive_note AS note
      ON note.id = derivation.note_id AND note.namespace_id = %(namespace)s AND note.state = 'promoted'
    JOIN archive_source AS source ON source.id = note.source_id
    ORDER BY cosine DESC, note.id
    LIMIT %(shown)s::int
)
SELECT used.promoted, used.complete, EXISTS (SELECT FROM own), best.*
FROM used LEFT JOIN best ON true
ORDER BY best.cosine DESC NULLS LAST, best.id
"""


class Meaning:
    """Looks, in the moment in which the desk is read, for what is near to the candidate at hand."""

    def __init__(self, caller: Caller, *, asked_for: bool) -> None:
        action = Action.INSPECT_DERIVATION
        self.question = caller.asks(action, about=canonical.lookup_digest(action, caller.namespace, {"part": "near"}))
        self._generation = named_generation(caller)
        self._most = 2**62 if asked_for else MOST
        self.found = Neighbours(WhyNot.OFF)

    def look(self, namespace: Namespace, reviewed: Reviewed) -> None:
        """Compare the revision that the candidate would take the place of with everything that has a vector."""
        if self._generation is None:
            return
        if reviewed.promoted is None:
            self.found = Neighbours(WhyNot.NOTHING_PROMOTED, generation=self._generation)
            return
        values: dict[str, Any] = {
            "namespace": namespace.id,
            "generation": self._generation,
            "note": reviewed.promoted.id,
            "most": self._most,
            "looked_at": LOOKED_AT,
            "shown": SHOWN,
        }
        with connection.cursor() as cursor:
            cursor.execute(_NEAREST, values)
            self.found = self._told(cursor.fetchall())

    def withhold(self) -> None:
        """Say only that it takes a permission."""
        if self._generation is not None:
            self.found = Neighbours(WhyNot.NOT_ALLOWED)

    def _told(self, rows: Sequence[Any]) -> Neighbours:
        if not rows:
            return Neighbours(WhyNot.NOT_REGISTERED)
        promoted, complete, derived = rows[0][:3]
        why_not = None
        if not derived:
            why_not = WhyNot.NOT_DERIVED
        elif complete > self._most:
            why_not = WhyNot.TOO_MANY
        nearest = tuple(Nearest(*row[3:]) for row in rows if row[3] is not None)
        return Neighbours(why_not, nearest, self._generation or "", complete, promoted)
