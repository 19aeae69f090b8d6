"""The desk: everything that one decision needs, in one look: the queue, the change, the story, what is alike.

A curator sees one candidate at a time, beside the promoted revision that it would take the place of. The queue and the
notes that are alike come without any text; both texts of the one candidate come as `review` gives them (0.5).
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Q

from archive import authority, canonical, lexical, limits
from archive.authority import Action, Caller, Point, Question
from archive.gates import gate
from archive.lifecycle import LexicalState, State
from archive.models import LifecycleEvent, Namespace
from archive.operations.review import Reviewed, _whole, _with_text
from archive.records import EventRecord, NoteRecord, projection_of
from archive.refusals import AuthorityRefused
from archive.transactions import shared

BEFORE: Final = 4
AFTER: Final = 15
"""How many lines of the queue are shown on either side of the candidate."""
ALIKE_LOOKED_AT: Final = 8
ALIKE_SHOWN: Final = 3
ALIKE_LEAST: Final = 0.35
ALIKE_CHARS: Final = 4_096
"""Three letters at a time are compared over the beginning of both texts, so that the longest pair costs no more."""


class Age(StrEnum):
    """How long a candidate has waited at least."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class Alike(StrEnum):
    """What a candidate has to have in common with a promoted note."""

    SAME = "same"


_DAYS: Final = {Age.DAY: 1, Age.WEEK: 7, Age.MONTH: 30}


@dataclass(frozen=True, slots=True)
class Queue:
    """Which candidates are to be gone through: by source, by who proposed them, by age, by doubles."""

    source: str | None = None
    proposer: str | None = None
    age: Age | None = None
    similar: Alike | None = None

    def as_keys(self) -> dict[str, str]:
        """Its filters as an address names them; one that is not set is left out."""
        filters = {"source": self.source, "proposer": self.proposer, "age": self.age, "similar": self.similar}
        return {name: str(value) for name, value in filters.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Waiting:
    """One line of the queue."""

    place: int
    note_id: UUID
    source_key: str
    source_revision: str
    admitted_subject: str
    created_at: datetime
    lifecycle_version: int


@dataclass(frozen=True, slots=True)
class Similar:
    """A promoted note of another source that reads like the candidate."""

    note_id: UUID
    source_key: str
    source_revision: str
    likeness: float
    same: bool
    """Equal to the letter."""

    @property
    def percent(self) -> int:
        # What is not equal is never said to be.
        return 100 if self.same else min(99, round(self.likeness * 100))


@dataclass(frozen=True, slots=True)
class Desk:
    """The candidate at hand, its place in the queue, and what is known beside it; nothing at hand is an empty queue."""

    total: int
    place: int
    queue: tuple[Waiting, ...]
    reviewed: Reviewed | None
    events: tuple[EventRecord, ...]
    similar: tuple[Similar, ...]
    compared: bool
    """Whether likeness could be looked up; not while the words are rebuilt."""

    def beside(self, step: int) -> UUID | None:
        """The candidate so many places on, if it is in sight."""
        return next((line.note_id for line in self.queue if line.place == self.place + step), None)


_QUEUE: Final = """
WITH waiting AS MATERIALIZED (
    -- The number rises in the order of intake, where one moment may stamp many notes.
    SELECT note.id, note.source_id, note.note_number, count(*) OVER () AS total,
           row_number() OVER (ORDER BY note.source_id, note.note_number) AS place
    FROM archive_note AS note
    WHERE note.namespace_id = %(namespace)s AND note.state = 'candidate'
      AND (%(source)s::text IS NULL OR note.source_id = (
          SELECT id FROM archive_source WHERE namespace_id = %(namespace)s AND source_key = %(source)s::text))
      AND (%(proposer)s::text IS NULL OR note.admitted_subject = %(proposer)s::text)
      AND (%(days)s::int IS NULL OR note.created_at <= clock_timestamp() - make_interval(days => %(days)s::int))
      AND (NOT %(same)s::boolean OR EXISTS (
          SELECT FROM archive_note AS promoted
          WHERE promoted.namespace_id = %(namespace)s AND promoted.state = 'promoted'
            AND promoted.text_digest = note.text_digest))
      AND NOT note.id = ANY(%(put_off)s::uuid[])
),
-- A note that was decided about is still a place to go on from.
chosen AS (
    SELECT coalesce(min(waiting.place), 1) AS place
    FROM waiting JOIN archive_note AS at ON at.id = %(at)s::uuid AND at.namespace_id = %(namespace)s
    WHERE (waiting.source_id, waiting.note_number) >= (at.source_id, at.note_number)
)
SELECT waiting.total, chosen.place, waiting.place, note.id, source.source_key, note.source_revision,
       note.admitted_subject, note.created_at, note.lifecycle_version, note.source_id
FROM chosen
JOIN waiting ON waiting.place BETWEEN chosen.place - %(before)s AND chosen.place + %(after)s
JOIN archive_note AS note ON note.id = waiting.id
JOIN archive_source AS source ON source.id = note.source_id
ORDER BY waiting.place
"""

_LIKENESS: Final = """
SELECT other.id, similarity(left(other.text, %(chars)s::int), left(one.text, %(chars)s::int))
FROM archive_note AS other, archive_note AS one
WHERE one.id = %(one)s AND other.id = ANY(%(others)s::uuid[]) AND other.namespace_id = %(namespace)s
  AND other.state = 'promoted'
"""


def desk(caller: Caller, queue: Queue, *, at: UUID | None = None, put_off: Collection[UUID] = ()) -> Desk:
    """Show the candidate `at`, or the next one that waits after it, to whoever may review and inspect here."""
    keys = {"part": "desk", "at": None if at is None else str(at), **queue.as_keys()}
    questions = [
        caller.asks(action, about=canonical.lookup_digest(action, caller.namespace, keys))
        for action in (Action.REVIEW, Action.INSPECT_METADATA)
    ]
    _require(questions, Point.A0)
    with shared(caller.binding) as namespace:
        total, place, lines, source_id = _queue(namespace, queue, at, put_off)
        reviewed = None
        if lines:
            at_hand = next(line.note_id for line in lines if line.place == place)
            rows = _with_text(namespace).filter(Q(id=at_hand) | Q(source_id=source_id, state=State.PROMOTED))
            found = {row.id: row for row in rows}
            note = found.pop(at_hand)
            questions = [question.about(projection_of(note, namespace.key)) for question in questions]
        _require(questions, Point.A1)
        if not lines:
            seen = Desk(0, 0, (), None, (), (), compared=True)
        else:
            promoted = next(iter(found.values()), None)
            reviewed = Reviewed(
                note=NoteRecord.of(note),
                text=_whole(note),
                promoted=None if promoted is None else NoteRecord.of(promoted),
                promoted_text=None if promoted is None else _whole(promoted),
            )
            events = LifecycleEvent.objects.filter(namespace=namespace, note_id=at_hand).order_by("to_version")
            ready = namespace.lexical_state == LexicalState.READY
            seen = Desk(
                total=total,
                place=place,
                queue=tuple(lines),
                reviewed=reviewed,
                events=tuple(EventRecord.of(event) for event in events),
                similar=_similar(namespace, reviewed) if ready else (),
                compared=ready,
            )
    _require(questions, Point.A2)
    return seen


def _require(questions: Sequence[Question], point: Point) -> None:
    """Go on only if all of them are answered yes right now."""
    if point is not Point.A0:
        gate(f"review.{point}")
    if not all(authority.decide([question.asked for question in questions], point)):
        raise AuthorityRefused


def _queue(
    namespace: Namespace, queue: Queue, at: UUID | None, put_off: Collection[UUID]
) -> tuple[int, int, list[Waiting], int | None]:
    """Read the lines around a place, by source and within it in the order of intake; no text is among them."""
    values: dict[str, Any] = {
        "namespace": namespace.id,
        "source": queue.source,
        "proposer": queue.proposer,
        "days": None if queue.age is None else _DAYS[queue.age],
        "same": queue.similar is Alike.SAME,
        "put_off": list(put_off),
        "at": at,
        "before": BEFORE,
        "after": AFTER,
    }
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE, values)
        rows = cursor.fetchall()
    if not rows:
        return 0, 0, [], None
    total, place = rows[0][:2]
    source_id = next(row[-1] for row in rows if row[2] == place)
    return total, place, [Waiting(*row[2:-1]) for row in rows], source_id


