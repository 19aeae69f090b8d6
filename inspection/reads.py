"""Everything that can be read without its text: lists, records, events, receipts, configuration (R-L-120..147).

Reads create nothing: each runs in a read-only snapshot, asks at A0 and A2, and takes no lock. A namespace that was
never retained lists empty; one under another binding refuses instead, and so does a storage failure.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from archive import canonical, lexical, limits, receipts
from archive.authority import Action, Caller, Point
from archive.lifecycle import LexicalState, State
from archive.models import IntakeRequest, LifecycleEvent, Namespace, Note, Recall, Source
from archive.records import METADATA, NUMBER, EventRecord, NoteRecord
from archive.refusals import Fault, InvalidRequest, ReceiptAbsent, RecordAbsent
from archive.requests import Checker, well_formed
from archive.transactions import snapshot
from inspection.cursors import List, Page, PageRequest

T = TypeVar("T")


def _read(caller: Caller, action: Action, keys: dict[str, Any], look: Callable[[Namespace | None], T]) -> T:
    """Ask, look once in a snapshot, ask again: the shape of every read that takes no lock."""
    question = caller.asks(action, about=canonical.lookup_digest(action, caller.namespace, keys))
    question.require(Point.A0)
    with snapshot(caller.binding) as namespace:
        seen = look(namespace)
    question.require(Point.A2)
    return seen


def _metadata(namespace: Namespace) -> QuerySet[Note]:
    return Note.objects.select_related("source").only(*METADATA).filter(namespace=namespace)


# --- notes -----------------------------------------------------------------------------------------------------------


def list_notes(
    caller: Caller,
    page: PageRequest,
    *,
    state: State | None = None,
    source_key: str | None = None,
) -> Page[NoteRecord]:
    """List notes in the order of intake, oldest first; an absent namespace lists empty (R-L-130..137)."""
    if source_key is not None:
        check = Checker()
        check.identifier("/source_key", source_key)
        check.settle()
    filters = {"list": "notes", "state": None if state is None else state.value, "source_key": source_key}
    listed = List.of(caller, filters)
    after = listed.after_number(page)

    def look(namespace: Namespace | None) -> Page[NoteRecord]:
        if namespace is None:
            return Page((), None)
        rows = _metadata(namespace)
        if state is not None:
            rows = rows.filter(state=state.value)
        if source_key is not None:
            # As one value: of a join the planner guesses thousands, and walks the whole list to find them in order.
            named = Source.objects.filter(namespace=namespace, source_key=source_key).values("id")
            rows = rows.filter(source=Subquery(named))
        return _in_order(rows, page, listed, after)

    return _read(caller, Action.INSPECT_METADATA, {**filters, **page.as_keys()}, look)


def list_own_intakes(caller: Caller, page: PageRequest) -> Page[NoteRecord]:
    """List the notes that this subject took in itself, with what became of them (0.14)."""
    filters = {"list": "own_intakes"}
    listed = List.of(caller, filters)
    after = listed.after_number(page)

    def look(namespace: Namespace | None) -> Page[NoteRecord]:
        if namespace is None:
            return Page((), None)
        rows = _metadata(namespace).filter(admitted_subject=caller.subject)
        return _in_order(rows, page, listed, after)

    return _read(caller, Action.LIST_OWN_INTAKES, {**filters, **page.as_keys()}, look)


def own_decisions(caller: Caller, note_ids: Sequence[UUID]) -> dict[UUID, EventRecord]:
    """Return the newest event of each of these notes that this subject took in itself, to tell it the reasons."""
    keys = {"list": "own_decisions", "note_ids": sorted(str(note_id) for note_id in note_ids)}

    def look(namespace: Namespace | None) -> dict[UUID, EventRecord]:
        if namespace is None:
            return {}
        events = LifecycleEvent.objects.filter(
            namespace=namespace, note_id__in=note_ids, note__admitted_subject=caller.subject
        ).order_by("note_id", "-to_version")
        return {event.note_id: EventRecord.of(event) for event in events.distinct("note_id")}

    return _read(caller, Action.LIST_OWN_INTAKES, keys, look)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a source stands among a subject's own intakes, whatever became of them; tombstones count."""

    newest_digest: str
    highest_number: int
    revoked_digests: frozenset[str]

    @classmethod
    def of(cls, revisions: Sequence[tuple[str, str, str]]) -> "Standing":
        """Sum up (revision, text digest, state), oldest first."""
        numbers = [int(found[1]) for revision, _, _ in revisions if (found := _NUMBERED.match(revision))]
        return cls(
            newest_digest=revisions[-1][1],
            highest_number=max([len(revisions), *numbers]),
            revoked_digests=frozenset(digest for _, digest, state in revisions if state == State.REVOKED),
        )


