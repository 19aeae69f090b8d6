"""Transitions: promote, archive, revoke, each on the version that was seen (R-L-070..084).

Promotion makes a candidate eligible for recall and archives the revision it takes the place of, in one transaction.
Revocation clears the text and every word derived from it at once and leaves a tombstone. Promotion says that a note may
be recalled; nothing here says that it is true (R-L-084).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from django.db import connection

from archive import authority, batches, lifecycle, limits
from archive.authority import Action, Caller, Point, Question
from archive.batches import Answer
from archive.gates import gate
from archive.lifecycle import Cause, Reason, State
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
    to_state: State
    version: int
    cause: Cause
    successor: Note | None
    reason: Reason | None


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
        ledger = _Ledger(namespace, caller)
        moved = ledger.enter(change, *_judge(caller, notes, change))
        ledger.write()
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
        except Refusal as refusal:
            # The same as for intakes. Long notes cut even a short batch, so its length does not tell what stands.
            several = len(changes) > limits.SLICE_ITEMS and isinstance(refusal, Unavailable)
            if not (several or batches.stands(answers)):
                raise
            done = run
            answers.update({place: Answer(refusal=refusal) for place in run})
        waiting = waiting[len(done) :]
    batches.require_some(answers, len(changes))
    _all_or_nothing(atomic, answers, len(changes))
    gate("transition.A2")
    _ask([(place, questions[place]) for place, answer in answers.items() if answer.result], Point.A2, answers)
    batches.record(answers.values(), "transition", caller.namespace)
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
            affordable = _affordable(run, notes)
            places = list(run) if atomic else affordable
            states = _foreseen(run, notes)
            for place in places:
                note = notes.get(run[place].note_id)
                questions[place] = _about(questions[place], note, run[place], states.get(place))
            gate("transition.A1")
            allowed = authority.decide([questions[place].asked for place in places], Point.A1)
            if len(affordable) < len(places) and all(allowed):
                # How long notes are is told to whoever may decide about all of them, and to nobody before.
                raise InvalidRequest([Fault("/atomic", f"takes at most {limits.SLICE_WORDS} words")])
            ledger = _Ledger(namespace, caller)
            for place, yes in zip(places, allowed, strict=True):
                try:
                    if not yes:
                        raise AuthorityRefused
                    judged = _judge(caller, notes, run[place])
                except Refusal as refusal:
                    found[place] = Answer(refusal=refusal)
                else:
                    found[place] = Answer(result=ledger.enter(run[place], *judged))
            if atomic and any(answer.refusal for answer in found.values()):
                raise batches.RolledBack({})
            ledger.write()
    except batches.RolledBack:
        pass
    answers.update(found)
    return places


def _affordable(run: dict[int, Transition], notes: dict[UUID, Note]) -> list[int]:
    """Take places in order while their notes' words fit the slice; at least one."""
    places: list[int] = []
    words = 0
    for place, change in run.items():
        note = notes.get(change.note_id)
        words += 0 if note is None else _words(note)
        if places and words > limits.SLICE_WORDS:
            break
        places.append(place)
    return places


def _words(note: Note) -> int:
    """Guess how many postings a note makes without reading it: six ASCII bytes each, or one a character elsewhere."""
    return note.byte_count // 6 if note.byte_count == note.char_count else note.char_count


def _held(namespace: Namespace, ids: Sequence[UUID]) -> dict[UUID, Note]:
    """Lock these notes and the promoted revisions of their sources, in ascending id, without reading any text."""
    named = Note.objects.filter(namespace=namespace, id__in=ids).values("id")
    siblings = Note.objects.filter(
        state=State.PROMOTED, source__in=Note.objects.filter(namespace=namespace, id__in=ids).values("source_id")
    ).values("id")
    rows = (
        Note.objects.select_for_update(of=("self",))
        .select_related("source")
        .only(*METADATA)
        # A union and no OR, for which every promoted note of the namespace would be looked at.
        .filter(namespace=namespace, id__in=named.union(siblings))
        .order_by("id")
    )
    return {note.id: note for note in rows}


def _about(question: Question, note: Note | None, change: Transition, from_state: str | None = None) -> Question:
    """Ask about the note itself once it is held; about the request while there is no such note."""
    if note is None:
        return question
    return question.about(change.object_digest(text_digest=note.text_digest, from_state=from_state or note.state))


def _foreseen(run: dict[int, Transition], notes: dict[UUID, Note]) -> dict[int, str]:
    """Say in which state each change of a slice will find its note, if those before it go through.

    All of a slice is asked about at once, before any of it moves. A state is looked up by the version that the change
    expects, and a note that can still move was in one state alone at each version: a change that moves although one
    before it was refused moves from the state that was asked about.
    """
    walks = {note.id: {note.lifecycle_version: note.state} for note in notes.values()}
    found: dict[int, str] = {}
    for place, change in run.items():
        note = notes.get(change.note_id)
        if note is None:
            continue
        walk, latest = walks[note.id], max(walks[note.id])
        found[place] = walk.get(change.expected_version, note.state)
        if change.expected_version != latest or not lifecycle.is_legal(State(walk[latest]), change.to_state):
            continue
        if change.to_state is State.PROMOTED:
            for other in (walks[one.id] for one in notes.values() if one.source_id == note.source_id):
                if other[max(other)] == State.PROMOTED:
                    other[max(other) + 1] = State.ARCHIVED.value
        walk[latest + 1] = change.to_state.value
    return found