def _similar(namespace: Namespace, reviewed: Reviewed) -> tuple[Similar, ...]:
    """Find the promoted notes that share most of the candidate's own words, and say how alike the letters are."""
    ranked = lexical.rank(namespace, telling_words(reviewed.text), top_k=ALIKE_LOOKED_AT, min_rank=0.0).rows
    others = {row.note_id: row for row in ranked if row.source_key != reviewed.note.source_key}
    if not others:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(
            _LIKENESS,
            {"chars": ALIKE_CHARS, "one": reviewed.note.id, "others": list(others), "namespace": namespace.id},
        )
        likeness: dict[UUID, float] = dict(cursor.fetchall())
    found = [
        Similar(row.note_id, row.source_key, row.source_revision, likeness[row.note_id], same)
        for row in others.values()
        if row.note_id in likeness
        and ((same := row.text_digest == reviewed.note.text_digest) or likeness[row.note_id] >= ALIKE_LEAST)
    ]
    found.sort(key=lambda one: (not one.same, -one.likeness, one.note_id))
    return tuple(found[:ALIKE_SHOWN])


def telling_words(text: str) -> str:
    """The longest words of a text, which are the rarest more often than not, as long as a query may be."""
    taken: list[str] = []
    room = limits.QUERY_MAX_CHARS
    for word in sorted(set(re.findall(r"\w+", text)), key=lambda word: (-len(word), word)):
        if len(word) >= room:
            continue
        taken.append(word)
        room -= len(word) + 1
    return " ".join(taken) or text[: limits.QUERY_MAX_CHARS]