# A number alone, or with the twelve digits of a text digest that an ingest puts behind it.
_NUMBERED: Final = re.compile(r"([0-9]{1,9})(?:-[0-9a-f]{12})?\Z")


def own_standings(caller: Caller, source_keys: Sequence[str]) -> dict[str, Standing]:
    """Say where up to 500 sources stand among what this subject took in; a source it never did is not in the answer."""
    if len(source_keys) > limits.BATCH_INTAKE_MAX:
        raise InvalidRequest([Fault("/source_keys", f"at most {limits.BATCH_INTAKE_MAX}")])
    keys = {"list": "own_standings", "source_keys": sorted(set(source_keys))}

    def look(namespace: Namespace | None) -> dict[str, Standing]:
        if namespace is None:
            return {}
        asked_by_subject = IntakeRequest.objects.filter(note=OuterRef("pk"), subject=caller.subject)
        rows = (
            Note.objects.filter(
                Exists(asked_by_subject),
                namespace=namespace,
                source__namespace=namespace,
                source__source_key__in=keys["source_keys"],
            )
            .order_by("source_id", NUMBER)
            .values_list("source__source_key", "source_revision", "text_digest", "state")
        )
        return {
            key: Standing.of([(revision, digest, state) for _, revision, digest, state in revisions])
            for key, revisions in groupby(rows, key=itemgetter(0))
        }

    return _read(caller, Action.LIST_OWN_INTAKES, keys, look)


def _in_order(rows: QuerySet[Note], page: PageRequest, listed: List, after: int | None) -> Page[NoteRecord]:
    """Walk the numbers: within a namespace intakes commit in this order, so no row is skipped or repeated."""
    rows = rows.annotate(number=NUMBER)
    if after is not None:
        rows = rows.filter(number__gt=after)
    found = list(rows.order_by("number")[: page.limit + 1])
    shown = found[: page.limit]
    cursor = listed.at_number(shown[-1].number) if len(found) > page.limit else None
    return Page(tuple(NoteRecord.of(note) for note in shown), cursor)


def note_record(caller: Caller, note_id: UUID) -> NoteRecord:
    """Return one note's metadata, tombstones included; raises `RecordAbsent` (R-L-133)."""

    def look(namespace: Namespace | None) -> NoteRecord:
        note = None if namespace is None else _metadata(namespace).filter(id=note_id).first()
        if note is None:
            raise RecordAbsent
        return NoteRecord.of(note)

    return _read(caller, Action.INSPECT_METADATA, {"note_id": str(note_id)}, look)


@dataclass(frozen=True, slots=True)
class IntakeRecord:
    """A retained intake request and the note it led to, in its current state."""

    request_id: str
    request_digest: str
    subject: str
    created_note: bool
    created_at: datetime
    note: NoteRecord

    def as_json(self) -> dict[str, Any]:
        return {
            "request_id": self.request_id,
            "request_digest": self.request_digest,
            "subject": self.subject,
            "created_note": self.created_note,
            "created_at": canonical.instant(self.created_at),
            "note": self.note.as_json(),
        }


def intake_record(caller: Caller, request_id: str) -> IntakeRecord:
    """Return what an intake request led to; raises `RecordAbsent` (R-L-133)."""
    well_formed("/request_id", request_id)

    def look(namespace: Namespace | None) -> IntakeRecord:
        request = (
            None
            if namespace is None
            else IntakeRequest.objects.filter(namespace=namespace, request_id=request_id).first()
        )
        if namespace is None or request is None:
            raise RecordAbsent
        note = _metadata(namespace).get(id=request.note_id)
        return IntakeRecord(
            request_id=request.request_id,
            request_digest=request.request_digest,
            subject=request.subject,
            created_note=request.created_note,
            created_at=request.created_at,
            note=NoteRecord.of(note),
        )

    return _read(caller, Action.INSPECT_METADATA, {"request_id": request_id}, look)


# --- events ----------------------------------------------------------------------------------------------------------


def note_events(caller: Caller, note_id: UUID) -> tuple[EventRecord, ...]:
    """Return every event of one note, in order of version; raises `RecordAbsent`."""

    def look(namespace: Namespace | None) -> tuple[EventRecord, ...]:
        if namespace is None or not Note.objects.filter(namespace=namespace, id=note_id).exists():
            raise RecordAbsent
        events = LifecycleEvent.objects.filter(namespace=namespace, note_id=note_id).order_by("to_version")
        return tuple(EventRecord.of(event) for event in events)

    return _read(caller, Action.INSPECT_METADATA, {"note_id": str(note_id), "part": "events"}, look)


