"""What a note's page needs from the curator's side: the exact text, and which decisions are open to this caller."""

from dataclasses import dataclass

from archive import authority, lifecycle
from archive.authority import Caller, Point
from archive.lifecycle import State
from archive.operations.review import Reviewed, review
from archive.operations.transition import ACTION_OF
from archive.records import NoteRecord
from archive.refusals import AuthorityRefused
from archive.requests import Transition


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
    legal = [state for state in ACTION_OF if lifecycle.is_legal(State(note.state), state)]
    questions = [
        caller.asks(ACTION_OF[state], about=Transition(note.id, state, note.lifecycle_version).request_digest()).asked
        for state in legal
    ]
    allowed = {state for state, yes in zip(legal, authority.decide(questions, Point.A0), strict=True) if yes}
    own = caller.binding.second_person and note.admitted_subject == caller.subject
    return Decisions(
        promote=State.PROMOTED in allowed and not own,
        archive=State.ARCHIVED in allowed,
        revoke=State.REVOKED in allowed,
        second_person=State.PROMOTED in allowed and own,
    )
