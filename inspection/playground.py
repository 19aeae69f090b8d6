"""What a recall would find, and why it would not find the rest: the same ranking, and no receipt.

A receipt says that somebody asked. Nobody did, so this is a read: it writes no row, gives no text, and is allowed to
whoever may review here, since which note has which word says something about its text (R-L-131, R-L-134).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db import connection

from archive import canonical, fitting, lexical, limits
from archive.authority import Action, Caller
from archive.lexical import Ranked, Ranking
from archive.lifecycle import LexicalState, State
from archive.limits import CUT_OFF_NOTES, CUT_OFF_SHARE
from archive.models import Namespace, Note
from archive.operations import management
from archive.records import METADATA, NUMBER, NoteRecord
from archive.refusals import AuthorityRefused, CapabilityNotReady, NamespaceNotServed
from archive.requests import LexicalRecall
from inspection.reads import _read
from semantic.lifecycle import GenerationState
from semantic.lifecycle import State as DerivationState
from semantic.models import Derivation, Generation

RANKED_MOST: Final = 25
"""How far down the ranking is shown, whatever a recall would take of it."""
REVISIONS_MOST: Final = 50


class Why(StrEnum):
    """What became of a note, as a recall would see it."""

    FOUND = "found"
    OVER_BUDGET = "over the budget of characters"
    OUTSIDE_TOP_K = "outside the first k"
    BELOW_THRESHOLD = "below the least score"
    NO_SHARED_WORD = "shares no word with the question"
    ONLY_COMMON_WORDS = "shares only words that too many notes have"
    CANDIDATE = "a candidate: nobody has promoted it"
    ARCHIVED = "archived"
    REVOKED = "revoked: its text is gone"
    ELSEWHERE = "in another namespace"


class Vectors(StrEnum):
    """What semantic recall could make of a note."""

    DERIVED = "derived"
    NOT_DERIVED = "not derived yet"
    STALE = "derived for a generation that was retired"


_STANDS: Final = {State.CANDIDATE: Why.CANDIDATE, State.ARCHIVED: Why.ARCHIVED, State.REVOKED: Why.REVOKED}


@dataclass(frozen=True, slots=True)
class Line:
    """One note of the answer."""

    note_id: UUID
    source_key: str
    source_revision: str
    why: Why
    place: int | None = None
    score: float | None = None
    char_count: int | None = None
    namespace: str | None = None
    """Named where it is another one, to whoever may inspect that one too."""
    vectors: Vectors | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """The ranking and what was expected of it; `expected` is empty if nothing of that name can be seen from here."""

    allowed: bool | None
    """Whether the caller that was chosen may recall here; of others than oneself only for whoever grants here."""
    ranking: Ranking | None
    ranked: tuple[Line, ...]
    expected: tuple[Line, ...]
    generations: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question, in whose name it would be asked, and the note or source that should have come."""

    asker: str
    recall: LexicalRecall = field(repr=False)
    expected: UUID | str | None = None


def may_search(caller: Caller) -> None:
    """Refuse whoever may not review here, before the form is shown."""
    _read(caller, Action.REVIEW, {"part": "playground"}, lambda namespace: None)


def explain(caller: Caller, wanted: Wanted) -> Explained:
    """Rank as a recall would, and say for each note what became of it."""
    keys = {
        "part": "playground",
        "asker": wanted.asker,
        "query_digest": canonical.query_digest(wanted.recall.query),
        "expected": None if wanted.expected is None else str(wanted.expected),
    }

    def look(namespace: Namespace | None) -> Explained:
        allowed = _may_recall(caller, wanted.asker)
        if namespace is None:
            return Explained(allowed, None, (), (), 0)
        if namespace.lexical_state != LexicalState.READY:
            raise CapabilityNotReady
        asked = wanted.recall
        full = lexical.rank(namespace, asked.query, top_k=max(RANKED_MOST, asked.top_k), min_rank=0.0)
        fates = _fates(full.rows, asked)
        found = _expected(namespace, wanted.expected)
        derived = management.may(caller, Action.INSPECT_DERIVATION)
        generations = Generation.objects.filter(namespace=namespace).count() if derived else 0
        vectors = _vectors([row.note_id for row in full.rows] + [note.id for note in found]) if generations else {}
        ranked = tuple(
            Line(
                row.note_id,
                row.source_key,
                row.source_revision,
                fates[row.note_id],
                place,
                row.score,
                row.char_count,
                vectors=vectors.get(row.note_id, Vectors.NOT_DERIVED) if generations else None,
            )
            for place, row in enumerate(full.rows, start=1)
        )
        by_note = {line.note_id: line for line in ranked}
        expected = [
            by_note.get(note.id) or _unranked(namespace, note, asked.query, vectors, generations) for note in found
        ]
        if not expected and isinstance(wanted.expected, UUID):
            expected = _elsewhere(caller, wanted.expected)
        return Explained(allowed, full, ranked, tuple(expected), generations)

    return _read(caller, Action.REVIEW, keys, look)


