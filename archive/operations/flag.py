"""Flags: say that a note looks wrong or old, without changing anything else about it (0.14, R-L-302)."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from archive import canonical
from archive.authority import Action, Caller, Point
from archive.lifecycle import Reason
from archive.models import Flag, Note
from archive.refusals import RecordAbsent
from archive.transactions import locked, moment


@dataclass(frozen=True, slots=True)
class Flagged:
    """A mark on one version of a note; `repeated` when this subject had made the same mark before."""

    note_id: UUID
    lifecycle_version: int
    reason: str
    created_at: datetime
    repeated: bool


def flag(caller: Caller, note_id: UUID, reason: Reason) -> Flagged:
    """Mark the note's current version for review; raises `RecordAbsent`. Safe to repeat."""
    lookup = canonical.lookup_digest(Action.FLAG, caller.namespace, {"note_id": str(note_id), "reason": reason.value})
    question = caller.asks(Action.FLAG, about=lookup)
    question.require(Point.A0)
    with locked(caller.binding) as namespace:
        version = (
            Note.objects.filter(namespace=namespace, id=note_id).values_list("lifecycle_version", flat=True).first()
        )
        question.require(Point.A1)
        if version is None:
            raise RecordAbsent
        mark, created = Flag.objects.get_or_create(
            namespace=namespace,
            note_id=note_id,
            lifecycle_version=version,
            subject=caller.subject,
            reason=reason.value,
            defaults={"created_at": moment()},
        )
    question.require(Point.A2)
    return Flagged(note_id, version, reason.value, mark.created_at, repeated=not created)
