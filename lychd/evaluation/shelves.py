"""The archive's own answers: documents admitted, promoted and recalled by the operations, one namespace a group."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from archive import limits
from archive.authority import Caller
from archive.lifecycle import State
from archive.operations.intake import Admitted, intake_many
from archive.operations.recall import recall
from archive.operations.transition import transition_many
from archive.refusals import Refusal
from archive.requests import Intake, LexicalRecall, Transition
from lychd import scratch
from lychd.evaluation.metrics import DEPTH, Answered
from lychd.evaluation.sets import Document, Group, Query

T = TypeVar("T")


@dataclass(frozen=True)
class Shelf:
    """One group in its namespace: who asks there, which source is which document, what was refused."""

    caller: Caller
    documents: dict[str, str]
    refused: dict[str, str]


def stock(group: Group, number: int, text_configuration: str, progress: Callable[[int], None]) -> Shelf:
    """Take a group's documents in and promote them; what the archive refuses is kept by its code.

    Names in a set are free text and names in an archive are not, so documents and groups go by their number.
    """
    key = f"g{number}"
    scratch.serve(key, text_configuration)
    caller = Caller.in_namespace(scratch.SUBJECT, key)
    shelf = Shelf(caller, {}, {})
    for documents in _runs(list(enumerate(group.documents)), limits.BATCH_INTAKE_MAX):
        admitted = list(_admitted(shelf, documents))
        for notes in _runs(admitted, limits.BATCH_TRANSITION_MAX):
            _promote(shelf, notes)
        progress(len(documents))
    return shelf


def ask(shelf: Shelf, query: Query, number: int) -> Answered:
    """Recall for one question by words."""
    started = time.perf_counter()
    try:
        wanted = LexicalRecall(f"q{number}", query.text, top_k=DEPTH, char_budget=limits.CHAR_BUDGET_MAX)
        receipt = recall(shelf.caller, wanted).receipt
    except Refusal:
        return Answered([], time.perf_counter() - started)
    seconds = time.perf_counter() - started
    return Answered(in_order(shelf, receipt), seconds)


def in_order(shelf: Shelf, receipt: dict[str, Any]) -> list[str | None]:
    """The documents of a receipt by rank; one that was left out for the budget of characters leaves its place empty."""
    given = {chosen["rank"]: shelf.documents[chosen["source_key"]] for chosen in receipt["selected"]}
    return [given.get(rank) for rank in range(1, max(given, default=0) + 1)]


def _admitted(shelf: Shelf, documents: Sequence[tuple[int, Document]]) -> Iterator[tuple[Document, Admitted]]:
    wanted: list[tuple[Document, Intake]] = []
    for place, document in documents:
        try:
            wanted.append((document, Intake(f"i{place}", f"d{place}", "1", document.text)))
        except Refusal as refusal:
            shelf.refused[document.id] = refusal.code
    if not wanted:
        return
    answers = intake_many(shelf.caller, [one for _, one in wanted])
    for (document, one), answer in zip(wanted, answers, strict=True):
        if answer.result is None:
            shelf.refused[document.id] = "" if answer.refusal is None else answer.refusal.code
        else:
            shelf.documents[one.source_key] = document.id
            yield document, answer.result


def _promote(shelf: Shelf, notes: Sequence[tuple[Document, Admitted]]) -> None:
    changes = [Transition(one.note.id, State.PROMOTED, one.note.lifecycle_version) for _, one in notes]
    for (document, _), answer in zip(notes, transition_many(shelf.caller, changes), strict=True):
        if answer.refusal is not None:
            shelf.refused[document.id] = answer.refusal.code


def _runs(items: Sequence[T], longest: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), longest):
        yield items[start : start + longest]
