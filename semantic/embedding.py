"""The embedding core: a lease, an open model, whole texts in, checked vectors out (R-L-171..173, 185..193, 238).

It measures before it embeds and refuses what the model cannot read whole; it never cuts a text and never changes a
number. No transaction is open anywhere near it. What an embedder raises or gives becomes a refusal by its kind.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from archive import canonical
from archive.refusals import CapabilityNotReady, Internal, Refusal
from semantic import leases, limits, vectors
from semantic.embedders import Driver, Embedded, Item, Kind, Measure, load
from semantic.manifest import Configured
from semantic.refusals import (
    EmbeddingCancelled,
    EmbeddingOutputInvalid,
    EmbeddingTimeout,
    LeaseCleanupFailed,
    ModelInputOversize,
)

log = logging.getLogger(__name__)

_CANCELLED: Final = frozenset({"Cancelled", "CancelledError"})
_TIMED_OUT: Final = frozenset({"SoftTimeLimitExceeded", "TimeLimitExceeded"})


@dataclass(frozen=True, slots=True)
class Vector:
    """A checked vector of one item and what it cost."""

    item_id: str
    data: bytes = field(repr=False)
    digest: str
    l2: float
    tokens: int
    rendered_bytes: int

    def execution(self, duration_ms: int) -> dict[str, Any]:
        """What a receipt keeps of an embedding: digests and usage, no coordinate (R-L-175, 249)."""
        return {
            "rendered_bytes": self.rendered_bytes,
            "tokens": self.tokens,
            "vector_digest": self.digest,
            "l2": canonical.real(self.l2),
            "duration_ms": duration_ms,
        }


@dataclass(frozen=True, slots=True)
class Session:
    """A held lease with an open model."""

    configured: Configured
    driver: Driver
    binding_digest: str

    def embed(self, items: Sequence[Item], kind: Kind, ask: Callable[[], None]) -> dict[str, Vector | Refusal]:
        """Embed items together; each has a vector or its own refusal. `ask` is called before each hand-over (AX)."""
        answers: dict[str, Vector | Refusal] = {}
        try:
            ask()
            fitting = []
            for item in items:
                measured = self.driver.measure(item, kind)
                if self._fits(measured):
                    fitting.append((item, measured))
                else:
                    answers[item.item_id] = ModelInputOversize()
            if fitting:
                ask()
                given = self.driver.embed([item for item, _ in fitting], kind)
                answers.update(self._checked(fitting, given))
        except Refusal as refusal:
            return self._rest(items, answers, refusal)
        except Exception as error:
            return self._rest(items, answers, _named(error))
        return answers

    def _fits(self, measured: Measure) -> bool:
        binding = self.configured.embed_binding
        most_bytes = min(int(binding["max_bytes"]), limits.EMBED_MAX_BYTES)
        most_tokens = min(int(binding["max_tokens"]), limits.EMBED_MAX_TOKENS)
        return measured.rendered_bytes <= most_bytes and measured.tokens <= most_tokens

    def _checked(
        self, asked: Sequence[tuple[Item, Measure]], given: Sequence[Embedded]
    ) -> Iterator[tuple[str, Vector | Refusal]]:
        if len(given) != len(asked):
            raise EmbeddingOutputInvalid
        for (item, measured), embedded in zip(asked, given, strict=True):
            yield item.item_id, self._check(item, measured, embedded)

    def _check(self, item: Item, measured: Measure, embedded: Embedded) -> Vector | Refusal:
        """Compare what came back with what was asked, item by item and bit by bit."""
        stands = (
            embedded.item_id == item.item_id
            and canonical.same(embedded.binding_digest, self.binding_digest)
            and (embedded.tokens, embedded.rendered_bytes) == (measured.tokens, measured.rendered_bytes)
        )
        try:
            if stands:
                length = vectors.admitted(embedded.vector, self.configured.dimensions, self.configured.kept_dimensions)
                return Vector(
                    item.item_id,
                    embedded.vector,
                    vectors.digest(embedded.vector),
                    length,
                    embedded.tokens,
                    embedded.rendered_bytes,
                )
        except vectors.NotAVector as wrong:
            log.error("embedding refused", extra={"reason": str(wrong)})
        return EmbeddingOutputInvalid()

    def _rest(
        self, items: Sequence[Item], answers: Mapping[str, Vector | Refusal], refusal: Refusal
    ) -> dict[str, Vector | Refusal]:
        return {item.item_id: answers.get(item.item_id, refusal) for item in items}


@contextmanager
def session(configured: Configured) -> Iterator[Session]:
    """Take a lease and open the model; on the way out close both, whatever happened, or raise `LeaseCleanupFailed`."""
    lease = leases.take()
    driver: Driver | None = None
    try:
        try:
            driver = load(configured.embed_binding).open(lease)
        except Refusal:
            raise
        except Exception as error:
            log.exception("embedder cannot be opened", extra={"error": type(error).__name__})
            raise CapabilityNotReady from None
        yield Session(configured, driver, configured.embed_binding_digest)
    finally:
        _close(lease, driver)


def _close(lease: leases.Lease, driver: Driver | None) -> None:
    failed = False
    for held in (driver, lease):
        if held is None:
            continue
        try:
            held.close()
        except Exception as error:
            failed = True
            log.error("lease cleanup failed", extra={"error": type(error).__name__})
    if failed:
        raise LeaseCleanupFailed


@contextmanager
def clock() -> Iterator[Callable[[], int]]:
    """Measure the milliseconds that an embedding took."""
    started = time.monotonic()
    yield lambda: round((time.monotonic() - started) * 1000)


def _named(error: Exception) -> Refusal:
    name = type(error).__name__
    if isinstance(error, TimeoutError) or name in _TIMED_OUT:
        return EmbeddingTimeout()
    if isinstance(error, CancelledError) or name in _CANCELLED:
        return EmbeddingCancelled()
    # Its message could quote the text.
    log.error("embedder failed", extra={"error": name})
    return Internal()
