"""Review: let a curator read what is to be judged, beside what it would take the place of (0.5)."""

from dataclasses import dataclass, field
from uuid import UUID

from archive import canonical
from archive.authority import Action, Caller, Point
from archive.lifecycle import State
from archive.models import Namespace, Note
from archive.records import METADATA, NoteRecord, projection_of
from archive.refusals import IntegrityFailure, RecordAbsent, SourceRevisionRevoked
from archive.transactions import shared


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The exact text of one note, and of the promoted revision of its source if that is another one."""

    note: NoteRecord
    text: str = field(repr=False)
    promoted: NoteRecord | None
    promoted_text: str | None = field(repr=False)


def review(caller: Caller, note_id: UUID) -> Reviewed:
    """Show one note to whoever may review it; a tombstone has no text to show (`source_revision_revoked`)."""
    lookup = canonical.lookup_digest(Action.REVIEW, caller.namespace, {"note_id": str(note_id)})
    question = caller.asks(Action.REVIEW, about=lookup)
    question.require(Point.A0)
    with shared(caller.binding) as namespace:
        note = _with_text(namespace).filter(id=note_id).first()
        if note is not None:
            question = question.about(projection_of(note, namespace.key))
        question.require(Point.A1)
        if note is None:
            raise RecordAbsent
        if note.text is None:
            raise SourceRevisionRevoked
        promoted = (
            _with_text(namespace).filter(source_id=note.source_id, state=State.PROMOTED).exclude(id=note.id).first()
        )
        reviewed = Reviewed(
            note=NoteRecord.of(note),
            text=_whole(note),
            promoted=None if promoted is None else NoteRecord.of(promoted),
            promoted_text=None if promoted is None else _whole(promoted),
        )
    question.require(Point.A2)
    return reviewed


def _with_text(namespace: Namespace):  # type: ignore[no-untyped-def]
    return Note.objects.select_related("source").only(*METADATA, "text").filter(namespace=namespace)


def _whole(note: Note) -> str:
    if note.text is None or not canonical.same(canonical.text_digest(note.text), note.text_digest):
        raise IntegrityFailure
    return note.text