def _may_recall(caller: Caller, asker: str) -> bool | None:
    """Who may what is told to whoever gives rights here; a reviewer learns it of nobody but themselves."""
    if asker != caller.subject and not management.may(caller, Action.GRANT):
        return None
    return management.may(Caller(asker, caller.binding), Action.RECALL)


def _fates(rows: Collection[Ranked], asked: LexicalRecall) -> dict[UUID, Why]:
    """Cut the ranking as a recall does: by the least score, by k, by the budget of characters."""
    above = [row for row in rows if row.score >= asked.min_rank]
    fates = {row.note_id: Why.BELOW_THRESHOLD for row in rows}
    fates |= {row.note_id: Why.OUTSIDE_TOP_K for row in above[asked.top_k :]}
    taken, left_out = fitting.fit(above[: asked.top_k], asked.char_budget)
    fates |= {row.note_id: Why.FOUND for _, row in taken}
    return fates | {row.note_id: Why.OVER_BUDGET for _, row in left_out}


def _expected(namespace: Namespace, expected: UUID | str | None) -> list[Note]:
    if expected is None:
        return []
    rows = Note.objects.select_related("source").only(*METADATA).filter(namespace=namespace)
    if isinstance(expected, UUID):
        return list(rows.filter(id=expected))
    named = rows.filter(source__namespace=namespace, source__source_key=expected)
    return list(named.order_by(NUMBER)[:REVISIONS_MOST])


_SHARED: Final = """
SELECT count(*) FILTER (WHERE shared) AS shared,
       count(*) FILTER (WHERE shared AND notes <= line) AS rare_shared,
       count(*) FILTER (WHERE notes BETWEEN 1 AND line) AS rare
FROM (
    SELECT held.notes, held.shared, greatest(%(least)s::float8, corpus.notes * %(share)s::float8) AS line
    FROM archive_lexemes(%(configuration)s::text::regconfig, %(query)s::text, false) AS asked
    CROSS JOIN (SELECT notes::float8 AS notes FROM archive_corpus WHERE namespace_id = %(namespace)s) AS corpus
    CROSS JOIN LATERAL (
        SELECT count(*) AS notes, coalesce(bool_or(posting.note_number = note.note_number), false) AS shared
        FROM archive_posting AS posting, archive_note AS note
        WHERE posting.namespace_id = %(namespace)s AND posting.lexeme = asked.lexeme AND note.id = %(note)s
    ) AS held
) AS each
"""


def _unranked(namespace: Namespace, note: Note, query: str, vectors: Mapping[UUID, Vectors], generations: int) -> Line:
    record = NoteRecord.of(note)
    why = _STANDS.get(State(record.state)) or _why_unranked(namespace, record.id, query)
    promoted = record.state == State.PROMOTED
    seen = vectors.get(record.id, Vectors.NOT_DERIVED) if generations and promoted else None
    return Line(record.id, record.source_key, record.source_revision, why, char_count=record.char_count, vectors=seen)


def _why_unranked(namespace: Namespace, note_id: UUID, query: str) -> Why:
    values: dict[str, Any] = {
        "namespace": namespace.id,
        "configuration": namespace.text_configuration,
        "query": query,
        "note": note_id,
        "least": float(CUT_OFF_NOTES),
        "share": CUT_OFF_SHARE,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SHARED, values)
        shared, rare_shared, rare = cursor.fetchone()
    if not shared:
        return Why.NO_SHARED_WORD
    return Why.ONLY_COMMON_WORDS if rare and not rare_shared else Why.OUTSIDE_TOP_K


def _elsewhere(caller: Caller, note_id: UUID) -> list[Line]:
    """Say that a note is in another namespace to whoever may inspect that one too; to others there is no such note."""
    row = (
        Note.objects.select_related("source", "namespace").only(*METADATA, "namespace__key").filter(id=note_id).first()
    )
    if row is None:
        return []
    try:
        other = Caller.in_namespace(caller.subject, row.namespace.key)
    except (AuthorityRefused, NamespaceNotServed):
        return []
    if not management.may(other, Action.INSPECT_METADATA):
        return []
    return [Line(row.id, row.source.source_key, row.source_revision, Why.ELSEWHERE, namespace=row.namespace.key)]


def _vectors(note_ids: Collection[UUID]) -> dict[UUID, Vectors]:
    rows = Derivation.objects.filter(note_id__in=note_ids).values_list("note_id", "state", "generation__state")
    found: dict[UUID, Vectors] = {}
    for note_id, state, generation in rows:
        if generation == GenerationState.RETIRED:
            found.setdefault(note_id, Vectors.STALE)
        elif state == DerivationState.COMPLETE:
            found[note_id] = Vectors.DERIVED
    return found


DEFAULTS: Final = {
    "top_k": limits.TOP_K_DEFAULT,
    "char_budget": limits.CHAR_BUDGET_DEFAULT,
    "min_rank": limits.MIN_RANK_DEFAULT,
}
