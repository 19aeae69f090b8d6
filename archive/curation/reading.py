"""What a note's page needs from the curator's side: the exact text, and which decisions are open to this caller."""

from collections.abc import Collection
from dataclasses import dataclass

from archive import authority
from archive.authority import Caller, Point
from archive.lifecycle import State
from archive.operations.desk import steps
from archive.operations.review import Reviewed, review
from archive.records import NoteRecord
from archive.refusals import AuthorityRefused


def text_of(caller: Caller, note: NoteRecord) -> Reviewed | None:
    """Return the text of a note that has one, or None to whoever may not review it."""
    if note.state == State.REVOKED:
        return None
    try:
        return review(caller, note.id)
    except AuthorityRefused:
        return None


@dataclass(frozen=True, slots=True)
class Decisions:
    """The steps that this caller may take from where a note stands."""

    promote: bool
    archive: bool
    revoke: bool
    second_person: bool
    """Somebody else has to promote it."""

    @property
    def none(self) -> bool:
        return not (self.promote or self.archive or self.revoke or self.second_person)


def decisions(caller: Caller, note: NoteRecord) -> Decisions:
    """Say which decisions to offer; the operation asks again, so this promises nothing."""
    possible = steps(caller, note)
    answers = authority.decide([question.asked for _, question in possible], Point.A0)
    return offered(caller, note, {state for (state, _), yes in zip(possible, answers, strict=True) if yes})


def offered(caller: Caller, note: NoteRecord, allowed: Collection[State]) -> Decisions:
    """Say so where it is known already which steps the grants allow."""
    own = caller.binding.second_person and note.admitted_subject == caller.subject
    return Decisions(
        promote=State.PROMOTED in allowed and not own,
        archive=State.ARCHIVED in allowed,
        revoke=State.REVOKED in allowed,
        second_person=State.PROMOTED in allowed and own,
    )
