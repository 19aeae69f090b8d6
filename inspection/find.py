"""One look-up for any identifier somebody was handed: notes, sources, requests, receipts, derivations, digests.

Each kind is asked about under its own action, in one decision before and one after (R-L-138); what may not be inspected
is not looked for. Whole identifiers are found by index; beginnings of digests only where nothing whole was found.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from archive import authority, canonical, limits
from archive.authority import Action, Caller, Point
from archive.gates import gate
from archive.models import IntakeRequest, Namespace, Note, Recall, Source
from archive.records import NUMBER
from archive.refusals import AuthorityRefused
from archive.requests import Checker
from archive.transactions import snapshot
from semantic.models import Derivation

T = TypeVar("T", bound=Model)

PREFIX_LEAST: Final = 8
FOUND_MAX: Final = 10
_LOOKED_AT: Final = 1_000

_ACTIONS: Final = (Action.INSPECT_METADATA, Action.INSPECT_RECEIPT, Action.INSPECT_DERIVATION)
_HEX: Final = re.compile(r"[0-9a-f]{8,64}\Z")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]+)*-?\Z")
_UUID_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that bears the identifier, and where it is shown."""

    kind: str
    name: str
    tells: str
    note_id: UUID | None = None
    request_id: str | None = None
    source_key: str | None = None


def find(caller: Caller, term: str) -> tuple[Found, ...]:
    """Return what this identifier, or the beginning of a digest from eight characters on, names in a namespace."""
    check = Checker()
    check.identifier("/identifier", term, longest=limits.IDENTIFIER_MAX)
    check.settle()
    allowed = _allowed(caller, term, Point.A0)
    with snapshot(caller.binding) as namespace:
        found = () if namespace is None else _found(namespace, allowed, term)
    gate("find.A2")
    if _allowed(caller, term, Point.A2) != allowed:
        raise AuthorityRefused
    return found


def require_some(caller: Caller) -> None:
    """Refuse whoever may look for nothing here; reads nothing of the archive."""
    _allowed(caller, "", Point.A0)


def _allowed(caller: Caller, term: str, point: Point) -> set[Action]:
    questions = [
        caller.asks(action, about=canonical.lookup_digest(action, caller.namespace, {"find": term})).asked
        for action in _ACTIONS
    ]
    answers = authority.decide(questions, point)
    allowed = {action for action, yes in zip(_ACTIONS, answers, strict=True) if yes}
    if not allowed:
        raise AuthorityRefused
    return allowed


def _found(namespace: Namespace, allowed: set[Action], term: str) -> tuple[Found, ...]:
    whole = list(_whole(namespace, allowed, term))
    lower = term.lower()
    if not whole and len(lower) >= PREFIX_LEAST:
        whole = list(_by_beginning(namespace, allowed, lower))
    return tuple(whole[:FOUND_MAX])


def _whole(namespace: Namespace, allowed: set[Action], term: str) -> Iterator[Found]:
    identity = _uuid(term)
    if Action.INSPECT_METADATA in allowed:
        if identity is not None:
            yield from map(_note, _notes(namespace, Q(id=identity)))
        if Source.objects.filter(namespace=namespace, source_key=term).exists():
            yield Found("source", term, "every revision of it", source_key=term)
        for intake in IntakeRequest.objects.filter(namespace=namespace, request_id=term)[:1]:
            yield Found("intake", intake.request_id, f"asked by {intake.subject}", note_id=intake.note_id)
    if Action.INSPECT_RECEIPT in allowed:
        named = Q(request_id=term) if identity is None else Q(request_id=term) | Q(id=identity)
        yield from map(_receipt, _receipts(namespace, named))
    if Action.INSPECT_DERIVATION in allowed and identity is not None:
        yield from map(_derivation, _derivations(namespace, Q(id=identity)))


def _by_beginning(namespace: Namespace, allowed: set[Action], term: str) -> Iterator[Found]:
    digest = bool(_HEX.match(term))
    between = _between(term)
    named = [] if between is None else [Q(id__range=between)]
    if Action.INSPECT_METADATA in allowed:
        of_notes = Q(text_digest__startswith=term) | Q(material_digest__startswith=term)
        yield from map(_note, _notes(namespace, *named, *([of_notes] if digest else [])))
    if Action.INSPECT_RECEIPT in allowed:
        of_receipts = Q(receipt_digest__startswith=term) | Q(request_digest__startswith=term)
        yield from map(_receipt, _receipts(namespace, *named, *([of_receipts] if digest else [])))
    if Action.INSPECT_DERIVATION in allowed and between is not None:
        yield from map(_derivation, _derivations(namespace, Q(id__range=between)))


def _uuid(term: str) -> UUID | None:
    try:
        return UUID(term)
    except ValueError:
        return None


def _between(term: str) -> tuple[UUID, UUID] | None:
    """The first and the last identifier that begin so."""
    digits = term.replace("-", "")
    if not _UUID.match(term) or len(digits) > _UUID_DIGITS:
        return None
    return UUID(digits.ljust(_UUID_DIGITS, "0")), UUID(digits.ljust(_UUID_DIGITS, "f"))


def _notes(namespace: Namespace, *named: Q) -> list[Note]:
    rows = Note.objects.select_related("source").filter(namespace=namespace).annotate(number=NUMBER)
    rows = rows.only("id", "source__source_key", "source_revision", "state")
    return _ordered(rows, named, attrgetter("number"))


def _note(note: Note) -> Found:
    return Found("note", f"{note.source.source_key}, revision {note.source_revision}", note.state, note_id=note.id)


def _receipts(namespace: Namespace, *named: Q) -> list[Recall]:
    rows = Recall.objects.filter(namespace=namespace).only("id", "request_id", "subject", "created_at")
    return _ordered(rows, named, attrgetter("created_at", "id"))


def _receipt(row: Recall) -> Found:
    return Found("receipt", row.request_id, f"asked by {row.subject}", request_id=row.request_id)


def _derivations(namespace: Namespace, *named: Q) -> list[Derivation]:
    rows = Derivation.objects.filter(namespace=namespace)
    rows = rows.only("id", "note_id", "source_key", "state", "prepared_at")
    return _ordered(rows, named, attrgetter("prepared_at", "id"))


def _derivation(row: Derivation) -> Found:
    return Found("derivation", str(row.id), f"{row.state}, of {row.source_key}", note_id=row.note_id)


def _ordered(rows: "QuerySet[T]", named: Sequence[Q], key: Callable[[T], Any]) -> list[T]:
    """Take what each of these conditions finds by its index, and order it here.

    Told to order a few rows, or to bring but a few, the planner walks the whole list instead of looking any of them up.
    """
    found = {row.pk: row for one in named for row in rows.filter(one)[:_LOOKED_AT]}
    return sorted(found.values(), key=key)
