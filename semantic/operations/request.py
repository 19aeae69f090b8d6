"""Ask for an attempt without running it: judged like a claim, written nowhere (specification 5.14, 5.17 no. 13)."""

from dataclasses import dataclass

from archive import canonical
from archive.authority import Action, Caller, Point
from archive.transactions import moment, snapshot
from semantic import manifest
from semantic.lifecycle import EXPIRED, State
from semantic.models import Derivation
from semantic.models.derivation import METADATA
from semantic.operations.attempts import Attempt
from semantic.operations.generations import standing
from semantic.records import DerivationRecord
from semantic.refusals import DerivationAbsent, DerivationInvalidated, DerivationNotClaimable


@dataclass(frozen=True, slots=True)
class Requested:
    """Where the derivation stands, and whether there is anything to send."""

    derivation: DerivationRecord
    needed: bool


def request(caller: Caller, attempt: Attempt) -> Requested:
    """Say whether this attempt could be claimed right now; the worker judges again, under its own hold.

    Raises what a claim would: `DerivationAbsent`, `DerivationInvalidated`, `DerivationNotClaimable`, the generation's.
    """
    wanted = manifest.configured(caller.binding)
    keys = {"derivation_id": str(attempt.derivation_id), "manifest_digest": wanted.digest}
    lookup = canonical.lookup_digest(Action.EXECUTE_DERIVATION, caller.namespace, keys)
    question = caller.asks(Action.EXECUTE_DERIVATION, about=lookup)
    question.require(Point.A0)
    with snapshot(caller.binding) as namespace:
        row = (
            None
            if namespace is None
            else Derivation.objects.select_related("generation")
            .only(*METADATA, "generation__reference")
            .filter(namespace=namespace, id=attempt.derivation_id)
            .first()
        )
        if namespace is None or row is None:
            raise DerivationAbsent
        generation = standing(namespace, wanted)
        if row.generation_id != generation.id:
            raise DerivationAbsent
        record = DerivationRecord.of(row, reference=generation.reference, now=moment())
        needed = _needed(record, attempt)
    question.require(Point.A2)
    return Requested(record, needed)


def _needed(record: DerivationRecord, attempt: Attempt) -> bool:
    if record.state == State.COMPLETE:
        return False
    if record.state == State.INVALIDATED:
        raise DerivationInvalidated
    open_states = {State.PREPARED.value, *({State.FAILED.value, EXPIRED} if attempt.retry else ())}
    if record.state not in open_states or record.row_version != attempt.expected_row_version:
        raise DerivationNotClaimable
    return True
