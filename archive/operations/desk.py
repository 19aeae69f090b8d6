"""The desk: everything that one decision needs, in one look: the queue, the change, the story, what is alike.

A curator sees one candidate at a time, beside the promoted revision that it would take the place of. The queue and the
notes that are alike come without any text; both texts of the one candidate come as `review` gives them (0.5).

# Note [One look]
A curator waits for this page two hundred times an hour, so it is few statements: what there is of the queue and of the
candidate is one, what is alike is one, and which buttons to show is asked together with A2. It is a read and holds
nothing: the decision is taken on the version that was shown, under a hold of its own.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection

from archive import authority, canonical, lexical, lifecycle, limits
from archive.authority import Action, Caller, Point, Question
from archive.gates import gate
from archive.lifecycle import LexicalState, State
from archive.models import Namespace, Note, Source
from archive.operations.review import Reviewed, _whole
from archive.operations.transition import ACTION_OF
from archive.records import METADATA, EventRecord, NoteRecord, projection_of
from archive.refusals import AuthorityRefused, IntegrityFailure
from archive.requests import Transition
from archive.transactions import snapshot

BEFORE: Final = 4
AFTER: Final = 15
"""How many lines of the queue are shown on either side of the candidate."""
ALIKE_LOOKED_AT: Final = 8
ALIKE_SHOWN: Final = 3
ALIKE_WORDS: Final = 40
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
    allowed: frozenset[State] = frozenset()
    """Where this caller may bring the candidate, as far as grants go; the operation asks again."""

    def beside(self, step: int) -> UUID | None:
        """The candidate so many places on, if it is in sight."""
        return next((line.note_id for line in self.queue if line.place == self.place + step), None)


NOTHING_WAITS: Final = Desk(0, 0, (), None, (), (), compared=True)


class Beside(Protocol):
    """Reads what somebody else knows of the candidate at hand, in the same moment, if its question is answered yes."""

    question: Question

    def look(self, namespace: Namespace, reviewed: Reviewed) -> None:
        """Read it."""

    def withhold(self) -> None:
        """Forget what was read: this caller may not see it, or no longer."""


# In the order in which a model takes its values.
_NOTE: Final = tuple(field.attname for field in Note._meta.concrete_fields if field.attname in (*METADATA, "text"))
_LINE: Final = len(fields(Waiting))

# Doubles are looked for once and their queue is walked in memory; any other queue is walked in its index alone.
_ANY: Final = ("NOT MATERIALIZED", "")
_SAME: Final = (
    "MATERIALIZED",
    """AND EXISTS (
          SELECT FROM archive_note AS promoted
          WHERE promoted.namespace_id = %(namespace)s AND promoted.state = 'promoted'
            AND promoted.text_digest = note.text_digest)""",
)


def _statement(kept: str, alike: str) -> str:
    """See Note [One look]. The index `note_waiting` counts and walks the queue; only the lines in sight are read.

    The line of the place bears the notes and the events as well.
    """
    return f"""
