"""Intake: take a source revision in, exactly once (R-L-050..064, specification 5.10).

One request identity stays bound to one material, one source revision to one note, tombstones included. A new note is a
candidate at version 1: nothing of it can be recalled before a curator promotes it. No answer carries text.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, connection

from archive import authority, batches, canonical, limits
from archive.authority import Action, Caller, Point, Question
from archive.batches import Answer
from archive.gates import gate
from archive.lifecycle import Cause, State
from archive.models import IntakeRequest, Namespace, Note, Source
from archive.records import METADATA, NoteRecord
from archive.refusals import (
    AuthorityRefused,
    BatchRolledBack,
    CandidatesWaiting,
    Fault,
    InvalidRequest,
    Refusal,
    RequestConflict,
    SourceRevisionConflict,
    SourceRevisionRevoked,
    Unavailable,
)
from archive.requests import Intake
from archive.transactions import locked, moment, savepoint

# One insert a table, its rows as one array a column: the statement stays the same however long the slice is.
_SOURCES: Final = """
INSERT INTO archive_source (namespace_id, source_key)
SELECT %s::bigint, given.source_key FROM unnest(%s::text[]) AS given (source_key)
RETURNING id, source_key
"""

_NOTE_TYPES: Final = {
    "id": "uuid",
    "source_id": "bigint",
    "source_revision": "text",
    "kind": "text",
    "asserted_origin": "text",
    "state": "text",
    "lifecycle_version": "integer",
    "text": "text",
    "text_digest": "text",
    "char_count": "integer",
    "byte_count": "integer",
    "material_digest": "text",
    "classification": "text",
    "retention_class": "text",
    "retain_until": "timestamptz",
    "observed_at": "timestamptz",
    "admitted_subject": "text",
    "policy_revision": "text",
    "created_at": "timestamptz",
    "state_changed_at": "timestamptz",
}
_NOTE_COLUMNS: Final = tuple(_NOTE_TYPES)
_NOTES: Final = f"""
INSERT INTO archive_note (namespace_id, {", ".join(_NOTE_COLUMNS)})
SELECT %s::bigint, given.* FROM unnest({", ".join(f"%s::{kind}[]" for kind in _NOTE_TYPES.values())}) AS given
"""

# No further than the limit: of those beyond it no more is asked.
_WAITING: Final = f"""
SELECT count(*) FROM (
    SELECT FROM archive_note
    WHERE namespace_id = %s AND state = '{State.CANDIDATE}' AND admitted_subject = %s LIMIT %s
) AS waiting
"""

_BIRTHS: Final = f"""
INSERT INTO archive_lifecycle_event
    (namespace_id, note_id, to_state, from_version, to_version, cause, created_at, subject, policy_revision)
