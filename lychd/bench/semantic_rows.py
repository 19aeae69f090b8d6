"""Embedded notes by the ten thousand: vectors like real ones, loaded by COPY and taken through every trigger.

The baselines are two tables with the same vectors: one as pgvector stores them by itself, one with them in-line.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final
from uuid import UUID, uuid4

import psycopg
from django.conf import settings

from archive import canonical
from lychd.bench import bare
from lychd.bench.ground import Ground
from lychd.bench.ground import bare as bare_connection
from lychd.evaluation import meaning
from lychd.scratch import as_owner
from semantic import limits, truths
from semantic.embedders import Driver, Embedded, Item, Kind, Measure
from semantic.leases import Lease
from semantic.manifest import embed_binding_digest
from semantic.models import Generation
from semantic.presets import MINILM, STAND_IN
from semantic.vectors import sent

DIMENSIONS: Final = limits.PROFILE_DIMENSIONS[limits.EMBED_PROFILE]
ELIGIBLE_SHARE: Final = 0.8
PROVIDER: Final = "bench-prepared"
EMBEDDER: Final = {**STAND_IN, "provider": PROVIDER, "model": "vectors of the measurement"}
PADDED: Final = {**EMBEDDER, "padding": MINILM["padding"]}
PLAIN: Final = "bench_plain"
INLINE: Final = "bench_inline"
GIVEN: Final = "bench_given"

_CENTRES: Final = 256
_REAL_MOST: Final = 4_000
_SLICE: Final = 2_000

Connection = psycopg.Connection[Any]


class NumpyMissing(RuntimeError):
    """Neither of the extras that bring numpy and threadpoolctl is installed."""


def require_numpy() -> None:
    """Refuse before anything is made where there is nothing to scan with."""
    if find_spec("numpy") is None or find_spec("threadpoolctl") is None:
        raise NumpyMissing("This measurement needs numpy and threadpoolctl: pip install 'lychd-archive[evaluate]'.")


def has_model() -> bool:
    """Whether real embeddings can be mixed in."""
    try:
        meaning.require_model()
    except meaning.ModelMissing:
        return False
    return True


# --- vectors ---------------------------------------------------------------------------------------------------------


class Source:
    """Vectors of unit length: clusters of uneven size, and where the small model is, every other one a real embedding.

    Real ones beyond the first few thousand are neighbours of those: the cost of a scan does not depend on it. Padded,
    all of them hold zeros where the small model's embeddings do.
    """

    def __init__(self, ground: Ground, *, padded: bool, seed: int = 1) -> None:
        import numpy as np

        self._padded = padded

        self._chance = np.random.default_rng(seed)
        # Real embeddings are not round: a few directions hold most of what varies.
        self._scale = 1 / np.sqrt(1 + np.arange(DIMENSIONS) / 32)
        self._centres = self._noise(_CENTRES)
        self._weights = 1 / np.sqrt(np.arange(1, _CENTRES + 1))
        self._weights /= self._weights.sum()
        self._ground = ground
        self._model: Any = meaning.opened() if has_model() else None
        self._real: Any = np.zeros((0, DIMENSIONS), dtype=np.float32)

    @property
    def real(self) -> int:
        """How many embeddings of real texts there are."""
        return len(self._real)

    def rows(self, count: int) -> Any:
        """This many vectors, one a row."""
        found = self._clustered(count)
        if self._model is not None:
            self._embed(min(_REAL_MOST, self.real + count // 2))
            found[::2] = self._around(self._real, len(found[::2]), 0.1)
        return found

    def queries(self, count: int) -> Any:
        """Questions: near a cluster, and where the model is, every other one a real question."""
        import numpy as np

        found = self._clustered(count)
        if self._model is not None:
            asked = self._ground.asked(len(found[::2]))
            found[::2] = np.pad(self._encoded(asked), ((0, 0), (0, DIMENSIONS - MINILM["padding"]["from"])))
        return found

    def eligible(self, count: int) -> Any:
        """Which of so many rows stay promoted."""
        return self._chance.random(count) < ELIGIBLE_SHARE

    def _clustered(self, count: int) -> Any:
        chosen = self._chance.choice(len(self._centres), size=count, p=self._weights)
        found = self._centres[chosen] + 0.7 * self._noise(count)
        if self._padded:
            found[:, MINILM["padding"]["from"] :] = 0
        return _unit(found)

    def _around(self, real: Any, count: int, far: float) -> Any:
        kept = MINILM["padding"]["from"]
        found = real[self._chance.integers(len(real), size=count)].copy()
        found[:, :kept] += far * _unit(self._chance.normal(size=(count, kept)))
        return _unit(found)

    def _embed(self, wanted: int) -> None:
        import numpy as np

        while self.real < wanted:
            texts = self._ground.texts.passages(min(256, wanted - self.real), seed=self.real)
            more = np.pad(self._encoded(texts), ((0, 0), (0, DIMENSIONS - MINILM["padding"]["from"])))
            self._real = np.concatenate([self._real, more])
            self._ground.progress("embedded", self.real, wanted)

    def _encoded(self, texts: Sequence[str]) -> Any:
        return self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)

    def _noise(self, count: int) -> Any:
        return _unit(self._chance.normal(size=(count, DIMENSIONS)) * self._scale)


def _unit(numbers: Any) -> Any:
    import numpy as np

    return (numbers / np.linalg.norm(numbers, axis=1, keepdims=True)).astype(np.float32)


# --- an embedder that has its vectors already ------------------------------------------------------------------------

# The vector of each question that is going to be asked, so that an operation is measured without inference.
prepared: Final[dict[str, bytes]] = {}


class Prepared:
    """Opens at once and looks every text up."""

    def __init__(self, embed_binding: Mapping[str, Any]) -> None:
        self._digest = embed_binding_digest(embed_binding)

    def open(self, lease: Lease) -> Driver:
        return _PreparedDriver(self._digest)


class _PreparedDriver:
    def __init__(self, digest: str) -> None:
        self._digest = digest

    def measure(self, item: Item, kind: Kind) -> Measure:
        return Measure(len(item.text.encode("utf-8")), 1)

    def embed(self, items: Sequence[Item], kind: Kind) -> Sequence[Embedded]:
        return [
            Embedded(item.item_id, prepared[item.text], 1, len(item.text.encode("utf-8")), self._digest)
            for item in items
        ]

    def close(self) -> None:
        """Nothing was opened."""


@contextmanager
def switched_on(embedder: Mapping[str, Any] = EMBEDDER) -> Iterator[None]:
    """Recall by meaning with questions that are embedded already."""
    before = settings.LYCHD_EMBEDDERS
    settings.LYCHD_EMBEDDERS = {**before, PROVIDER: f"{__name__}.Prepared"}
    try:
        with meaning.switched_on(embedder):
            yield
    finally:
        settings.LYCHD_EMBEDDERS = before
        prepared.clear()


# --- rows ------------------------------------------------------------------------------------------------------------

_SOURCES: Final = """
INSERT INTO archive_source (namespace_id, source_key) SELECT %(namespace)s::bigint, 'v-' || note FROM bench_given
"""
_NOTES: Final = """
INSERT INTO archive_note (namespace_id, id, source_id, source_revision, kind, text, classification, retention_class,
    admitted_subject, state, lifecycle_version)
