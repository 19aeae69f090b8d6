"""The ranking against brute force once more, where half of the vectors are what a model really gives."""

from archive.models import Namespace
from lychd.bench import texts
from lychd.evaluation import meaning
from semantic.models import Generation
from semantic.operations.generations import register
from tests import cast
from tests.modelled import with_model
from tests.semantic.stock import stock
from tests.semantic.test_exactness import DIMENSIONS, differences, nudged

pytestmark = with_model

REAL, NOISE, CENTRES, TIES = 12_800, 6_400, 200, 32
WORDS = 12


def embedded(passages):
    import numpy

    given = meaning.opened().encode(passages, batch_size=64, normalize_embeddings=True, show_progress_bar=False)
    return numpy.pad(given, ((0, 0), (0, DIMENSIONS - given.shape[1]))).astype("<f4")


def test_real_embeddings_among_others_are_ranked_as_by_brute_force(meaning, alice, otto, owner):
    import numpy

    cast.admitted(alice)
    register(otto)
    chance = numpy.random.default_rng(8)

    def unit(rows):
        return (rows / numpy.linalg.norm(rows, axis=1, keepdims=True)).astype("<f4")

    cut = [" ".join(one.split()[:WORDS]) for one in texts.chosen(None).passages(REAL + 500, seed=8)]
    real = embedded(cut)
    asked, real = real[REAL:], real[:REAL]
    noise = unit(chance.standard_normal((NOISE, DIMENSIONS)))
    # Half of the centres are real, and so are half of the rows that crowd about a centre.
    centres = numpy.concatenate([real[: CENTRES // 2], noise[: CENTRES // 2]])
    crowd = []
    for centre in centres:
        moved = unit(centre + 0.02 / 32 * chance.standard_normal((TIES // 2, DIMENSIONS)))
        crowd += [row.tobytes() for row in moved]
        crowd += [nudged(centre.tobytes(), int(chance.integers(384)), 1 + step) for step in range(TIES // 2)]
    rows = [row.tobytes() for row in [*real, *noise]] + crowd
    eligible = chance.random(len(rows)) < 0.8
    stock(owner, Namespace.objects.get().id, Generation.objects.get().id, zip(rows, map(bool, eligible), strict=True))
    assert owner.execute("SELECT count(*) FROM semantic_scan").fetchone()[0] >= 20_000

    beside = unit(centres + 0.3 / 32 * chance.standard_normal(centres.shape))
    queries = [row.tobytes() for row in [*asked, *centres, *beside, *unit(chance.standard_normal((100, DIMENSIONS)))]]
    count, wrong, close = differences(meaning, queries, thresholds=(0.0,))

    assert (count, wrong) == (1_000, 0)
    assert close >= 300