SELECT %s::bigint, given.note_id, '{State.CANDIDATE}', 0, 1, '{Cause.EXPLICIT}', %s::timestamptz, %s::text, %s::text
FROM unnest(%s::uuid[]) AS given (note_id)
"""

_REQUEST_COLUMNS: Final = ("request_id", "request_digest", "material_digest", "note_id", "created_note")
_REQUESTS: Final = f"""
INSERT INTO archive_intake_request (namespace_id, subject, created_at, {", ".join(_REQUEST_COLUMNS)})
SELECT %s::bigint, %s::text, %s::timestamptz, given.*
FROM unnest(%s::text[], %s::text[], %s::text[], %s::uuid[], %s::boolean[]) AS given
"""


class Outcome(StrEnum):
    """How an intake ended; all three are successes."""

    CREATED = "created"
    EXISTING = "existing"
    REPLAYED = "replayed"


@dataclass(frozen=True, slots=True)
class Admitted:
    """The note an intake led to, in its current state, and how."""

    outcome: Outcome
    note: NoteRecord


@dataclass(frozen=True, slots=True)
class _Proposed:
    """An intake with the digests that decide about it."""

    position: int
    wanted: Intake
    text_digest: str
    material_digest: str
    request_digest: str
    question: Question

    @classmethod
    def by(cls, caller: Caller, wanted: Intake, position: int = 0) -> "_Proposed":
        material = wanted.material(caller.namespace)
        material_digest = canonical.digest_of(canonical.INTAKE_MATERIAL, material)
        request_digest = canonical.digest_of(
            canonical.INTAKE_REQUEST,
            {"request_id": wanted.request_id, "subject": caller.subject, "material": material},
        )
        question = caller.asks(Action.INTAKE, about=material_digest)
        return cls(position, wanted, material["text_digest"], material_digest, request_digest, question)


def intake(caller: Caller, wanted: Intake) -> Admitted:
    """Take one source revision in, or say what it already led to; raises the refusals of R-L-051, 052 and 054."""
    proposed = _Proposed.by(caller, wanted)
    proposed.question.require(Point.A0)
    with locked(caller.binding, creating=True) as namespace:
        proposed.question.require(Point.A1)
        try:
            with savepoint():
                answer = _admit(namespace, caller, [proposed])[0]
        except IntegrityError:
            # The hold should make this impossible. If a unique constraint knows better, judge again by what it saw.
            answer = _admit(namespace, caller, [proposed])[0]
        answer.given()
    proposed.question.require(Point.A2)
    return answer.given()


def intake_many(caller: Caller, items: Sequence[Intake], *, atomic: bool = False) -> list[Answer[Admitted]]:
    """Take up to 500 revisions in, slice by slice; each item has its own answer, in order (0.10).

    `atomic` makes it one hold and all or nothing (`batch_rolled_back`), and then takes one slice's worth at most.
    Authority is asked once a check point for all items; who is refused everything gets the plain refusal.
    """
    if not 1 <= len(items) <= limits.BATCH_INTAKE_MAX:
        raise InvalidRequest([Fault("/items", f"1 to {limits.BATCH_INTAKE_MAX} items")])
    proposals = [_Proposed.by(caller, wanted, position) for position, wanted in enumerate(items)]
    runs = list(batches.slices(proposals, lambda one: one.wanted.words))
    if atomic and len(runs) > 1:
        raise InvalidRequest(
            [Fault("/atomic", f"takes at most {limits.SLICE_ITEMS} items and {limits.SLICE_WORDS} words")]
        )
    answers: dict[int, Answer[Admitted]] = {}
    _ask(proposals, Point.A0, answers)
    _all_or_nothing(atomic, answers, len(items))
    for run in runs:
        waiting = [one for one in run if one.position not in answers]
        if not waiting:
            continue
        try:
            answers.update(_admit_slice(caller, waiting, atomic=atomic))
        except Refusal as refusal:
            # Nothing of this slice happened. What came before it stands, so each item says for itself how it went.
            if len(runs) == 1 or not (isinstance(refusal, Unavailable) or batches.stands(answers)):
                raise
            answers.update({one.position: Answer(refusal=refusal) for one in waiting})
    batches.require_some(answers, len(items))
    _all_or_nothing(atomic, answers, len(items))
    gate("intake.A2")
    _ask([one for one in proposals if answers[one.position].result is not None], Point.A2, answers)
    batches.record(answers.values(), Action.INTAKE, caller.namespace)
    return [answers[place] for place in range(len(items))]


def _all_or_nothing(atomic: bool, answers: dict[int, Answer[Admitted]], count: int) -> None:
    if atomic and any(answer.refusal for answer in answers.values()):
        raise BatchRolledBack(extra={"items": batches.told(answers, count)})


def _ask(proposals: Sequence[_Proposed], point: Point, answers: dict[int, Answer[Admitted]]) -> None:
    allowed = authority.decide([one.question.asked for one in proposals], point)
    if proposals and not any(allowed):
        raise AuthorityRefused
    for one, yes in zip(proposals, allowed, strict=True):
        if not yes:
            answers[one.position] = Answer(refusal=AuthorityRefused())


def _admit_slice(caller: Caller, run: Sequence[_Proposed], *, atomic: bool) -> dict[int, Answer[Admitted]]:
    """Admit one slice in its own hold; a slice in which everything is refused leaves no namespace behind."""
    answers: dict[int, Answer[Admitted]] = {}
    try:
        with locked(caller.binding, creating=True) as namespace:
            gate("intake.A1")
            allowed = authority.decide([one.question.asked for one in run], Point.A1)
            for one, yes in zip(run, allowed, strict=True):
                if not yes:
                    answers[one.position] = Answer(refusal=AuthorityRefused())
            judged = [one for one, yes in zip(run, allowed, strict=True) if yes]
            if judged:
                results = _admit(namespace, caller, judged)
                answers.update({one.position: answer for one, answer in zip(judged, results, strict=True)})
            refusals = {place: answer.refusal for place, answer in answers.items() if answer.refusal is not None}
            if refusals and (atomic or len(refusals) == len(run)):
                raise batches.RolledBack(refusals)
    except batches.RolledBack as rolled_back:
        answers.update({place: Answer(refusal=refusal) for place, refusal in rolled_back.refusals.items()})
    return answers


def _admit(namespace: Namespace, caller: Caller, proposals: Sequence[_Proposed]) -> list[Answer[Admitted]]:
    """Judge rows already held, by sets: one look-up of requests, one of revisions, one insert a table."""
    requests = {
        request.request_id: request
        for request in IntakeRequest.objects.filter(
            namespace=namespace, request_id__in={one.wanted.request_id for one in proposals}
        ).only("request_id", "request_digest", "note_id")
    }
    sources = {
        source.source_key: source
        for source in Source.objects.filter(
            namespace=namespace, source_key__in={one.wanted.source_key for one in proposals}
        ).only("id", "source_key")
    }
    revisions = {one.wanted.source_revision for one in proposals}
    notes = _notes_named(namespace, sources, revisions, {request.note_id for request in requests.values()})
    by_revision = {(note.source.source_key, note.source_revision): note for note in notes}
    by_id = {note.id: note for note in notes}
    gate("intake.looked")

    now = moment()
    created: list[tuple[Note, str]] = []
    recorded: list[IntakeRequest] = []
    answers: list[Answer[Admitted]] = []
    room: int | None = None
    for one in proposals:
        request = requests.get(one.wanted.request_id)
        if request is not None:
            if canonical.same(request.request_digest, one.request_digest):
                answers.append(_success(Outcome.REPLAYED, by_id[request.note_id]))
            else:
                answers.append(Answer(refusal=RequestConflict()))
            continue
        note = by_revision.get((one.wanted.source_key, one.wanted.source_revision))
        if note is not None and note.state == State.REVOKED:
            answers.append(Answer(refusal=SourceRevisionRevoked()))
            continue
        if note is not None and not canonical.same(note.material_digest, one.material_digest):
            answers.append(Answer(refusal=SourceRevisionConflict()))
            continue
        outcome = Outcome.EXISTING
        if note is None:
            if room is None:
                room = _room(namespace, caller)
            if room == 0:
                answers.append(Answer(refusal=CandidatesWaiting()))
                continue
            room -= 1
            outcome = Outcome.CREATED
            note = _candidate(namespace, caller, one)
            note.created_at = note.state_changed_at = now
            created.append((note, one.wanted.source_key))
            by_revision[one.wanted.source_key, one.wanted.source_revision] = note
            by_id[note.id] = note
        request = IntakeRequest(
            namespace=namespace,
            request_id=one.wanted.request_id,
            request_digest=one.request_digest,
            material_digest=one.material_digest,
            note=note,
            created_note=outcome is Outcome.CREATED,
            subject=caller.subject,
            created_at=now,
        )
        requests[request.request_id] = request
        recorded.append(request)
        answers.append(Answer(result=Admitted(outcome, NoteRecord.of(note))))
    _write(namespace, caller, sources, created, recorded)
    return answers


def _room(namespace: Namespace, caller: Caller) -> int:
    """How many more candidates this subject may bring to a held namespace, where only decisions remove them."""
    most: int = settings.LYCHD_WAITING_CANDIDATES_MAX
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [namespace.id, caller.subject, most])
        (waiting,) = cursor.fetchone()
    return most - int(waiting)


def _notes_named(
    namespace: Namespace, sources: Mapping[str, Source], revisions: Collection[str], ids: set[UUID]
) -> list[Note]:
    """Load the notes of these revisions of retained sources, and those that known requests led to; never their text."""
    columns = Note.objects.select_related("source").only(*METADATA)
    found: list[Note] = []
    if sources:
        found = list(columns.filter(namespace=namespace, source__in=sources.values(), source_revision__in=revisions))
    missing = ids - {note.id for note in found}
    return found + (list(columns.filter(id__in=missing)) if missing else [])


def _candidate(namespace: Namespace, caller: Caller, one: _Proposed) -> Note:
    wanted = one.wanted
    return Note(
        id=uuid4(),
        namespace=namespace,
        # A stand-in until the slice is written, when it becomes the retained row of this key.
        source=Source(source_key=wanted.source_key),
        source_revision=wanted.source_revision,
        kind=wanted.kind,
        asserted_origin=wanted.asserted_origin,
        text=wanted.text,
        text_digest=one.text_digest,
        char_count=len(wanted.text),
        byte_count=wanted.byte_count,
        material_digest=one.material_digest,
        retention_class=wanted.retention_class,
        retain_until=wanted.retain_until,
        observed_at=wanted.observed_at,
        admitted_subject=caller.subject,
        policy_revision=caller.binding.policy_revision,
    )


def _write(
    namespace: Namespace,
    caller: Caller,
    sources: dict[str, Source],
    created: Sequence[tuple[Note, str]],
    recorded: Sequence[IntakeRequest],
) -> None:
    with connection.cursor() as cursor:
        if created:
            keys = sorted({key for _, key in created} - sources.keys())
            if keys:
                cursor.execute(_SOURCES, [namespace.id, keys])
                for number, key in cursor.fetchall():
                    sources[key] = Source(id=number, namespace=namespace, source_key=key)
            for note, key in created:
                note.source = sources[key]
            notes = [note for note, _ in created]
            columns = [[getattr(note, name) for note in notes] for name in _NOTE_COLUMNS]
            cursor.execute(_NOTES, [namespace.id, *columns])
            by = caller.subject, caller.binding.policy_revision
            cursor.execute(_BIRTHS, [namespace.id, notes[0].created_at, *by, [note.id for note in notes]])
        if recorded:
            columns = [[getattr(one, name) for one in recorded] for name in _REQUEST_COLUMNS]
            cursor.execute(_REQUESTS, [namespace.id, caller.subject, recorded[0].created_at, *columns])


def _success(outcome: Outcome, note: Note) -> Answer[Admitted]:
    return Answer(result=Admitted(outcome, NoteRecord.of(note)))
