"""Ways to bring a generation, a derivation or a receipt into a state: always through the operations that lead there."""

from typing import Any
from uuid import UUID

from archive.authority import Caller
from archive.records import NoteRecord
from semantic.operations.attempts import Attempt, run_attempt
from semantic.operations.generations import Registered, register
from semantic.operations.preparation import prepare
from semantic.operations.recall import Recalled, recall
from semantic.records import DerivationRecord
from semantic.requests import SemanticRecall
from tests import cast


def registered(otto: Caller) -> Registered:
    """Register the configured generation."""
    return register(otto)


def prepared(dora: Caller, note: NoteRecord | UUID) -> DerivationRecord:
    """Prepare a note."""
    return prepare(dora, note if isinstance(note, UUID) else note.id).derivation


def derived(dora: Caller, note: NoteRecord | UUID) -> DerivationRecord:
    """Prepare and embed a note."""
    row = prepared(dora, note)
    return run_attempt(dora, Attempt(row.id, row.row_version))


def asked(caller: Caller, query: str = "roses sun", **more: Any) -> Recalled:
    """Recall by meaning with a fresh identity unless one is given."""
    fields = {"request_id": cast.fresh("s"), "query": query, "min_cosine": -1.0, **more}
    return recall(caller, SemanticRecall(**fields))
