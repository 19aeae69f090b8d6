"""The receipt of a recall by meaning has a closed form too (tests/operations/test_forged.py has the kind)."""

from collections.abc import Callable
from typing import Any

from archive import forms
from tests.operations.forgeries import FREE_WORDS, LEXICAL, forged
from tests.operations.test_forged import written
from tests.semantic.test_l_recall import asked, shelf

__all__ = ["shelf"]

Change = Callable[[dict[str, Any]], object]

# What every receipt has: the same forgeries, where schema 2 has the field at all.
_SHARED = {name: change for name, change in LEXICAL.items() if "left out" not in name and "rank" not in name}
MEANING: dict[str, Change] = {
    "a field more in the generation": lambda r: r["generation"].update(note=FREE_WORDS),
    "words for a generation": lambda r: r["generation"].update(reference=FREE_WORDS),
    "words for a manifest": lambda r: r["generation"].update(manifest_digest=FREE_WORDS),
    "words for a vector": lambda r: r["selected"][0].update(vector_digest=FREE_WORDS),
    "words for a derivation": lambda r: r["selected"][0].update(derivation_id=FREE_WORDS),
    "words for a cosine": lambda r: r["selected"][0]["cosine"].update(decimal=FREE_WORDS),
    "words for an execution": lambda r: r["query_execution"].update(vector_digest=FREE_WORDS),
    "coordinates in the execution": lambda r: r["query_execution"].update(vector=[1] * 1_024),
    "a profile that is none": lambda r: r["embed"].update(profile="model.embed@9"),
    "a threshold beyond a cosine": lambda r: r.update(min_cosine="f64:4000000000000000"),
    "a coverage that is text": lambda r: r["coverage"].update(promoted="3"),
    "a lexical account": lambda r: r.update(lexical={"note": FREE_WORDS}),
}
_OF_WORDS = {
    "a field more in the account",
    "a field less in the account",
    "words for a fingerprint",
    "words for a configuration",
    "a lexical account that is null",
    "counts that are none",
    "a mean that is none",
    "a threshold below nothing",
    "words for a reason",
}


def test_no_forged_receipt_of_meaning_is_written_or_whole(shelf, bob, serving):
    shelf.put(0.5, 0.9)
    receipt = asked(bob).receipt
    assert written(serving, receipt) is None
    changes = {**{name: change for name, change in _SHARED.items() if name not in _OF_WORDS}, **MEANING}
    assert len(changes) > 40
    for name, change in changes.items():
        said = written(serving, receipt, change)
        assert said is not None, name
        assert said.startswith("LY011 "), (name, said)
        made = forged(receipt, change)
        # Which owner and policy a namespace has had, only its rows tell.
        assert not forms.is_whole(made) or "never was" in name or name == "another namespace", name
