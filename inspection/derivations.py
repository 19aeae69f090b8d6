"""What can be read of generations and derivations: states, digests, coverage; no text and no coordinate (R-L-177..181).

Every read is a snapshot asked about at A0 and A2. A running attempt past its deadline is shown as expired by the
database's clock, and nothing is written for that.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q

from archive.authority import Action, Caller
from archive.lifecycle import State as NoteState
from archive.models import Namespace, Note
from archive.requests import Checker
from archive.transactions import moment
from inspection.cursors import List, Page, PageRequest
from inspection.reads import _read
from semantic.lifecycle import EXPIRED, State
from semantic.models import Derivation, Generation
from semantic.models.derivation import METADATA
from semantic.records import DerivationRecord, GenerationRecord
from semantic.refusals import DerivationAbsent, GenerationAbsent

LATELY_MINUTES: Final = 10
_LATELY: Final = timedelta(minutes=LATELY_MINUTES)


@dataclass(frozen=True, slots=True)
class GenerationStatus:
    """A generation, how many promoted notes there are, and how many derivations stand where.

    The states say what was done; only `complete` of an active generation is searched, and nothing says that it is all.
    """

    generation: GenerationRecord
    promoted: int
    states: dict[str, int]
    lately: int = 0
    """How many became complete in the last minutes, by the database's clock."""

    @property
    def pace(self) -> str:
        """How fast it goes and how long the rest would take at that; no number where there is nothing to divide by."""
        left = self.promoted - self.states[State.COMPLETE]
        if left <= 0:
            return "Every promoted note is complete." if self.promoted else "There is no promoted note."
        if not self.lately:
            return (
                f"None became complete in the last {LATELY_MINUTES} minutes, so how long the other {left} take is open."
            )
        minutes = max(1, round(left * LATELY_MINUTES / self.lately))
        span = f"{minutes} minute{'s' if minutes > 1 else ''}" if minutes < 120 else f"{round(minutes / 60)} hours"
        done = f"{self.lately} became complete in the last {LATELY_MINUTES} minutes"
        return f"{done}; at that the other {left} take about {span}."

    def as_json(self) -> dict[str, Any]:
        return {
            **self.generation.as_json(),
            "coverage": {"promoted": self.promoted, "complete": self.states[State.COMPLETE]},
            "derivations": self.states,
        }


def generations(caller: Caller) -> tuple[GenerationStatus, ...]:
    """List the generations of a namespace, oldest first; an absent namespace lists none."""

    def look(namespace: Namespace | None) -> tuple[GenerationStatus, ...]:
        if namespace is None:
            return ()
        rows = list(Generation.objects.filter(namespace=namespace).order_by("registered_at", "id"))
        return _statuses(namespace, rows)

    return _read(caller, Action.INSPECT_DERIVATION, {"list": "generations"}, look)


def generation(caller: Caller, reference: str) -> GenerationStatus:
    """Read one generation; raises `GenerationAbsent`."""
    check = Checker()
    check.identifier("/reference", reference)
    check.settle()

    def look(namespace: Namespace | None) -> GenerationStatus:
        row = None if namespace is None else Generation.objects.filter(namespace=namespace, reference=reference).first()
        if namespace is None or row is None:
            raise GenerationAbsent
        (status,) = _statuses(namespace, [row])
        return status

    return _read(caller, Action.INSPECT_DERIVATION, {"generation": reference}, look)


