"""Everything that can be done to the archive over HTTP: parse, call one operation, render (5.14)."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from archive import canonical, limits, refusals
from archive.api import bodies, description, schema
from archive.api.base import ArchiveView
from archive.api.receipts import ReceiptView, recall_described, recalled, resolution_described, resolved
from archive.batches import Answer
from archive.lifecycle import State
from archive.operations.flag import flag
from archive.operations.intake import Admitted, Outcome, intake, intake_many
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.operations.review import review
from archive.operations.transition import Moved, archive, promote, revoke, transition_many
from archive.records import NoteRecord
from archive.requests import Transition

_INTAKE_REFUSES: Final = (
    *description.IN_NAMESPACE,
    *description.WRITING,
    refusals.TextTooLarge,
    refusals.RequestConflict,
    refusals.SourceRevisionConflict,
    refusals.SourceRevisionRevoked,
    refusals.CandidatesWaiting,
)
_DECISION_REFUSES: Final = (
    *description.IN_NAMESPACE,
    *description.WRITING,
    refusals.NamespaceAbsent,
    refusals.RecordAbsent,
    refusals.LifecycleVersionConflict,
    refusals.IllegalTransition,
)


def admitted_note(note: NoteRecord) -> dict[str, Any]:
    """Tell a writer of a note what an intake is answered with: where it stands and its digests (R-L-061, 064)."""
    return {
        "id": str(note.id),
        "state": note.state,
        "lifecycle_version": note.lifecycle_version,
        "text_digest": note.text_digest,
        "material_digest": note.material_digest,
    }


def _admitted(done: Admitted) -> tuple[int, dict[str, Any]]:
    status = HTTPStatus.CREATED if done.outcome is Outcome.CREATED else HTTPStatus.OK
    return status, {"outcome": done.outcome.value, "note": admitted_note(done.note)}


def _moved(done: Moved) -> dict[str, Any]:
    return {
        "note": done.note.as_json(),
        "superseded": None if done.superseded is None else done.superseded.as_json(),
    }


def _refused(answer: Answer[Any]) -> dict[str, Any] | None:
    return None if answer.refusal is None else {"status": answer.refusal.status, "code": answer.refusal.code}


class Intakes(ArchiveView):
    """Take one source revision in."""

    @description.operation(
        "takeIn",
        {
            201: ("A new candidate.", schema.ADMITTED),
            200: ("What the same request or revision led to.", schema.ADMITTED),
        },
        tag="notes",
        request=schema.INTAKE,
        parameters=[description.NS],
        refuses=_INTAKE_REFUSES,
    )
    def post(self, request: Request, ns: str) -> Response:
        """Take one source revision in; the same request again gives the same note."""
        wanted = bodies.intake(self.body(request))
        status, told = _admitted(intake(self.caller(request, ns), wanted))
        return Response(told, status=status)


class IntakeBatches(ArchiveView):
    """Take up to 500 source revisions in."""

    body_limit: ClassVar[int] = limits.BATCH_BODY_MAX_BYTES

    @description.operation(
        "takeInMany",
        {200: ("One answer an item, in order.", schema.ADMITTED_BATCH)},
        tag="notes",
        request=schema.INTAKE_BATCH,
        parameters=[description.NS],
        refuses=(*description.IN_NAMESPACE, *description.WRITING, refusals.TextTooLarge, refusals.BatchRolledBack),
    )
    def post(self, request: Request, ns: str) -> Response:
        """Take many source revisions in; a malformed item refuses the batch, a text too long refuses its item alone."""
        batch = bodies.intake_batch(self.body(request))
        answers = batch.in_order(intake_many(self.caller(request, ns), batch.wanted, atomic=batch.atomic))
        return Response({"items": [_admitted_item(answer) for answer in answers]})


def _admitted_item(answer: Answer[Admitted]) -> dict[str, Any]:
    if (refused := _refused(answer)) is not None:
        return refused
    status, told = _admitted(answer.given())
    return {"status": int(status), **told}


class Transitions(ArchiveView):
    """Decide about up to 200 notes."""

    body_limit: ClassVar[int] = limits.BATCH_BODY_MAX_BYTES

    @description.operation(
        "decideMany",
        {200: ("One answer an item, in order.", schema.MOVED_BATCH)},
        tag="decisions",
        request=schema.DECISION_BATCH,
        parameters=[description.NS],
        refuses=(*description.IN_NAMESPACE, *description.WRITING, refusals.NamespaceAbsent, refusals.BatchRolledBack),
    )
    def post(self, request: Request, ns: str) -> Response:
        """Promote, archive or revoke many notes, each on the version that was seen."""
        changes, atomic = bodies.transition_batch(self.body(request))
        answers: Sequence[Answer[Moved]] = transition_many(self.caller(request, ns), changes, atomic=atomic)
        return Response(
            {"items": [_refused(answer) or {"status": 200, **_moved(answer.given())} for answer in answers]}
        )


class _Decision(ArchiveView):
    to_state: ClassVar[State]

    def decision(self, request: Request, note_id: str) -> Transition:
        """Read the decision from the body, or from If-Match when the body says nothing of a version."""
        tag = self.if_match(request)
        body = self.body(request, optional=tag is not None)
        return bodies.decision(body, bodies.note_id(note_id), self.to_state, tag)


def _described(name: str, *more: type[refusals.Refusal]) -> Callable[[description.View], description.View]:
    return description.operation(
        name,
        {200: ("The note after its step.", schema.MOVED)},
        tag="decisions",
        request=schema.DECISION,
        required=False,
        parameters=[description.NS, description.NOTE_ID, description.IF_MATCH],
        refuses=(*_DECISION_REFUSES, *more),
    )


class Promotions(_Decision):
    """Promote one note."""

    to_state = State.PROMOTED

    @_described("promote", refusals.SecondPersonRequired)
    def post(self, request: Request, ns: str, note_id: str) -> Response:
        """Let a candidate be recalled; the revision that it takes the place of is archived with it."""
        change = self.decision(request, note_id)
        return Response(_moved(promote(self.caller(request, ns), change)))


class Archivals(_Decision):
    """Archive one note."""

    to_state = State.ARCHIVED

    @_described("archive")
    def post(self, request: Request, ns: str, note_id: str) -> Response:
        """Take a promoted note out of recall and keep its text."""
        change = self.decision(request, note_id)
        return Response(_moved(archive(self.caller(request, ns), change)))


class Revocations(_Decision):
    """Revoke one note."""

    to_state = State.REVOKED

    @_described("revoke")
    def post(self, request: Request, ns: str, note_id: str) -> Response:
        """Clear a note's text and words for good; the tombstone stays."""
        change = self.decision(request, note_id)
        return Response(_moved(revoke(self.caller(request, ns), change)))


