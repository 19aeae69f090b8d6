"""Generations: read off the settings, registered and retired by an explicit act, never by a start (R-L-160..168)."""

from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from django.db import connection

from archive import canonical
from archive.authority import Action, Caller, Point
from archive.gates import gate
from archive.models import Namespace
from archive.models.columns import columns
from archive.transactions import locked, moment
from semantic import limits, manifest
from semantic.lifecycle import GenerationState, Invalidation
from semantic.manifest import Configured
from semantic.models import Generation
from semantic.records import GenerationRecord
from semantic.refusals import GenerationAbsent, GenerationConflict, GenerationMismatch, GenerationRetired
from semantic.triggers import ENDS

_COLUMNS: Final = columns(Generation)
_INVALIDATE: Final = (
    f"UPDATE semantic_derivation SET {ENDS}, invalidation = '{Invalidation.GENERATION_RETIRED}'"  # noqa: S608
    " WHERE id IN (SELECT id FROM semantic_derivation WHERE generation_id = %s AND state <> 'invalidated'"
    " ORDER BY id LIMIT %s)"
)


@dataclass(frozen=True, slots=True)
class Registered:
    """The registered generation, and whether this call made it."""

    generation: GenerationRecord
    created: bool


def discover(caller: Caller) -> Configured:
    """Say which generation is configured here; no archive or semantic table is read and nothing is opened (R-L-167)."""
    found = manifest.configured(caller.binding)
    question = caller.asks(Action.DISCOVER_GENERATION, about=found.digest)
    question.require(Point.A0)
    question.require(Point.A2)
    return found


def register(caller: Caller) -> Registered:
    """Register the configured generation; the same again is the same row, another manifest under its reference refuses.

    Raises `GenerationConflict`, `GenerationRetired`; `NamespaceAbsent` while nothing was ever taken in.
    """
    wanted = manifest.configured(caller.binding)
    question = caller.asks(Action.REGISTER_GENERATION, about=wanted.digest)
    question.require(Point.A0)
    with locked(caller.binding) as namespace:
        row = Generation.objects.filter(namespace=namespace, reference=wanted.reference).first()
        question.require(Point.A1)
        gate("generation.looked")
        created = row is None
        if row is None:
            row = Generation.objects.create(
                id=uuid4(),
                namespace=namespace,
                reference=wanted.reference,
                manifest=wanted.manifest,
                manifest_digest=wanted.digest,
                dimensions=wanted.dimensions,
                registered_by=caller.subject,
                registered_at=moment(),
            )
        elif not canonical.same(row.manifest_digest, wanted.digest):
            raise GenerationConflict
        elif row.state != GenerationState.ACTIVE:
            raise GenerationRetired
        registered = Registered(GenerationRecord.of(row), created)
    question.require(Point.A2)
    return registered


def retire(caller: Caller, reference: str) -> GenerationRecord:
    """Retire a generation for good, and with it all its derivations; asked again, the answer is the same."""
    lookup = canonical.lookup_digest(Action.RETIRE_GENERATION, caller.namespace, {"reference": reference})
    question = caller.asks(Action.RETIRE_GENERATION, about=lookup)
    question.require(Point.A0)
    with locked(caller.binding) as namespace:
        row = Generation.objects.select_for_update().filter(namespace=namespace, reference=reference).first()
        if row is not None:
            question = question.about(row.manifest_digest)
        question.require(Point.A1)
        if row is None:
            raise GenerationAbsent
        if row.state == GenerationState.ACTIVE:
            _invalidate(row)
            row.state = GenerationState.RETIRED.value
            row.version += 1
            row.retired_by = caller.subject
            row.retired_at = moment()
            row.save(update_fields=["state", "version", "retired_by", "retired_at"])
        retired = GenerationRecord.of(row)
    question.require(Point.A2)
    return retired


def _invalidate(row: Generation) -> None:
    """End the derivations of a generation slice by slice, so that no statement of a large one outlasts its limit.

    All in the one transaction that retires it; the trigger would do the same in a single statement.
    """
    with connection.cursor() as cursor:
        while True:
            cursor.execute(_INVALIDATE, [row.id, limits.RETIRE_SLICE])
            if cursor.rowcount < limits.RETIRE_SLICE:
                return


def standing(namespace: Namespace, wanted: Configured) -> Generation:
    """Return the configured generation of a held namespace, or refuse with what is wrong with it (R-L-222)."""
    # As plain SQL: every recall asks twice.
    rows = Generation.objects.raw(
        f"SELECT {_COLUMNS} FROM semantic_generation WHERE namespace_id = %s AND reference = %s",  # noqa: S608
        [namespace.id, wanted.reference],
    )
    row = next(iter(rows), None)
    if row is None:
        raise GenerationAbsent
    if not canonical.same(row.manifest_digest, wanted.digest):
        raise GenerationMismatch
    if row.state != GenerationState.ACTIVE:
        raise GenerationRetired
    return row