def _statuses(namespace: Namespace, rows: list[Generation]) -> tuple[GenerationStatus, ...]:
    now = moment()
    counted: dict[UUID, dict[str, int]] = {row.id: {**{state.value: 0 for state in State}, EXPIRED: 0} for row in rows}
    found = (
        Derivation.objects.filter(namespace=namespace, generation__in=rows)
        .values("generation_id", "state")
        .annotate(
            n=Count("id"),
            late=Count("id", filter=Q(state=State.RUNNING.value, deadline__lte=now)),
            lately=Count("id", filter=Q(state=State.COMPLETE.value, settled_at__gt=now - _LATELY)),
        )
        .values_list("generation_id", "state", "n", "late", "lately")
    )
    settled: dict[UUID, int] = {}
    for generation_id, state, count, late, lately in found:
        settled[generation_id] = settled.get(generation_id, 0) + lately
        counted[generation_id][state] += count - late
        counted[generation_id][EXPIRED] += late
    promoted = _promoted(namespace)
    return tuple(
        GenerationStatus(GenerationRecord.of(row), promoted, counted[row.id], settled.get(row.id, 0)) for row in rows
    )


def _promoted(namespace: Namespace) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT notes FROM archive_corpus WHERE namespace_id = %s", [namespace.id])
        row = cursor.fetchone()
    return 0 if row is None else int(row[0])


def derivation(caller: Caller, derivation_id: UUID) -> DerivationRecord:
    """Read one derivation with its source reference, invalidated ones too; raises `DerivationAbsent` (R-L-196)."""

    def look(namespace: Namespace | None) -> DerivationRecord:
        row = None if namespace is None else _rows(namespace).filter(id=derivation_id).first()
        if row is None:
            raise DerivationAbsent
        return DerivationRecord.of(row, reference=row.generation.reference, now=moment())

    return _read(caller, Action.INSPECT_DERIVATION, {"derivation_id": str(derivation_id)}, look)


def list_derivations(
    caller: Caller, page: PageRequest, *, generation: str | None = None, note_id: UUID | None = None
) -> Page[DerivationRecord]:
    """List derivations in the order in which they were prepared; an absent namespace lists empty."""
    filters = {"list": "derivations", "generation": generation, "note_id": None if note_id is None else str(note_id)}
    listed = List.of(caller, filters)
    after = listed.after_moment(page)

    def look(namespace: Namespace | None) -> Page[DerivationRecord]:
        if namespace is None:
            return Page((), None)
        rows = _rows(namespace)
        if generation is not None:
            rows = rows.filter(generation__reference=generation)
        if note_id is not None:
            rows = rows.filter(note_id=note_id)
        if after is not None:
            at, last_id = after
            rows = rows.filter(Q(prepared_at__gt=at) | Q(prepared_at=at, id__gt=last_id), prepared_at__gte=at)
        found = list(rows.order_by("prepared_at", "id")[: page.limit + 1])
        shown, now = found[: page.limit], moment()
        cursor = listed.at_moment(shown[-1].prepared_at, shown[-1].id) if len(found) > page.limit else None
        return Page(
            tuple(DerivationRecord.of(row, reference=row.generation.reference, now=now) for row in shown), cursor
        )

    return _read(caller, Action.INSPECT_DERIVATION, {**filters, **page.as_keys()}, look)


def _rows(namespace: Namespace):  # type: ignore[no-untyped-def]
    return (
        Derivation.objects.select_related("generation")
        .only(*METADATA, "generation__reference")
        .filter(namespace=namespace)
    )


def underived(caller: Caller, generation: str, *, after: UUID | None, limit: int) -> tuple[UUID, ...]:
    """Name the next promoted notes without a complete derivation in a generation, in the order of their identities."""
    keys = {"list": "underived", "generation": generation, "after": None if after is None else str(after)}

    def look(namespace: Namespace | None) -> tuple[UUID, ...]:
        if namespace is None:
            return ()
        complete = Derivation.objects.filter(
            note_id=OuterRef("pk"), generation__reference=generation, state=State.COMPLETE.value
        )
        rows = Note.objects.filter(~Exists(complete), namespace=namespace, state=NoteState.PROMOTED.value)
        if after is not None:
            rows = rows.filter(id__gt=after)
        return tuple(rows.order_by("id").values_list("id", flat=True)[:limit])

    return _read(caller, Action.INSPECT_DERIVATION, {**keys, "limit": limit}, look)
