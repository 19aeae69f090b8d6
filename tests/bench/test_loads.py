"""The load rows at their whole size: 32 writers, 64 alike, 200 decisions, 600 waiting, readers beside writers."""

from dataclasses import astuple

import pytest

from lychd.bench import runner
from lychd.bench.load import Scale
from tests.bench import loads
from tests.evaluation.outside import ran

pytestmark = pytest.mark.slow


def test_the_whole_size_is_that_of_the_load_rows():
    assert runner.EFFORTS["whole"].load == Scale()
    assert astuple(Scale()) == (32, 3_200, 64, 20, 200, 600, 1.5, 8, 30.0)


def test_the_loads_come_out_exactly_at_their_whole_size():
    answer = ran("bench", "load", "--sizes", "1000", "--json")
    assert answer.code == 0, answer.err

    figures = {one["name"]: one for one in answer.document["figures"]}
    loads.require_exact(figures, Scale())
    assert figures["load.waiting.created"]["value"] > 0