SELECT source.namespace_id, given.note, source.id, '1', 'note', 'embedded note', 'public', 'standard', 'bare',
    'candidate', 1
FROM bench_given AS given
JOIN archive_source AS source ON source.namespace_id = %(namespace)s::bigint AND source.source_key = 'v-' || given.note
"""
_EVENTS: Final = """
INSERT INTO archive_lifecycle_event (namespace_id, note_id, from_state, to_state, from_version, to_version, cause,
    subject)
SELECT %(namespace)s::bigint, note, %(start)s::text, %(end)s::text, %(version)s::integer, %(version)s::integer + 1,
    'explicit', 'bare'
FROM bench_given AS given WHERE NOT eligible OR %(all)s::boolean
"""
_MOVED: Final = """
UPDATE archive_note SET state = %(end)s::text, lifecycle_version = lifecycle_version + 1
FROM bench_given AS given WHERE archive_note.id = given.note AND (NOT given.eligible OR %(all)s::boolean)
"""
_PREPARED: Final = f"""
INSERT INTO semantic_derivation (id, namespace_id, generation_id, note_id, chunk, source_key, source_revision,
    text_digest, note_lifecycle_version, state, attempt, row_version, dimensions)
SELECT derivation, %(namespace)s::bigint, %(generation)s::uuid, note, 'whole-note', 'v-' || note, '1',
    '{canonical.text_digest("embedded note")}', 2, 'prepared', 0, 1, %(dimensions)s::integer
FROM bench_given AS given
"""  # noqa: S608 - a digest of ours
CLAIMED: Final = """
UPDATE semantic_derivation SET state = 'running', attempt = attempt + 1, row_version = row_version + 1,
    attempt_token = gen_random_uuid(), claimed_at = statement_timestamp(),
    deadline = statement_timestamp() + interval '60 seconds'
FROM bench_given AS given WHERE semantic_derivation.id = given.derivation
"""
COMPLETED: Final = f"""
UPDATE semantic_derivation SET state = 'complete', row_version = row_version + 1, attempt_token = NULL,
    claimed_at = NULL, deadline = NULL, {truths.completion("given.vector", "statement_timestamp()")}
