"""Intake, promotion and revocation, each in turns with bare SQL that writes the same rows under the same hold."""

from collections.abc import Sequence
from uuid import UUID

from archive import limits
from archive.lifecycle import State
from archive.operations.intake import intake, intake_many
from archive.operations.transition import promote, revoke, transition_many
from archive.requests import Intake, Transition
from lychd.bench import bare
from lychd.bench.figures import Figure, clocked, spread
from lychd.bench.ground import Ground
from lychd.bench.ground import bare as bare_connection
from lychd.bench.recalls import watched
from lychd.evaluation.metrics import percentile

_WARM = 3
_SAME_ROWS = "bare SQL, same rows, same hold, same triggers"


def single_intake(ground: Ground, rounds: int) -> list[Figure]:
    """One note an operation."""
    own, plain = [], []
    statements = 0
    with bare_connection() as beside:
        for _ in range(_WARM + rounds):
            mine, theirs = ground.wanted(2)
            with watched() as clock:
                own.append(clocked(intake, ground.caller, mine)[0])
            statements = clock.statements
            plain.append(clocked(bare.take_in, beside, [theirs])[0])
    return [
        *spread(f"intake.single.{ground.notes}", own[_WARM:], plain[_WARM:], _SAME_ROWS),
        Figure(f"intake.single.{ground.notes}.statements", statements, "statements"),
    ]


def batch_intake(ground: Ground, rounds: int) -> list[Figure]:
    """Five hundred notes an operation, and one slice, to see what each further note adds."""
    own, plain, statements = [], [], {}
    with bare_connection() as beside:
        for _ in range(1 + rounds):
            for count in (limits.SLICE_ITEMS, limits.BATCH_INTAKE_MAX):
                mine, theirs = ground.wanted(count), ground.wanted(count)
                with watched() as clock:
                    took, answers = clocked(intake_many, ground.caller, mine)
                for answer in answers:
                    answer.given()
                statements[count] = clock.statements
                took_plain, _ = clocked(_in_slices, beside, theirs)
                if count == limits.BATCH_INTAKE_MAX:
                    own.append(took)
                    plain.append(took_plain)
    grown = (statements[limits.BATCH_INTAKE_MAX] - statements[limits.SLICE_ITEMS]) / (
        limits.BATCH_INTAKE_MAX - limits.SLICE_ITEMS
    )
    return [
        Figure(
            f"intake.batch500.{ground.notes}",
            percentile(own[1:], 0.5),
            "ms",
            percentile(plain[1:], 0.5),
            f"{_SAME_ROWS}, ten slices of fifty each",
        ),
        Figure(
            f"intake.batch500.{ground.notes}.statements_an_item",
            grown,
            "statements",
            note="added by each item after the first 50",
        ),
    ]


def _in_slices(beside: bare.Connection, items: Sequence[Intake]) -> None:
    for start in range(0, len(items), limits.SLICE_ITEMS):
        bare.take_in(beside, items[start : start + limits.SLICE_ITEMS])


def promotion(ground: Ground, rounds: int) -> list[Figure]:
    """A candidate becomes recallable: its words are entered."""
    own, plain = [], []
    ids = ground.candidates(2 * (_WARM + rounds))
    with bare_connection() as beside:
        for mine, theirs in zip(ids[::2], ids[1::2], strict=True):
            own.append(clocked(promote, ground.caller, Transition(mine, State.PROMOTED, 1))[0])
            plain.append(clocked(bare.move, beside, theirs, "candidate", "promoted", 1)[0])
    ground.spare += ids
    return spread(f"promotion.{ground.notes}", own[_WARM:], plain[_WARM:], _SAME_ROWS)


def batch_promotion(ground: Ground, rounds: int) -> list[Figure]:
    """Two hundred decisions an operation, beside as many single ones in bare SQL under one hold a slice."""
    own = []
    for _ in range(1 + rounds):
        ids = ground.candidates(limits.BATCH_TRANSITION_MAX)
        changes = [Transition(one, State.PROMOTED, 1) for one in ids]
        own.append(clocked(transition_many, ground.caller, changes)[0])
        ground.spare += ids
    return [Figure(f"promotion.batch200.{ground.notes}", percentile(own[1:], 0.5), "ms")]


def revocation(ground: Ground, rounds: int) -> list[Figure]:
    """A promoted note loses its text and every word; the notes are those of the promotion before."""
    own, plain = [], []
    missing = 2 * (_WARM + rounds) - len(ground.spare)
    if missing > 0:
        notes = ground.notes
        ground.spare += ground.promoted(missing)
        ground.notes = notes
    ids = _taken(ground.spare, 2 * (_WARM + rounds))
    with bare_connection() as beside:
        for mine, theirs in zip(ids[::2], ids[1::2], strict=True):
            own.append(clocked(revoke, ground.caller, Transition(mine, State.REVOKED, 2))[0])
            plain.append(clocked(bare.move, beside, theirs, "promoted", "revoked", 2)[0])
    return spread(f"revocation.{ground.notes}", own[_WARM:], plain[_WARM:], _SAME_ROWS)


def _taken(spare: list[UUID], count: int) -> list[UUID]:
    taken, spare[:] = spare[:count], spare[count:]
    return taken