def _judge(caller: Caller, notes: dict[UUID, Note], change: Transition) -> tuple[Note, Note | None]:
    """Judge one change on held rows: absence, version, edge, in this order; return the note and what it replaces."""
    note = notes.get(change.note_id)
    if note is None:
        raise RecordAbsent
    if note.lifecycle_version != change.expected_version:
        raise LifecycleVersionConflict
    if not lifecycle.is_legal(State(note.state), change.to_state):
        raise IllegalTransition
    if change.to_state is not State.PROMOTED:
        return note, None
    if caller.binding.second_person and note.admitted_subject == caller.subject:
        raise SecondPersonRequired
    replaced = (one for one in notes.values() if one.source_id == note.source_id and one.state == State.PROMOTED)
    return note, next(replaced, None)


class _Ledger:
    """Steps judged under one hold, written by sets: one statement for all that leave, one for all that arrive.

    A note that moves twice makes the ledger write what it has first, so that each row takes one step a statement.
    """

    def __init__(self, namespace: Namespace, caller: Caller) -> None:
        self.namespace = namespace
        self.caller = caller
        self.now = moment()
        self.steps: list[_Step] = []

    def enter(self, change: Transition, note: Note, earlier: Note | None) -> Moved:
        """Note the steps of a judged change down; the earlier promoted revision goes to the archive with it."""
        if any(step.note in (note, earlier) for step in self.steps):
            self.write()
        if earlier is not None:
            self._advance(earlier, State.ARCHIVED, Cause.SUPERSEDED, successor=note)
        self._advance(note, change.to_state, Cause.EXPLICIT, reason=change.reason)
        return Moved(NoteRecord.of(note), None if earlier is None else NoteRecord.of(earlier))

    def _advance(
        self, note: Note, state: State, cause: Cause, *, successor: Note | None = None, reason: Reason | None = None
    ) -> None:
        self.steps.append(_Step(note, note.state, state, note.lifecycle_version + 1, cause, successor, reason))
        note.state = state.value
        note.lifecycle_version += 1
        note.state_changed_at = self.now
        setattr(note, f"{state.value}_at", self.now)
        if state is State.REVOKED:
            note.asserted_origin = None
        if successor is not None:
            note.superseded_by = successor

    def write(self) -> None:
        """Write the rows and their events; what leaves `promoted` leaves before its successor arrives."""
        for arriving in (False, True):
            self._update([step for step in self.steps if (step.to_state is State.PROMOTED) is arriving])
        LifecycleEvent.objects.bulk_create([self._event(step) for step in self.steps])
        self.steps = []

    def _update(self, steps: Sequence[_Step]) -> None:
        if not steps:
            return
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE archive_note n SET state = m.state, lifecycle_version = m.version, state_changed_at = c.now,"
                " promoted_at = CASE m.state WHEN 'promoted' THEN c.now ELSE n.promoted_at END,"
                " archived_at = CASE m.state WHEN 'archived' THEN c.now ELSE n.archived_at END,"
                " revoked_at = CASE m.state WHEN 'revoked' THEN c.now ELSE n.revoked_at END,"
                " superseded_by_id = coalesce(m.successor, n.superseded_by_id),"
                " text = CASE m.state WHEN 'revoked' THEN NULL ELSE n.text END,"
                " asserted_origin = CASE m.state WHEN 'revoked' THEN NULL ELSE n.asserted_origin END"
                " FROM unnest(%s::uuid[], %s::text[], %s::int[], %s::uuid[]) AS m (id, state, version, successor),"
                " (SELECT %s::timestamptz AS now) AS c"
                " WHERE n.id = m.id AND n.namespace_id = %s AND n.lifecycle_version = m.version - 1",
                [
                    [step.note.id for step in steps],
                    [step.to_state.value for step in steps],
                    [step.version for step in steps],
                    [None if step.successor is None else step.successor.id for step in steps],
                    self.now,
                    self.namespace.id,
                ],
            )
            if cursor.rowcount != len(steps):
                # The rows are held, so nobody can have moved them; if somebody has, nothing of this may stand.
                raise LifecycleVersionConflict

    def _event(self, step: _Step) -> LifecycleEvent:
        return LifecycleEvent(
            namespace=self.namespace,
            note=step.note,
            from_state=step.from_state,
            to_state=step.to_state.value,
            from_version=step.version - 1,
            to_version=step.version,
            cause=step.cause.value,
            caused_by_note=step.successor,
            reason=None if step.reason is None else step.reason.value,
            subject=self.caller.subject,
            policy_revision=self.caller.binding.policy_revision,
            created_at=self.now,
        )