WITH waiting AS {kept} (
    -- The number rises in the order of intake, where one moment may stamp many notes.
    SELECT note.id, note.source_id, note.note_number
    FROM archive_note AS note
    WHERE note.namespace_id = %(namespace)s AND note.state = 'candidate'
      AND (%(source)s::text IS NULL OR note.source_id = (
          SELECT id FROM archive_source WHERE namespace_id = %(namespace)s AND source_key = %(source)s::text))
      AND (%(proposer)s::text IS NULL OR note.admitted_subject = %(proposer)s::text)
      AND (%(days)s::int IS NULL OR note.created_at <= statement_timestamp() - make_interval(days => %(days)s::int))
      {alike}
      AND NOT note.id = ANY(%(put_off)s::uuid[])
),
-- A note that was decided about is still a place to go on from; after the last one the queue begins again.
chosen AS MATERIALIZED (
    SELECT source_id, note_number FROM (
        SELECT 1 AS turn, next.* FROM archive_note AS at CROSS JOIN LATERAL (
            SELECT source_id, note_number FROM waiting
            WHERE (source_id, note_number) >= (at.source_id, at.note_number)
            ORDER BY source_id, note_number LIMIT 1
        ) AS next
        WHERE at.id = %(at)s::uuid AND at.namespace_id = %(namespace)s
        UNION ALL
        SELECT 2, first.* FROM (
            SELECT source_id, note_number FROM waiting ORDER BY source_id, note_number LIMIT 1
        ) AS first
    ) AS either
    ORDER BY turn LIMIT 1
),
counted AS MATERIALIZED (
    SELECT (SELECT count(*) FROM waiting) AS total, 1 + (
        SELECT count(*) FROM waiting
        WHERE (waiting.source_id, waiting.note_number) < (chosen.source_id, chosen.note_number)
    ) AS place
    FROM chosen
),
sight AS MATERIALIZED (
    SELECT near.id, near.source_id, near.note_number, near.place
    FROM counted CROSS JOIN chosen CROSS JOIN LATERAL (
        SELECT earlier.*, counted.place - row_number() OVER (ORDER BY source_id DESC, note_number DESC) AS place FROM (
            SELECT id, source_id, note_number FROM waiting
            WHERE (source_id, note_number) < (chosen.source_id, chosen.note_number)
            ORDER BY source_id DESC, note_number DESC LIMIT %(before)s
        ) AS earlier
        UNION ALL
        SELECT later.*, counted.place + row_number() OVER (ORDER BY source_id, note_number) - 1 FROM (
            SELECT id, source_id, note_number FROM waiting
            WHERE (source_id, note_number) >= (chosen.source_id, chosen.note_number)
            ORDER BY source_id, note_number LIMIT %(after)s + 1
        ) AS later
    ) AS near
)
SELECT counted.total, sight.place = counted.place,
       sight.place, line.id, source.source_key, line.source_revision, line.admitted_subject, line.created_at,
       line.lifecycle_version,
       {", ".join(f"at_hand.{name}" for name in _NOTE)},
       {", ".join(f"promoted.{name}" for name in _NOTE)},
       CASE WHEN sight.place = counted.place THEN (
           SELECT json_agg(json_build_object(
               'sequence', event.id, 'note_id', event.note_id, 'from_state', event.from_state,
               'to_state', event.to_state, 'from_version', event.from_version, 'to_version', event.to_version,
               'cause', event.cause, 'caused_by_note', event.caused_by_note_id, 'reason', event.reason,
               'subject', event.subject, 'policy_revision', event.policy_revision, 'created_at', event.created_at
           ) ORDER BY event.to_version)
           FROM archive_lifecycle_event AS event
           WHERE event.namespace_id = %(namespace)s AND event.note_id = sight.id) END
