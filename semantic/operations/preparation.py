"""Preparation: write down that a promoted note may be embedded; no text is read, nothing embedded (R-L-176, 184)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from archive import authority, batches, canonical
from archive.authority import Action, Caller, Point, Question
from archive.batches import Answer
from archive.gates import gate
from archive.lifecycle import State as NoteState
from archive.models import Namespace, Note
from archive.refusals import AuthorityRefused, Fault, InvalidRequest, RecordAbsent, Refusal
from archive.transactions import locked, moment
from semantic import limits, manifest
from semantic.manifest import Configured
from semantic.models import Derivation, Generation
from semantic.models.derivation import METADATA
from semantic.operations.generations import standing
from semantic.records import DerivationRecord
from semantic.refusals import SourceNotEligible


@dataclass(frozen=True, slots=True)
class Prepared:
    """The derivation of a note, and whether this call made it."""

    derivation: DerivationRecord
    created: bool


def prepare(caller: Caller, note_id: UUID) -> Prepared:
    """Prepare the derivation of one promoted note; asked again it is the same row (R-L-298).

    Raises `RecordAbsent`, `SourceNotEligible`, and what is wrong with the configured generation.
    """
    (answer,) = prepare_many(caller, [note_id])
    return answer.given()


def prepare_many(caller: Caller, note_ids: Sequence[UUID]) -> list[Answer[Prepared]]:
    """Prepare up to 50 notes in one hold; each has its own answer, in order."""
    if not 1 <= len(note_ids) <= limits.PREPARE_SLICE:
        raise InvalidRequest([Fault("/items", f"1 to {limits.PREPARE_SLICE} notes")])
    wanted = manifest.configured(caller.binding)
    questions = [_question(caller, wanted, note_id) for note_id in note_ids]
    answers: list[Answer[Prepared] | None] = [None] * len(note_ids)
    _ask(questions, answers, Point.A0)
    with locked(caller.binding) as namespace:
        notes = _notes(namespace, note_ids)
        questions = [
            question if (note := notes.get(note_id)) is None else question.about(identity(namespace, wanted, note))
            for question, note_id in zip(questions, note_ids, strict=True)
        ]
        gate(f"{Action.PREPARE_DERIVATION}.{Point.A1}")
        _ask(questions, answers, Point.A1)
        gate("derivation.looked")
        generation = standing(namespace, wanted)
        allowed = [place for place, answer in enumerate(answers) if answer is None]
        prepared = _prepared(namespace, generation, [notes.get(note_ids[place]) for place in allowed])
        for place, answer in zip(allowed, prepared, strict=True):
            answers[place] = answer
    gate(f"{Action.PREPARE_DERIVATION}.{Point.A2}")
    _ask(questions, answers, Point.A2)
    given = [answer for answer in answers if answer is not None]
    batches.record(given, Action.PREPARE_DERIVATION, caller.namespace)
    return given


def identity(namespace: Namespace, wanted: Configured, note: Note) -> str:
    """The identity digest of a note's derivation in the configured generation."""
    return manifest.derivation_digest(
        namespace=namespace.key,
        reference=wanted.reference,
        manifest_digest=wanted.digest,
        source_key=note.source.source_key,
        source_revision=note.source_revision,
        text_digest=note.text_digest,
    )


def _question(caller: Caller, wanted: Configured, note_id: UUID) -> Question:
    keys = {"note_id": str(note_id), "manifest_digest": wanted.digest}
    lookup = canonical.lookup_digest(Action.PREPARE_DERIVATION, caller.namespace, keys)
    return caller.asks(Action.PREPARE_DERIVATION, about=lookup)


def _ask(questions: Sequence[Question], answers: list[Answer[Prepared] | None], point: Point) -> None:
    """Ask for all that were not refused yet; refused alone, a note's place says so, refused all, the call does."""
    places = [place for place, answer in enumerate(answers) if answer is None or answer.refusal is None]
    allowed = authority.decide([questions[place].asked for place in places], point)
    if places and not any(allowed):
        raise AuthorityRefused
    for place, yes in zip(places, allowed, strict=True):
        if not yes:
            answers[place] = Answer(refusal=AuthorityRefused())


def _notes(namespace: Namespace, note_ids: Sequence[UUID]) -> dict[UUID, Note]:
    rows = (
        Note.objects.select_related("source")
        .only(
            "id",
            "namespace_id",
            "source__source_key",
            "source_revision",
            "state",
            "lifecycle_version",
            "text_digest",
        )
        .filter(namespace=namespace, id__in=note_ids)
        .order_by("id")
        .select_for_update(of=("self",))
    )
    return {note.id: note for note in rows}


def _prepared(namespace: Namespace, generation: Generation, notes: Sequence[Note | None]) -> Iterator[Answer[Prepared]]:
    eligible = {note.id: note for note in notes if note is not None and note.state == NoteState.PROMOTED}
    rows = {
        row.note_id: row
        for row in Derivation.objects.only(*METADATA).filter(generation=generation, note_id__in=list(eligible))
    }
    now = moment()
    made = [
        Derivation(
            id=uuid4(),
            namespace=namespace,
            generation=generation,
            note=note,
            source_key=note.source.source_key,
            source_revision=note.source_revision,
            text_digest=note.text_digest,
            note_lifecycle_version=note.lifecycle_version,
            dimensions=generation.dimensions,
            prepared_at=now,
        )
        for note in eligible.values()
        if note.id not in rows
    ]
    Derivation.objects.bulk_create(made)
    fresh = {row.note_id for row in made}
    rows.update({row.note_id: row for row in made})
    for note in notes:
        refusal: Refusal | None = None
        if note is None:
            refusal = RecordAbsent()
        elif note.id not in eligible:
            refusal = SourceNotEligible()
        if note is None or refusal is not None:
            yield Answer(refusal=refusal)
            continue
        record = DerivationRecord.of(rows[note.id], reference=generation.reference, now=now)
        created = note.id in fresh
        # The same note named twice in one call is made once.
        fresh.discard(note.id)
        yield Answer(Prepared(record, created))
