"""A set is read whole or not at all."""

import pytest

from lychd.evaluation import sets
from tests.evaluation.folders import CORPUS, JUDGEMENTS, QUERIES, written


def test_a_set_is_read_by_groups(tmp_path):
    found = sets.read(written(tmp_path / "garden"))
    assert found.name == "garden"
    assert [(group.name, group.language, len(group.documents)) for group in found.groups] == [
        ("de", "de", 2),
        ("en", "en", 4),
    ]
    # A title can be found, and nobody is asked what nobody judged.
    assert found.groups[0].documents[0].text == "Rosen Die Gärtnerin schneidet im März."
    assert [query.id for query in found.groups[1].queries] == ["q2", "q3"]
    assert found.judgements["q2"] == {"roses": 1, "far too long": 1}


def test_a_separator_inside_a_text_is_no_end_of_a_line(tmp_path):
    folder = written(tmp_path / "one")
    (folder / "corpus.jsonl").write_text('{"id": "a", "text": "one\u2028two"}\n', encoding="utf-8")
    assert sets.read(folder).documents[0].text == "one\u2028two"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ({"corpus": [{"id": "a"}]}, "corpus.jsonl:1: no text"),
        ({"corpus": [CORPUS[0], CORPUS[0]]}, "corpus.jsonl: an id is there twice"),
        ({"queries": [{"id": 7, "text": "x"}]}, "queries.jsonl:1: no id"),
        ({"judgements": [("q1", "a", "much")]}, "qrels.tsv:2: not query, document and a whole number"),
        ({"judgements": [("nobody", "a", 1)]}, "qrels.tsv:2: judges a question"),
        ({"judgements": [("q1", "a", 0)]}, "no question with a judgement"),
    ],
)
def test_what_is_no_set_is_refused_with_its_place(tmp_path, spoil, said):
    whole = {"corpus": CORPUS, "queries": QUERIES, "judgements": JUDGEMENTS}
    with pytest.raises(sets.SetError, match=said.replace(".", r"\.")):
        sets.read(written(tmp_path / "spoilt", **{**whole, **spoil}))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(sets.SetError, match=r"corpus\.jsonl: No such file"):
        sets.read(tmp_path)
    written(tmp_path)
    (tmp_path / "corpus.jsonl").write_bytes(b'{"id": "a", "text": "\xff"}')
    with pytest.raises(sets.SetError, match="not UTF-8"):
        sets.read(tmp_path)