def namespace_events(caller: Caller, page: PageRequest) -> Page[EventRecord]:
    """Follow everything that happened in a namespace, so that whoever kept a text learns that it was withdrawn.

    The last page gives a cursor too whenever it showed anything: ask again with it for what happens later.
    """
    filters = {"list": "events"}
    listed = List.of(caller, filters)
    after = listed.after_number(page)

    def look(namespace: Namespace | None) -> Page[EventRecord]:
        if namespace is None:
            return Page((), page.cursor)
        rows = LifecycleEvent.objects.filter(namespace=namespace)
        if after is not None:
            rows = rows.filter(id__gt=after)
        found = tuple(EventRecord.of(event) for event in rows.order_by("id")[: page.limit])
        return Page(found, listed.at_number(found[-1].sequence) if found else page.cursor)

    return _read(caller, Action.INSPECT_METADATA, {**filters, **page.as_keys()}, look)


# --- receipts --------------------------------------------------------------------------------------------------------


def receipt(caller: Caller, request_id: str) -> dict[str, Any]:
    """Return one historical receipt after checking it; it says nothing of today's eligibility (R-L-140..147)."""
    well_formed("/request_id", request_id)

    def look(namespace: Namespace | None) -> dict[str, Any]:
        row = None if namespace is None else Recall.objects.filter(namespace=namespace, request_id=request_id).first()
        if namespace is None or row is None:
            raise ReceiptAbsent
        return receipts.inspected(row, namespace)

    return _read(caller, Action.INSPECT_RECEIPT, {"request_id": request_id}, look)


@dataclass(frozen=True, slots=True)
class Placed:
    """A receipt, and the requests whose receipts came just before and just after it."""

    receipt: dict[str, Any]
    earlier: str | None
    later: str | None


def receipt_in_place(caller: Caller, request_id: str) -> Placed:
    """Return a receipt as `receipt` does, with the way to the two beside it."""
    well_formed("/request_id", request_id)

    def look(namespace: Namespace | None) -> Placed:
        row = None if namespace is None else Recall.objects.filter(namespace=namespace, request_id=request_id).first()
        if namespace is None or row is None:
            raise ReceiptAbsent
        others, at = Recall.objects.filter(namespace=namespace), row.created_at
        # The bound on the time alone lets the index begin at this row.
        before = others.filter(Q(created_at__lt=at) | Q(created_at=at, id__lt=row.id), created_at__lte=at)
        after = others.filter(Q(created_at__gt=at) | Q(created_at=at, id__gt=row.id), created_at__gte=at)
        earlier, later = before.order_by("-created_at", "-id"), after.order_by("created_at", "id")
        return Placed(
            receipts.inspected(row, namespace),
            earlier.values_list("request_id", flat=True).first(),
            later.values_list("request_id", flat=True).first(),
        )

    return _read(caller, Action.INSPECT_RECEIPT, {"request_id": request_id, "part": "place"}, look)


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """One receipt in a list."""

    request_id: str
    receipt_id: UUID
    outcome: str
    selected: int
    omitted: int
    subject: str
    intact: bool
    created_at: datetime


def list_receipts(caller: Caller, page: PageRequest) -> Page[ReceiptLine]:
    """List receipts, newest first, each checked against its digest while it is read."""
    filters = {"list": "receipts"}
    listed = List.of(caller, filters)
    after = listed.after_moment(page)

    def look(namespace: Namespace | None) -> Page[ReceiptLine]:
        if namespace is None:
            return Page((), None)
        rows = Recall.objects.filter(namespace=namespace)
        if after is not None:
            moment, last_id = after
            rows = rows.filter(Q(created_at__lt=moment) | Q(created_at=moment, id__lt=last_id), created_at__lte=moment)
        found = list(rows.order_by("-created_at", "-id")[: page.limit + 1])
        shown = found[: page.limit]
        cursor = listed.at_moment(shown[-1].created_at, shown[-1].id) if len(found) > page.limit else None
        bound = receipts.Bindings(namespace)
        return Page(tuple(_line(row, intact=receipts.is_intact(row, namespace.key, bound)) for row in shown), cursor)

    return _read(caller, Action.INSPECT_RECEIPT, {**filters, **page.as_keys()}, look)


