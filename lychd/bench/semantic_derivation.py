"""How fast notes are embedded through the archive, beside the model alone on the same texts in turns."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from lychd.bench.figures import Figure, clocked
from lychd.bench.ground import Ground
from lychd.evaluation import meaning
from lychd.evaluation.metrics import percentile
from semantic import limits
from semantic.operations.attempts import Attempt, run_attempts
from semantic.operations.preparation import prepare_many
from semantic.presets import MINILM

WORDS: Final = 150
AIM: Final = 0.8
EIGHT: Final = 8
"""How many the adapter embeds in one pass; the library takes 32 unless it is told."""
_WARM: Final = 1
_ACTS: Final = ("archive", "encode", "encode_eights")


def measure(ground: Ground, rounds: int) -> tuple[list[Figure], dict[str, list[float]]]:
    """Notes a second by the median run, short and long: prepare to complete, beside the bare `encode`.

    The times are milliseconds a note.
    """
    figures: list[Figure] = []
    times: dict[str, list[float]] = {}
    with meaning.switched_on(MINILM):
        ground.promoted(1)
        meaning.register(ground.caller)
        alone = meaning.opened()
        for name, texts in (("passages", _passages), ("documents", _documents)):
            taken = _in_turns(ground, alone, texts, rounds, name)
            times |= {f"derivation.{name}.{kind}": found for kind, found in taken.items()}
            rate, *bare = (1000 / percentile(taken[kind], 0.5) for kind in _ACTS)
            words = sum(len(text.split()) for text in texts(ground, 0)) / limits.EMBED_BATCH
            for part, rival, how in zip(("", ".eights"), bare, ("as it comes", "in our runs of eight"), strict=True):
                note = f"{words:.0f} words each; baseline: encode() alone, {how}; aim: a ratio of {AIM}"
                figures.append(Figure(f"derivation.{name}{part}", rate, "notes/s", rival, note))
    return figures, times


def _in_turns(
    ground: Ground, alone: Any, texts: Callable[[Ground, int], list[str]], rounds: int, name: str
) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {kind: [] for kind in _ACTS}
    for turn in range(_WARM + rounds):
        # What the model cannot read whole is refused there and would be cut here.
        given = [text for text in texts(ground, turn) if len(alone.tokenizer(text)["input_ids"]) < alone.max_seq_length]
        notes = ground.promote_texts(given)
        acts = [
            lambda notes=notes: _derived(ground, notes),
            lambda given=given: alone.encode(given),
            lambda given=given: alone.encode(given, batch_size=EIGHT),
        ]
        order = list(zip(_ACTS, acts, strict=True))
        for kind, act in (*order[turn % 3 :], *order[: turn % 3]):
            took, _ = clocked(act)
            if turn >= _WARM:
                taken[kind].append(took / len(given))
        ground.progress(f"derivation of {name}", turn + 1, _WARM + rounds)
    return taken


def _derived(ground: Ground, notes: Sequence[Any]) -> None:
    rows = [answer.given().derivation for answer in prepare_many(ground.caller, notes)]
    for answer in run_attempts(ground.caller, [Attempt(row.id, row.row_version) for row in rows]):
        answer.given()


def _passages(ground: Ground, turn: int) -> list[str]:
    return ground.texts.passages(limits.EMBED_BATCH, seed=10_000 + turn)


def _documents(ground: Ground, turn: int) -> list[str]:
    """Texts from their beginning, as long as a longer note."""
    chance = Random(turn)  # noqa: S311 - repeatable on purpose
    chosen = (chance.choice(ground.texts.words) for _ in range(limits.EMBED_BATCH))
    return [" ".join(words[:WORDS]) for words in chosen]
