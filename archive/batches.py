"""What a batch shares, whatever it does: slices of bounded work and one answer an item (0.10)."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic, TypeVar, cast

from archive import limits
from archive.refusals import AuthorityRefused, BatchRolledBack, Refusal

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """What one item of a batch met: a result, or a refusal."""

    result: R | None = None
    refusal: Refusal | None = None

    def given(self) -> R:
        """Return the result, or raise the refusal that stands in its place."""
        if self.refusal is not None:
            raise self.refusal
        return cast("R", self.result)


def slices(items: Sequence[T], words: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Cut a batch into runs of at most 50 items and 16,384 words; a single item is never too many."""
    start, counted = 0, 0
    for position, item in enumerate(items):
        weight = words(item)
        full = position - start >= limits.SLICE_ITEMS or counted + weight > limits.SLICE_WORDS
        if full and position > start:
            yield items[start:position]
            start, counted = position, 0
        counted += weight
    if start < len(items):
        yield items[start:]


def told(answers: Mapping[int, Answer[R]], count: int) -> list[dict[str, object]]:
    """Say what each item of an all-or-nothing batch met; those that were fine went back with the others."""
    refusals = [answers[place].refusal if place in answers else None for place in range(count)]
    return [
        {"status": BatchRolledBack.status, "code": BatchRolledBack.code}
        if refusal is None
        else {"status": refusal.status, "code": refusal.code}
        for refusal in refusals
    ]


def record(answers: Iterable[Answer[R]], action: str, namespace: str) -> None:
    """Leave one line for the refused items of a batch, however many they are: how many of each code."""
    refusals = [answer.refusal for answer in answers if answer.refusal is not None]
    if not refusals:
        return
    lasting = [refusal for refusal in refusals if refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR]
    log.log(
        logging.WARNING if lasting else logging.INFO,
        "items refused",
        extra={
            "action": action,
            "namespace": namespace,
            "codes": dict(Counter(refusal.code for refusal in refusals)),
            "sqlstates": sorted({refusal.sqlstate for refusal in lasting if refusal.sqlstate is not None}),
        },
    )


def require_some(answers: Mapping[int, Answer[R]], count: int) -> None:
    """Refuse plainly whoever was refused every item by authority, at whichever check point (R-L-038)."""
    if sum(isinstance(answer.refusal, AuthorityRefused) for answer in answers.values()) == count:
        raise AuthorityRefused


def stands(answers: Mapping[int, Answer[R]]) -> bool:
    """Say whether an earlier slice left anything behind; a refusal of the whole batch would then tell an untruth."""
    return any(answer.refusal is None for answer in answers.values())


class RolledBack(Exception):
    """Carries the answers of an atomic slice out of its transaction, which this exception rolls back."""

    def __init__(self, refusals: dict[int, Refusal]) -> None:
        super().__init__("rolled back")
        self.refusals = refusals
