"""Transitions: promote, archive, revoke, each on the version that was seen (R-L-070..084).

Promotion makes a candidate eligible for recall and archives the revision it takes the place of, in one transaction.
Revocation clears the text and every word derived from it at once and leaves a tombstone. Promotion says that a note may
be recalled; nothing here says that it is true (R-L-084).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Q

from archive import authority, batches, lifecycle, limits
from archive.authority import Action, Caller, Point, Question
from archive.batches import Answer
from archive.gates import gate
from archive.lifecycle import Cause, State
from archive.models import LifecycleEvent, Namespace, Note
from archive.records import METADATA, NoteRecord
from archive.refusals import (
    AuthorityRefused,
    BatchRolledBack,
    Fault,
    IllegalTransition,
    InvalidRequest,
    LifecycleVersionConflict,
    RecordAbsent,
    Refusal,
    SecondPersonRequired,
    Unavailable,
)
from archive.requests import Transition
from archive.transactions import locked, moment

ACTION_OF: Final[dict[State, Action]] = {
    State.PROMOTED: Action.PROMOTE,
    State.ARCHIVED: Action.ARCHIVE,
    State.REVOKED: Action.REVOKE,
}


@dataclass(frozen=True, slots=True)
class Moved:
    """The note after its step, and the note that was archived because of it."""

    note: NoteRecord
    superseded: NoteRecord | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    """One change of one row, ready to be written."""

    note: Note
    from_state: str
    cause: Cause
    caused_by: Note | None
    reason: str | None


def promote(caller: Caller, change: Transition) -> Moved:
    """Make a candidate eligible for recall; the revision that it takes the place of is archived with it."""
    return _move(caller, replace(change, to_state=State.PROMOTED))


def archive(caller: Caller, change: Transition) -> Moved:
    """Take a promoted note out of recall and keep its text."""
    return _move(caller, replace(change, to_state=State.ARCHIVED))


def revoke(caller: Caller, change: Transition) -> Moved:
    """Clear a note's text and words for good; what is left is a tombstone that cannot be taken in again."""
    return _move(caller, replace(change, to_state=State.REVOKED))


def _move(caller: Caller, change: Transition) -> Moved:
    question = caller.asks(ACTION_OF[change.to_state], about=change.request_digest())
    question.require(Point.A0)
    with locked(caller.binding) as namespace:
        notes = _held(namespace, [change.note_id])
        question = _about(question, notes.get(change.note_id), change)
        question.require(Point.A1)
        moved = _step(namespace, caller, notes, change)
    question.require(Point.A2)
    return moved


def transition_many(caller: Caller, changes: Sequence[Transition], *, atomic: bool = False) -> list[Answer[Moved]]:
    """Make up to 200 decisions, slice by slice; each has its own answer, in order, and a moved row refuses alone."""
    if not 1 <= len(changes) <= limits.BATCH_TRANSITION_MAX:
        raise InvalidRequest([Fault("/items", f"1 to {limits.BATCH_TRANSITION_MAX} items")])
    if atomic and len(changes) > limits.SLICE_ITEMS:
        raise InvalidRequest([Fault("/atomic", f"takes at most {limits.SLICE_ITEMS} items")])
    questions = [caller.asks(ACTION_OF[change.to_state], about=change.request_digest()) for change in changes]
    answers: dict[int, Answer[Moved]] = {}
    _ask(list(enumerate(questions)), Point.A0, answers)
    _all_or_nothing(atomic, answers, len(changes))
    waiting = [place for place in range(len(changes)) if place not in answers]
    while waiting:
        run = waiting[: limits.SLICE_ITEMS]
        try:
            done = _move_slice(caller, {place: changes[place] for place in run}, questions, answers, atomic=atomic)
        except Unavailable as refusal:
            if len(changes) <= limits.SLICE_ITEMS:
                raise
            done = run
            answers.update({place: Answer(refusal=refusal) for place in run})
        waiting = waiting[len(done) :]
    _all_or_nothing(atomic, answers, len(changes))
    _ask([(place, questions[place]) for place, answer in answers.items() if answer.result], Point.A2, answers)
    return [answers[place] for place in range(len(changes))]


def _all_or_nothing(atomic: bool, answers: dict[int, Answer[Moved]], count: int) -> None:
    if atomic and any(answer.refusal for answer in answers.values()):
        raise BatchRolledBack(extra={"items": batches.told(answers, count)})


def _ask(asked: Sequence[tuple[int, Question]], point: Point, answers: dict[int, Answer[Moved]]) -> None:
    allowed = authority.decide([question.asked for _, question in asked], point)
    if asked and not any(allowed):
        raise AuthorityRefused
    for (place, _), yes in zip(asked, allowed, strict=True):
        if not yes:
            answers[place] = Answer(refusal=AuthorityRefused())