class Texts(ArchiveView):
    """Review one note."""

    @description.operation(
        "review",
        {200: ("The text, and that of the promoted revision of its source if it is another.", schema.REVIEWED)},
        tag="decisions",
        parameters=[description.NS, description.NOTE_ID],
        refuses=(
            *description.IN_NAMESPACE,
            refusals.NamespaceAbsent,
            refusals.RecordAbsent,
            refusals.SourceRevisionRevoked,
            refusals.IntegrityFailure,
        ),
    )
    def get(self, request: Request, ns: str, note_id: str) -> Response:
        """Read the exact text of a note that is to be judged."""
        wanted = bodies.note_id(note_id)
        seen = review(self.caller(request, ns), wanted)
        promoted = None if seen.promoted is None else {"note_id": str(seen.promoted.id), "text": seen.promoted_text}
        return Response({"text": seen.text, "promoted": promoted})


class Flags(ArchiveView):
    """Mark one note."""

    @description.operation(
        "flag",
        {201: ("The mark.", schema.FLAGGED), 200: ("The same mark, made before.", schema.FLAGGED)},
        tag="notes",
        request=schema.FLAG,
        parameters=[description.NS, description.NOTE_ID],
        refuses=(*description.IN_NAMESPACE, *description.WRITING, refusals.NamespaceAbsent, refusals.RecordAbsent),
    )
    def post(self, request: Request, ns: str, note_id: str) -> Response:
        """Say that a note looks wrong or old; nothing else about it changes."""
        wanted, reason = bodies.note_id(note_id), bodies.flag(self.body(request))
        marked = flag(self.caller(request, ns), wanted, reason)
        told = {
            "note_id": str(marked.note_id),
            "lifecycle_version": marked.lifecycle_version,
            "reason": marked.reason,
            "created_at": canonical.instant(marked.created_at),
            "repeated": marked.repeated,
        }
        return Response(told, status=HTTPStatus.OK if marked.repeated else HTTPStatus.CREATED)


class Recalls(ReceiptView):
    """Recall by words."""

    @recall_described("recall", refusals.CapabilityNotReady, request=schema.RECALL, answer=schema.RECALLED)
    def post(self, request: Request, ns: str) -> Response:
        """Select promoted notes for a query and leave a receipt; a miss is a receipt too."""
        wanted = bodies.recall(self.body(request))
        done = recall(self.caller(request, ns), wanted)
        return recalled(done.outcome, done.receipt)


class Resolutions(ReceiptView):
    """Resolve a receipt."""

    @resolution_described("resolve")
    def post(self, request: Request, ns: str, request_id: str) -> Response:
        """Turn a receipt into text under today's authority, all of it or nothing; ask again for each later use."""
        wanted = self.resolving(request, request_id)
        return resolved(resolve(self.caller(request, ns), wanted))
