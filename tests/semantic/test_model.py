"""The real small model, where its packages are there: whole texts, its own window, the same numbers again."""

import math

import pytest
from django.conf import settings as configured

from archive.refusals import CapabilityNotReady
from semantic import leases, vectors
from semantic.embedders import Item, Kind
from semantic.embedding import Vector, session
from semantic.manifest import Configured
from semantic.presets import MINILM
from semantic.refusals import ModelInputOversize
from tests import cast
from tests.modelled import with_model
from tests.semantic import acts
from tests.semantic.conftest import derivation

pytestmark = with_model


@pytest.fixture
def minilm(meaning, settings):
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(**MINILM)}
    return meaning


@pytest.fixture
def described(minilm, otto) -> Configured:
    from semantic.operations.generations import discover

    return discover(otto)


def embedded(described, *texts: str, kind: Kind = Kind.DOCUMENT):
    with session(described) as embedding:
        answers = embedding.embed([Item(str(n), text) for n, text in enumerate(texts)], kind, lambda: None)
    return [answers[str(n)] for n in range(len(texts))]


def cosine(one: Vector, other: Vector) -> float:
    pairs = zip(vectors.components(one.data), vectors.components(other.data), strict=True)
    return math.fsum(a * b for a, b in pairs)


def test_meaning_is_nearer_than_words(described):
    query, near, far = embedded(described, "How do I water plants?", "Flowers need moisture.", "The bank has a plan.")

    assert cosine(query, near) > cosine(query, far) + 0.2
    for vector in (query, near, far):
        assert len(vector.data) == 4 * 1024
        assert not any(vectors.components(vector.data)[384:])
        assert abs(vector.l2 - 1) < 1e-5


def test_a_note_is_embedded_and_found_by_its_meaning(minilm, alice, bob, otto, dora):
    sun = cast.promoted(alice, "Roses want morning sun.", source="roses")
    tax = cast.promoted(alice, "The tax office closes at noon.", source="tax")
    acts.registered(otto)
    for note in (sun, tax):
        acts.derived(dora, note)

    answer = acts.asked(bob, "Where should I plant flowers so that they get light?", min_cosine=0.1)

    assert answer.receipt["selected"][0]["note_id"] == str(sun.id)
    assert answer.receipt["coverage"] == {"promoted": 2, "complete": 2}
    assert answer.receipt["embed"]["binding_digest"]


@pytest.mark.parametrize("words", [509, 510, 511, 4_000])
def test_c18_what_is_longer_than_the_window_is_refused_whole(described, words):
    # One token a word, and two that the tokenizer adds.
    (answer,) = embedded(described, " ".join(["tree"] * words))

    if words <= 510:
        assert isinstance(answer, Vector)
        assert answer.tokens == words + 2
    else:
        assert isinstance(answer, ModelInputOversize)


def test_two_texts_that_differ_only_at_their_end_have_two_vectors(described):
    head = " ".join(["tree"] * 508)
    one, other = embedded(described, f"{head} river", f"{head} stone")
    assert one.digest != other.digest


def test_c17_neighbours_move_a_vector_by_no_more_than_rounding(described):
    texts = [f"Note {n}: " + "words and more words. " * (n % 7 + 1) for n in range(12)]
    together = embedded(described, *texts)
    (alone,) = embedded(described, texts[3])
    assert cosine(together[3], alone) > 1 - 1e-6
    again = embedded(described, *texts)
    assert [one.digest for one in again] == [one.digest for one in together]


@pytest.mark.parametrize("key", ["model_digest", "tokenizer_digest"])
def test_a_model_that_is_not_the_one_described_is_not_opened(minilm, settings, otto, key):
    from semantic.operations.generations import discover

    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(**{**MINILM, key: "0" * 64})}

    with pytest.raises(CapabilityNotReady), session(discover(otto)):
        pass
    assert not leases._held


def test_the_model_reads_nothing_from_the_network(described):
    import os

    embedded(described, "a text")
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert configured.LYCHD_MODEL_PATH == ""