def _move_slice(
    caller: Caller,
    run: dict[int, Transition],
    questions: list[Question],
    answers: dict[int, Answer[Moved]],
    *,
    atomic: bool,
) -> list[int]:
    """Decide one slice in one hold and return the places decided; it ends early when it holds enough words."""
    found: dict[int, Answer[Moved]] = {}
    try:
        with locked(caller.binding) as namespace:
            notes = _held(namespace, [change.note_id for change in run.values()])
            places = _affordable(run, notes)
            if atomic and len(places) < len(run):
                raise InvalidRequest([Fault("/atomic", f"takes at most {limits.SLICE_WORDS} words")])
            for place in places:
                questions[place] = _about(questions[place], notes.get(run[place].note_id), run[place])
            gate("transition.A1")
            allowed = authority.decide([questions[place].asked for place in places], Point.A1)
            for place, yes in zip(places, allowed, strict=True):
                try:
                    if not yes:
                        raise AuthorityRefused
                    found[place] = Answer(result=_step(namespace, caller, notes, run[place]))
                except Refusal as refusal:
                    found[place] = Answer(refusal=refusal)
            if atomic and any(answer.refusal for answer in found.values()):
                raise batches.RolledBack({})
    except batches.RolledBack:
        pass
    answers.update(found)
    return places


def _affordable(run: dict[int, Transition], notes: dict[UUID, Note]) -> list[int]:
    """Take places in order while their notes' words (six bytes each, a high guess) fit the slice; at least one."""
    places: list[int] = []
    words = 0
    for place, change in run.items():
        note = notes.get(change.note_id)
        words += 0 if note is None else note.byte_count // 6
        if places and words > limits.SLICE_WORDS:
            break
        places.append(place)
    return places


def _held(namespace: Namespace, ids: Sequence[UUID]) -> dict[UUID, Note]:
    """Lock these notes and the promoted revisions of their sources, in ascending id, without reading any text."""
    sources = Note.objects.filter(namespace=namespace, id__in=ids).values("source_id")
    rows = (
        Note.objects.select_for_update(of=("self",))
        .select_related("source")
        .only(*METADATA)
        .filter(Q(id__in=ids) | Q(source_id__in=sources, state=State.PROMOTED), namespace=namespace)
        .order_by("id")
    )
    return {note.id: note for note in rows}


def _about(question: Question, note: Note | None, change: Transition) -> Question:
    """Ask about the note itself once it is held; about the request while there is no such note."""
    if note is None:
        return question
    return question.about(change.object_digest(text_digest=note.text_digest, from_state=note.state))


def _step(namespace: Namespace, caller: Caller, notes: dict[UUID, Note], change: Transition) -> Moved:
    """Judge one change on held rows and write it; absence, version and edge answer in this order."""
    note = notes.get(change.note_id)
    if note is None:
        raise RecordAbsent
    if note.lifecycle_version != change.expected_version:
        raise LifecycleVersionConflict
    if not lifecycle.is_legal(State(note.state), change.to_state):
        raise IllegalTransition
    if change.to_state is State.PROMOTED and caller.binding.second_person and note.admitted_subject == caller.subject:
        raise SecondPersonRequired
    earlier = None
    now = moment()
    steps: list[_Step] = []
    if change.to_state is State.PROMOTED:
        earlier = next(
            (one for one in notes.values() if one.source_id == note.source_id and one.state == State.PROMOTED), None
        )
        if earlier is not None:
            steps.append(_Step(earlier, earlier.state, Cause.SUPERSEDED, note, None))
            _advance(earlier, State.ARCHIVED, now, successor=note)
    reason = None if change.reason is None else change.reason.value
    steps.append(_Step(note, note.state, Cause.EXPLICIT, None, reason))
    _advance(note, change.to_state, now)
    _write(namespace, caller, steps, now)
    return Moved(NoteRecord.of(note), None if earlier is None else NoteRecord.of(earlier))


def _advance(note: Note, state: State, now: datetime, successor: Note | None = None) -> None:
    note.state = state.value
    note.lifecycle_version += 1
    note.state_changed_at = now
    setattr(note, f"{state.value}_at", now)
    if successor is not None:
        note.superseded_by = successor


def _write(namespace: Namespace, caller: Caller, steps: Sequence[_Step], now: datetime) -> None:
    """Write the rows in order: what leaves `promoted` leaves before its successor arrives."""
    with connection.cursor() as cursor:
        for step in steps:
            cursor.execute(
                "UPDATE archive_note SET state = %s, lifecycle_version = %s, state_changed_at = %s, promoted_at = %s,"
                " archived_at = %s, revoked_at = %s, superseded_by_id = %s,"
                " text = CASE WHEN %s THEN NULL ELSE text END"
                " WHERE id = %s AND namespace_id = %s",
                [
                    step.note.state,
                    step.note.lifecycle_version,
                    now,
                    step.note.promoted_at,
                    step.note.archived_at,
                    step.note.revoked_at,
                    step.note.superseded_by_id,
                    step.note.state == State.REVOKED,
                    step.note.id,
                    namespace.id,
                ],
            )
    LifecycleEvent.objects.bulk_create(
        [
            LifecycleEvent(
                namespace=namespace,
                note=step.note,
                from_state=step.from_state,
                to_state=step.note.state,
                from_version=step.note.lifecycle_version - 1,
                to_version=step.note.lifecycle_version,
                cause=step.cause,
                caused_by_note=step.caused_by,
                reason=step.reason,
                subject=caller.subject,
                policy_revision=caller.binding.policy_revision,
                created_at=now,
            )
            for step in steps
        ]
    )