FROM bench_given AS given WHERE semantic_derivation.id = given.derivation
"""  # noqa: S608 - columns of ours
# The owner makes them: the serving role makes no tables, not even for itself.
_TABLES: Final = f"""
CREATE TABLE {PLAIN} (note_id uuid NOT NULL, eligible boolean NOT NULL, vector vector({DIMENSIONS}) NOT NULL);
CREATE TABLE {INLINE} (LIKE {PLAIN} INCLUDING ALL);
ALTER TABLE {INLINE} ALTER COLUMN vector SET STORAGE PLAIN;
CREATE UNLOGGED TABLE {GIVEN} (note uuid, derivation uuid, vector vector, eligible boolean);
GRANT SELECT ON {PLAIN}, {INLINE} TO PUBLIC;
GRANT SELECT, INSERT ON {GIVEN} TO PUBLIC
"""


@dataclass
class Rows:
    """What has been loaded so far, here in one matrix, there in the archive's tables and in both baselines."""

    ground: Ground
    padded: bool = False
    source: Source = field(init=False)
    generation: Generation = field(init=False)
    notes: list[UUID] = field(default_factory=list)
    eligible: Any = None
    matrix: Any = None

    def __post_init__(self) -> None:
        self.source = Source(self.ground, padded=self.padded)
        self.ground.promoted(1)
        meaning.register(self.ground.caller)
        self.generation = Generation.objects.get(namespace=self.ground.namespace, reference=meaning.GENERATION)
        with as_owner() as connection:
            connection.execute(_TABLES)

    def head(self, size: int) -> str:
        """What the names of figures over so many of these rows begin with."""
        return f"semantic.padded.{size}" if self.padded else f"semantic.{size}"

    def grow(self, size: int) -> None:
        """Bring all of it to this many rows, a fifth of them withdrawn again, and let the server catch up."""
        import numpy as np

        while len(self.notes) < size:
            count = min(_SLICE, size - len(self.notes))
            vectors = self.source.rows(count)
            eligible = self.source.eligible(count)
            self.notes += self._load(vectors, eligible)
            self.matrix = vectors if self.matrix is None else np.concatenate([self.matrix, vectors])
            self.eligible = eligible if self.eligible is None else np.concatenate([self.eligible, eligible])
            self.ground.progress(f"{size} rows", len(self.notes), size)
        with as_owner() as connection:
            connection.execute("VACUUM (ANALYZE)")

    def _load(self, vectors: Any, eligible: Any) -> list[UUID]:
        given = [(uuid4(), uuid4(), vector, bool(may)) for vector, may in zip(vectors, eligible, strict=True)]
        with bare_connection() as serving, bare.held(serving) as namespace:
            copy_given(serving, given)
            take_to_claimed(serving, namespace, self.generation.id)
            serving.execute(COMPLETED)
            # What is withdrawn again takes its vector with it.
            withdrawn = {"start": "promoted", "end": "archived", "version": 2, "all": False}
            _move(serving, {"namespace": namespace, **withdrawn})
        with as_owner() as connection:
            connection.execute(f"TRUNCATE {GIVEN}")
            _copy(connection, f"{PLAIN} (note_id, vector, eligible)", ((note, one, may) for note, _, one, may in given))
            connection.execute(
                f"INSERT INTO {INLINE} SELECT * FROM {PLAIN} WHERE note_id = ANY(%s)",  # noqa: S608
                [[note for note, *_ in given]],
            )
        return [note for note, *_ in given]


def copy_given(connection: Connection, given: Sequence[tuple[UUID, UUID, Any, bool]]) -> None:
    """Lay rows out for the statements above."""
    with (
        connection.cursor() as cursor,
        cursor.copy("COPY bench_given (note, derivation, vector, eligible) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.set_types(["uuid", "uuid", "bytea", "bool"])
        for note, derivation, vector, eligible in given:
            copy.write_row((note, derivation, sent(vector.astype("<f4").tobytes()), eligible))


def take_to_claimed(connection: Connection, namespace: int, generation: UUID) -> None:
    """Admit, promote, prepare and claim what is laid out, one statement each under the hold.

    Every trigger is on, so that postings, corpus figures, scan rows and coverage are what the archive's own acts would
    have left. COMPLETED comes next, within the minute.
    """
    values = {"namespace": namespace, "generation": generation, "dimensions": DIMENSIONS}
    connection.execute(_SOURCES, values)
    connection.execute(_NOTES, values)
    connection.execute(_EVENTS, {**values, "start": None, "end": "candidate", "version": 0, "all": True})
    _move(connection, {**values, "start": "candidate", "end": "promoted", "version": 1, "all": True})
    connection.execute(_PREPARED, values)
    connection.execute(CLAIMED)


def _move(connection: Connection, values: Mapping[str, Any]) -> None:
    connection.execute(_MOVED, values)
    connection.execute(_EVENTS, values)


def _copy(connection: Connection, into: str, rows: Iterator[tuple[UUID, Any, bool]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["uuid", "bytea", "bool"])
        for note, vector, eligible in rows:
            copy.write_row((note, sent(vector.astype("<f4").tobytes()), eligible))


_numbers = itertools.count()


def question(vector: Any) -> str:
    """Name a question whose vector is this."""
    text = f"question {next(_numbers)}"
    prepared[text] = vector.astype("<f4").tobytes()
    return text
