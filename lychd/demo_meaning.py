"""The demonstration's generations: one complete, one left at three fifths, and the same question asked of both.

By default both are made by the stand-in, so that no model and no download is needed, and their references say so.
"""

import fcntl
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

from archive import canonical, seals
from archive.authority import Caller
from archive.refusals import Conflict, Refusal
from inspection import derivations
from lychd import handbook
from lychd.commands.telling import Progress, Unready
from lychd.evaluation.meaning import ModelMissing, require_model
from semantic.lifecycle import State
from semantic.manifest import require_derivation
from semantic.operations import generations
from semantic.operations.attempts import Attempt, run_attempts
from semantic.operations.preparation import prepare_many
from semantic.operations.recall import recall
from semantic.records import DerivationRecord
from semantic.refusals import ModelInputOversize
from semantic.requests import SemanticRecall

OPERATOR: Final = "embedding-operator"
ROLES: Final = ("operator", "deriver")
MIN_COSINE: Final = 0.2
_TOP_K: Final = 3
_TOGETHER: Final = 10
_WHOLE_PAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What one generation answered: a receipt, or why there is none."""

    reference: str
    receipt: dict[str, Any] | None
    verified: bool
    refused: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "generation": self.reference,
            "stand_in": _is_stand_in(),
            "receipt": self.receipt,
            "verified": self.verified,
            "refused": self.refused,
        }


def require_embedder() -> None:
    """Refuse to begin where the model that was asked for is not installed."""
    if not _is_stand_in():
        try:
            require_model()
        except ModelMissing as missing:
            raise Unready(str(missing)) from None


def _is_stand_in() -> bool:
    return bool(require_derivation()["embed_binding"]["provider"] == "stand-in")


def shares() -> Mapping[str, float]:
    """Which part of the promoted notes each generation has: the configured one all, and the next three fifths."""
    configured = str(require_derivation()["generation"])
    return {configured: 1.0, f"{configured.removesuffix('1')}2": 0.6}


# --- deriving --------------------------------------------------------------------------------------------------------


def derive(namespace: str, state: Path) -> int:
    """Bring each generation to its share of the promoted notes; returns how many notes that took."""
    with _one_at_a_time(state):
        return sum(_brought(_acting(OPERATOR, namespace, reference), share) for reference, share in shares().items())


def _acting(subject: str, namespace: str, reference: str) -> Caller:
    """Somebody for whom the namespace is bound to this generation, as it would be in a process configured for it."""
    caller = Caller.in_namespace(subject, namespace)
    return replace(caller, binding=replace(caller.binding, generation=reference))


def _brought(operator: Caller, share: float) -> int:
    reference = generations.discover(operator).reference
    try:
        generations.register(operator)
    except Conflict:
        # Somebody has retired it since, or it is another stand-in's: it is left as it is.
        return 0
    status = derivations.generation(operator, reference)
    wanted = math.ceil(share * status.promoted) - status.states[State.COMPLETE]
    if wanted <= 0:
        return 0
    missing = list(_missing(operator, reference))
    done = 0
    with Progress(f"deriving {reference}", min(wanted, len(missing))) as progress:
        while missing and done < wanted:
            run = missing[: min(_TOGETHER, wanted - done)]
            del missing[: len(run)]
            done += _derived(operator, run)
            progress.reach(done)
    return done


def _missing(operator: Caller, reference: str) -> Sequence[UUID]:
    """Notes without a vector by their source, and last the one that the story is about.

    So the generation that is left unfinished does not find it, and its receipt says how much was searched.
    """
    story = handbook.story().candidate.source_key
    rows = sorted(
        _prepared(operator, derivations.underived(operator, reference, after=None, limit=_WHOLE_PAGE)),
        key=lambda row: (row.source_key == story, row.source_key),
    )
    # What the model cannot read whole does not become shorter by trying again.
    return [row.note_id for row in rows if row.failure_code != ModelInputOversize.code]


def _prepared(operator: Caller, notes: Sequence[UUID]) -> Iterator[DerivationRecord]:
    for start in range(0, len(notes), _TOGETHER):
        for answer in prepare_many(operator, notes[start : start + _TOGETHER]):
            if answer.refusal is None:
                yield answer.given().derivation


def _derived(operator: Caller, notes: Sequence[UUID]) -> int:
    """Embed a run of notes and count those that now have a vector; one that somebody else has just now is theirs."""
    rows = list(_prepared(operator, notes))
    answers = run_attempts(operator, [Attempt(row.id, row.row_version, row.ended_without_vector) for row in rows])
    return sum(answer.refusal is None for answer in answers)


@contextmanager
def _one_at_a_time(state: Path) -> Iterator[None]:
    """Two starts at once derive one after the other, and the second finds nothing to do."""
    with (state / "deriving").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- asking ----------------------------------------------------------------------------------------------------------


def ask(namespace: str, subject: str, question: str) -> tuple[Asked, ...]:
    """Ask the same question of each generation."""
    return tuple(_asked(_acting(subject, namespace, reference), reference, question) for reference in shares())


def _asked(reader: Caller, reference: str, question: str) -> Asked:
    try:
        wanted = SemanticRecall(f"demo-meaning-{uuid4()}", question, min_cosine=MIN_COSINE, top_k=_TOP_K)
        receipt = recall(reader, wanted).receipt
    except Refusal as refusal:
        return Asked(reference, None, verified=False, refused=refusal.code)
    return Asked(reference, receipt, verified=seals.verify(receipt), refused=None)


def lines(asked: Sequence[Asked], subject: str, source_key: str) -> list[str]:
    """Tell it like the recall by words, with how much of the namespace each answer was chosen from."""
    whole, begun = asked
    by = [f"6. {subject} asks by meaning, of generation {whole.reference}:"]
    if _is_stand_in():
        by = [
            f"6. {subject} asks by meaning, of generation {whole.reference}. Its embedder is a stand-in, which knows",
            "   the words that two texts share and nothing of what they mean; --model minilm asks a model that does.",
        ]
    return [
        *by,
        *_told(whole, source_key),
        "",
        f"7. Generation {begun.reference} is left at three fifths of the notes. What has no vector yet is not found by",
        "   meaning, and the receipt says how much was searched:",
        *_told(begun, source_key),
    ]


def _told(asked: Asked, wanted: str) -> list[str]:
    receipt = asked.receipt
    if receipt is None:
        return [f"   refused: {asked.refused}"]
    coverage = receipt["coverage"]
    seal = "" if asked.verified else "; IT DOES NOT VERIFY"
    return [
        *chosen(receipt, wanted),
        *([] if receipt["selected"] else ["   a miss: nothing is near enough"]),
        f"     searched {coverage['complete']} of {coverage['promoted']} promoted notes",
        f"     receipt {receipt['receipt_id']}, digest {receipt['receipt_digest'][:16]}…{seal}",
    ]


def chosen(receipt: dict[str, Any], wanted: str) -> list[str]:
    """The selected notes of a receipt in order, the wanted one marked."""
    return [
        f"   {'>' if one['source_key'] == wanted else ' '} {one['rank']}  "
        f"{canonical.read_real(one['score']):6.2f}  {one['source_key']}, revision {one['source_revision']}"
        for one in receipt["selected"]
    ]
