"""The library is configured as it is said to be."""

import pytest

from archive.operations.host import text_configurations
from lychd.evaluation import baseline, languages
from lychd.evaluation.sets import Document, Group, Query


@pytest.mark.parametrize(
    ("language", "text", "terms"),
    [
        ("en", "The roses were blooming, a v2!", ["rose", "were", "bloom", "v2"]),
        ("de", "Die Gärtnerinnen", ["die", "gartn"]),
        ("ja", "日本語のtest 山", ["日本", "本語", "語の", "山", "test"]),
        ("th", "ไทย", ["ไท", "ทย"]),
        (None, "roses", ["rose"]),
        ("zh_TW", "roses", ["roses"]),
    ],
)
def test_how_text_is_cut(language, text, terms):
    assert baseline.cutter(language)(text) == terms


def test_the_best_come_first_and_strangers_not_at_all():
    group = Group(
        "g",
        "en",
        [Document("both", "roses thorns", "g", "en"), Document("one", "roses bread", "g", "en")]
        + [Document(f"none{number}", "bread jam", "g", "en") for number in range(20)],
        [Query("q", "thorns of roses", "g"), Query("nothing", "unheard", "g")],
    )
    answers = dict(baseline.answers(group))
    assert answers["q"].ranking == ["both", "one"]
    assert answers["nothing"].ranking == []


@pytest.mark.parametrize(
    ("tag", "configuration"),
    [
        ("de", "german"),
        ("pt_BR", "portuguese"),
        ("zh", "simple"),
        ("cn", "simple"),
        (None, "english"),
        ("uk", "simple"),
    ],
)
def test_the_configuration_of_a_language(tag, configuration):
    assert languages.text_configuration(tag) == configuration


@pytest.mark.django_db
def test_every_configuration_that_is_named_is_there():
    named = {languages.text_configuration(tag) for tag in languages._CONFIGURATIONS}
    assert named <= set(text_configurations())