def _line(row: Recall, *, intact: bool) -> ReceiptLine:
    # What is not intact may be anything that is JSON.
    told = row.receipt if intact else {}
    return ReceiptLine(
        request_id=row.request_id,
        receipt_id=row.id,
        outcome=str(told.get("outcome", "unknown")),
        selected=len(told.get("selected", ())),
        omitted=len(told.get("omitted", ())),
        subject=row.subject,
        intact=intact,
        created_at=row.created_at,
    )


# --- overview --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at while the page was made, and the command that mends it if it is wrong."""

    seen: str
    mend: str | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """How many notes stand where, since when the oldest candidate waits, and what looks wrong just now."""

    counts: dict[str, int]
    oldest_candidate_at: datetime | None
    checks: tuple[Check, ...]


def overview(caller: Caller) -> Overview:
    """Count the notes of a namespace by state; an absent namespace counts nothing."""

    def look(namespace: Namespace | None) -> Overview:
        counts = {state.value: 0 for state in State}
        if namespace is None:
            return Overview(counts, None, ())
        notes = Note.objects.filter(namespace=namespace)
        # Whole rows are counted, so that the index of states alone is read.
        counts.update(notes.values("state").annotate(n=Count("*")).values_list("state", "n"))
        waiting = notes.filter(state=State.CANDIDATE).order_by(NUMBER)
        oldest = waiting.values_list("created_at", flat=True).first()
        return Overview(counts, oldest, _checks(namespace, counts[State.PROMOTED]))

    return _read(caller, Action.INSPECT_METADATA, {"part": "overview"}, look)


def _checks(namespace: Namespace, promoted: int) -> tuple[Check, ...]:
    """Look at what costs next to nothing: of one moment, kept nowhere. `lychd doctor` looks at everything."""
    rebuild = f"lychd lexical rebuild --namespace {namespace.key}"
    if namespace.lexical_state != LexicalState.READY:
        return (Check("The words of this namespace are being rebuilt; recall waits for it.", rebuild),)
    indexed = lexical.figures(namespace.id).notes
    same_lexer = lexical.fingerprint(namespace.text_configuration) == namespace.lexer_fingerprint
    return (
        Check(f"The index has the words of all {promoted} promoted notes.")
        if indexed == promoted
        else Check(f"The index counts {indexed} promoted notes, and there are {promoted}.", rebuild),
        Check("They were cut by the lexer that this server has today.")
        if same_lexer
        else Check("The words were cut by another lexer than this server has today.", rebuild),
    )


@dataclass(frozen=True, slots=True)
class Day:
    """How many decisions of each kind were taken on one day, in the zone of the service."""

    day: date
    counts: dict[str, int]


_DECIDED: Final = (State.PROMOTED, State.ARCHIVED, State.REVOKED)
DAYS_SHOWN: Final = 30

# What the index `event_decided` holds is said in its own words; a day and a state are one stretch of it.
_BY_DAY: Final = """
SELECT day.place - 1, decided.state, (
    SELECT count(*) FROM archive_lifecycle_event AS event
    WHERE event.namespace_id = %s AND event.cause = 'explicit'
      AND event.to_state IN ('promoted', 'archived', 'revoked')
      AND event.to_state = decided.state AND event.created_at >= day.begins AND event.created_at < day.ends)
FROM unnest(%s::timestamptz[], %s::timestamptz[]) WITH ORDINALITY AS day (begins, ends, place)
CROSS JOIN unnest(%s::text[]) AS decided (state)
"""


def decisions_by_day(caller: Caller) -> tuple[Day, ...]:
    """Count what people decided on each of the last thirty days; what a promotion archived with it is not counted."""
    today = timezone.localdate()
    days = [today - timedelta(days=back) for back in reversed(range(DAYS_SHOWN))]
    bounds = [timezone.make_aware(datetime.combine(day, time.min)) for day in (*days, today + timedelta(days=1))]

    def look(namespace: Namespace | None) -> tuple[Day, ...]:
        counted = [{state.value: 0 for state in _DECIDED} for _ in days]
        if namespace is not None:
            with connection.cursor() as cursor:
                cursor.execute(_BY_DAY, [namespace.id, bounds[:-1], bounds[1:], [state.value for state in _DECIDED]])
                for place, state, count in cursor.fetchall():
                    counted[place][state] = count
        return tuple(Day(day, counts) for day, counts in zip(days, counted, strict=True))

    return _read(caller, Action.INSPECT_METADATA, {"part": "decisions"}, look)