FROM counted CROSS JOIN sight
-- `OFFSET 0` keeps the planner from reading every promoted note to find the one of this source.
CROSS JOIN LATERAL (
    SELECT id, source_revision, admitted_subject, created_at, lifecycle_version
    FROM archive_note WHERE id = sight.id OFFSET 0
) AS line
CROSS JOIN LATERAL (SELECT source_key FROM archive_source WHERE id = sight.source_id OFFSET 0) AS source
LEFT JOIN LATERAL (
    SELECT {", ".join(_NOTE)} FROM archive_note WHERE sight.place = counted.place AND id = sight.id OFFSET 0
) AS at_hand ON true
LEFT JOIN LATERAL (
    SELECT {", ".join(_NOTE)} FROM archive_note
    WHERE sight.place = counted.place AND source_id = sight.source_id AND state = 'promoted' OFFSET 0
) AS promoted ON true
ORDER BY sight.place
"""  # noqa: S608 - the names are of columns


_DESK: Final = {None: _statement(*_ANY), Alike.SAME: _statement(*_SAME)}


def desk(
    caller: Caller,
    queue: Queue,
    *,
    at: UUID | None = None,
    put_off: Collection[UUID] = (),
    beside: Beside | None = None,
) -> Desk:
    """Show the candidate `at`, or the next one that waits after it, to whoever may review and inspect here.

    What `beside` reads of the same moment has a question of its own, asked at the same points; a no leaves it out.
    """
    keys = {"part": "desk", "at": None if at is None else str(at), **queue.as_keys()}
    questions = [
        caller.asks(action, about=canonical.lookup_digest(action, caller.namespace, keys))
        for action in (Action.REVIEW, Action.INSPECT_METADATA)
    ]
    further = [] if beside is None else [beside.question]
    may_look = all(_require(questions, Point.A0, further))
    with snapshot(caller.binding) as namespace:
        seen, note = (NOTHING_WAITS, None) if namespace is None else _seen(namespace, queue, at, put_off)
        if namespace is not None and note is not None:
            questions = [question.about(projection_of(note, namespace.key)) for question in questions]
            if beside is not None and may_look and seen.reviewed is not None:
                beside.look(namespace, seen.reviewed)
    offered = () if seen.reviewed is None else steps(caller, seen.reviewed.note)
    answers = _require(questions, Point.A2, [*(question for _, question in offered), *further])
    allowed = frozenset(state for (state, _), yes in zip(offered, answers, strict=False) if yes)
    if beside is not None and not (may_look and answers[-1]):
        beside.withhold()
    return replace(seen, allowed=allowed)


def steps(caller: Caller, note: NoteRecord) -> tuple[tuple[State, Question], ...]:
    """The steps that lead on from where a note stands, each with the question whether this caller may take it."""
    return tuple(
        (state, caller.asks(action, about=Transition(note.id, state, note.lifecycle_version).request_digest()))
        for state, action in ACTION_OF.items()
        if lifecycle.is_legal(State(note.state), state)
    )


def _require(questions: Sequence[Question], point: Point, further: Sequence[Question] = ()) -> list[bool]:
    """Go on only if all of them are answered yes right now; the further ones may be answered either way."""
    if point is not Point.A0:
        gate(f"review.{point}")
    answers = authority.decide([question.asked for question in (*questions, *further)], point)
    if not all(answers[: len(questions)]):
        raise AuthorityRefused
    return answers[len(questions) :]


def _seen(namespace: Namespace, queue: Queue, at: UUID | None, put_off: Collection[UUID]) -> tuple[Desk, Note | None]:
    """Read the lines around a place, by source and within it in the order of intake, and all of the note at hand."""
    values: dict[str, Any] = {
        "namespace": namespace.id,
        "source": queue.source,
        "proposer": queue.proposer,
        "days": None if queue.age is None else _DAYS[queue.age],
        "put_off": list(put_off),
        "at": at,
        "before": BEFORE,
        "after": AFTER,
    }
    with connection.cursor() as cursor:
        cursor.execute(_DESK[queue.similar], values)
        rows = cursor.fetchall()
    if not rows:
        return NOTHING_WAITS, None
    total, _, *held = next(row for row in rows if row[1])
    line = Waiting(*held[:_LINE])
    note, promoted = (_note(line.source_key, held[start : start + len(_NOTE)]) for start in (_LINE, _LINE + len(_NOTE)))
    if note is None:
        raise IntegrityFailure
    reviewed = Reviewed(
        note=NoteRecord.of(note),
        text=_whole(note),
        promoted=None if promoted is None else NoteRecord.of(promoted),
        promoted_text=None if promoted is None else _whole(promoted),
    )
    compared = namespace.lexical_state == LexicalState.READY
    seen = Desk(
        total=total,
        place=line.place,
        queue=tuple(Waiting(*row[2 : 2 + _LINE]) for row in rows),
        reviewed=reviewed,
        events=tuple(_event(event) for event in held[-1]),
        similar=_similar(namespace, reviewed) if compared else (),
        compared=compared,
    )
    return seen, note


def _note(source_key: str, values: Sequence[Any]) -> Note | None:
    if values[0] is None:
        return None
    note = Note.from_db(DEFAULT_DB_ALIAS, _NOTE, values)
    note.source = Source(id=note.source_id, source_key=source_key)
    return note


def _event(told: dict[str, Any]) -> EventRecord:
    caused_by = told["caused_by_note"]
    return EventRecord(
        **{
            **told,
            "note_id": UUID(told["note_id"]),
            "caused_by_note": None if caused_by is None else UUID(caused_by),
            "created_at": datetime.fromisoformat(told["created_at"]),
        }
    )


def _similar(namespace: Namespace, reviewed: Reviewed) -> tuple[Similar, ...]:
    """Find the promoted notes that share most of the candidate's own words, and say how alike the letters are."""
    words = telling_words(reviewed.text)
    found = [
        Similar(row.note_id, row.source_key, row.source_revision, row.likeness, same)
        for row in lexical.alike(namespace, reviewed.text, words, top_k=ALIKE_LOOKED_AT, chars=ALIKE_CHARS)
        if row.source_key != reviewed.note.source_key
        and ((same := row.text_digest == reviewed.note.text_digest) or row.likeness >= ALIKE_LEAST)
    ]
    found.sort(key=lambda one: (not one.same, -one.likeness, one.note_id))
    return tuple(found[:ALIKE_SHOWN])


def telling_words(text: str) -> str:
    """The longest words of a text, which are the rarest more often than not; no more than a query may hold."""
    taken: list[str] = []
    room = limits.QUERY_MAX_CHARS
    for word in sorted(set(re.findall(r"\w+", text)), key=lambda word: (-len(word), word)):
        if len(taken) == ALIKE_WORDS:
            break
        if len(word) >= room:
            continue
        taken.append(word)
        room -= len(word) + 1
    return " ".join(taken) or text[: limits.QUERY_MAX_CHARS]
