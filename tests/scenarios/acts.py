"""Every operation once, ready to be called: for what has to hold of all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from archive.authority import Action, Caller
from archive.lifecycle import Reason, State
from archive.operations.desk import Queue, desk
from archive.operations.flag import flag
from archive.operations.intake import intake, intake_many
from archive.operations.migration import migrate
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.operations.review import review
from archive.operations.transition import archive, promote, revoke, transition_many
from archive.requests import Intake, LexicalRecall, Transition
from inspection import reads
from inspection.cursors import PageRequest
from tests import cast

PAGE = PageRequest()


@dataclass(frozen=True)
class Scene:
    """What an act is about: notes and requests that exist, or, in an empty scene, that could."""

    candidate: UUID
    waiting: UUID
    promoted: UUID
    archived: UUID
    receipt: str
    request: str
    version_of_archived: int = 3

    @classmethod
    def empty(cls) -> "Scene":
        return cls(uuid4(), uuid4(), uuid4(), uuid4(), "nothing", "nothing")


def scene(caller: Caller, recaller: Caller) -> Scene:
    """A garden with a note in each state that leads on, a receipt and a request."""
    first = cast.wanted("Tulips want cold feet.", source="tulips")
    intake(caller, first)
    candidate = cast.admitted(caller, "Ferns want shade.", source="ferns")
    waiting = cast.admitted(caller, "Moss wants rain.", source="moss")
    promoted = cast.promoted(caller, "Roses want morning sun.", source="roses")
    archived = cast.archived(caller, "Ivy wants a wall.", source="ivy")
    receipt: str = cast.asked(recaller, "roses").receipt["request_id"]
    return Scene(candidate.id, waiting.id, promoted.id, archived.id, receipt, first.request_id)


def an_intake() -> Intake:
    return cast.wanted("Sage wants gravel.", source=cast.fresh("sage"))


def a_recall() -> LexicalRecall:
    return LexicalRecall(cast.fresh("q"), "roses")


@dataclass(frozen=True)
class Act:
    """One operation: its action, and how to call it."""

    action: Action
    call: Callable[[Caller, Scene], Any]
    retained: bool = True
    """Whether it needs retained material to answer at all."""


ACTS: dict[str, Act] = {
    "intake": Act(Action.INTAKE, lambda caller, at: intake(caller, an_intake()), retained=False),
    "intake_many": Act(
        Action.INTAKE, lambda caller, at: intake_many(caller, [an_intake(), an_intake()]), retained=False
    ),
    "promote": Act(Action.PROMOTE, lambda caller, at: promote(caller, Transition(at.candidate, State.PROMOTED, 1))),
    "transition_many": Act(
        Action.PROMOTE, lambda caller, at: transition_many(caller, [Transition(at.waiting, State.PROMOTED, 1)])
    ),
    "recall": Act(Action.RECALL, lambda caller, at: recall(caller, a_recall())),
    "replay": Act(Action.RECALL, lambda caller, at: recall(caller, LexicalRecall(at.receipt, "roses"))),
    "resolve": Act(Action.RESOLVE, lambda caller, at: resolve(caller, at.receipt)),
    "review": Act(Action.REVIEW, lambda caller, at: review(caller, at.promoted)),
    "desk": Act(Action.REVIEW, lambda caller, at: desk(caller, Queue()), retained=False),
    "flag": Act(Action.FLAG, lambda caller, at: flag(caller, at.promoted, Reason.OUTDATED)),
    "list_notes": Act(Action.INSPECT_METADATA, lambda caller, at: reads.list_notes(caller, PAGE), retained=False),
    "list_own_intakes": Act(
        Action.LIST_OWN_INTAKES, lambda caller, at: reads.list_own_intakes(caller, PAGE), retained=False
    ),
    "own_decisions": Act(
        Action.LIST_OWN_INTAKES, lambda caller, at: reads.own_decisions(caller, [at.promoted]), retained=False
    ),
    "own_standings": Act(
        Action.LIST_OWN_INTAKES, lambda caller, at: reads.own_standings(caller, ["roses"]), retained=False
    ),
    "note_record": Act(Action.INSPECT_METADATA, lambda caller, at: reads.note_record(caller, at.promoted)),
    "note_events": Act(Action.INSPECT_METADATA, lambda caller, at: reads.note_events(caller, at.promoted)),
    "namespace_events": Act(
        Action.INSPECT_METADATA, lambda caller, at: reads.namespace_events(caller, PAGE), retained=False
    ),
    "intake_record": Act(Action.INSPECT_METADATA, lambda caller, at: reads.intake_record(caller, at.request)),
    "decisions_by_day": Act(Action.INSPECT_METADATA, lambda caller, at: reads.decisions_by_day(caller), retained=False),
    "overview": Act(Action.INSPECT_METADATA, lambda caller, at: reads.overview(caller), retained=False),
    "receipt": Act(Action.INSPECT_RECEIPT, lambda caller, at: reads.receipt(caller, at.receipt)),
    "receipt_in_place": Act(Action.INSPECT_RECEIPT, lambda caller, at: reads.receipt_in_place(caller, at.receipt)),
    "list_receipts": Act(Action.INSPECT_RECEIPT, lambda caller, at: reads.list_receipts(caller, PAGE), retained=False),
    "archive": Act(Action.ARCHIVE, lambda caller, at: archive(caller, Transition(at.promoted, State.ARCHIVED, 2))),
    "revoke": Act(
        Action.REVOKE,
        lambda caller, at: revoke(caller, Transition(at.archived, State.REVOKED, at.version_of_archived)),
    ),
    "migrate": Act(Action.MIGRATE_BINDING, lambda caller, at: migrate(caller, reason="moved house")),
}
"""In an order in which each can be called after the one before."""

READS = (
    "list_notes",
    "list_own_intakes",
    "own_decisions",
    "own_standings",
    "note_record",
    "note_events",
    "namespace_events",
    "intake_record",
    "overview",
    "decisions_by_day",
    "receipt",
    "receipt_in_place",
    "list_receipts",
)

SNAPSHOTS = (*READS, "desk")
"""Acts that hold nothing, and are asked about before the first read and before the answer leaves."""
