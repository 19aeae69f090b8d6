"""Receipts that somebody made up: sealed anew, in agreement with their row, and not what an act would have written."""

import contextlib
import copy
import uuid
from collections.abc import Callable
from typing import Any

from archive import canonical, forms, seals

Receipt = dict[str, Any]
Change = Callable[[Receipt], object]

FREE_WORDS = "what the note said, in full"
LEXICAL: dict[str, Change] = {
    "a field more": lambda r: r.update(note=FREE_WORDS),
    "a field more in the budgets": lambda r: r["budgets"].update(note=FREE_WORDS),
    "a field more in the account": lambda r: r["lexical"].update(note=FREE_WORDS),
    "a field more in a selection": lambda r: r["selected"][0].update(text=FREE_WORDS),
    "a field more in what was left out": lambda r: r["omitted"][0].update(text=FREE_WORDS),
    "a field less": lambda r: r.pop("query_digest"),
    "a field less in a selection": lambda r: r["selected"][0].pop("score"),
    "a field less in the account": lambda r: r["lexical"].pop("corpus_notes"),
    "words for a query digest": lambda r: r.update(query_digest=FREE_WORDS),
    "words for a text digest": lambda r: r["selected"][0].update(text_digest=FREE_WORDS),
    "words for a projection digest": lambda r: r["selected"][0].update(projection_digest=FREE_WORDS),
    "words for a fingerprint": lambda r: r["lexical"].update(lexer_fingerprint=FREE_WORDS),
    "words for a source": lambda r: r["selected"][0].update(source_key=FREE_WORDS),
    "words for a revision": lambda r: r["selected"][0].update(source_revision=FREE_WORDS),
    "words for a configuration": lambda r: r["lexical"].update(text_configuration=FREE_WORDS),
    "words for a reason": lambda r: r["omitted"][0].update(reason=FREE_WORDS),
    "words for a subject": lambda r: r.update(subject=FREE_WORDS),
    "words for an owner": lambda r: r.update(owner=FREE_WORDS),
    "words for a policy revision": lambda r: r.update(policy_revision=FREE_WORDS),
    "a policy that is none": lambda r: r.update(policy="no-such@9"),
    "another profile": lambda r: r.update(profile="other@1"),
    "another purpose": lambda r: r.update(purpose="memory"),
    "another namespace": lambda r: r.update(namespace="hedge"),
    "an owner that never was": lambda r: r.update(owner="stranger"),
    "a policy revision that never was": lambda r: r.update(policy_revision="never"),
    "budgets that are none": lambda r: r.update(budgets="none"),
    "a budget over the bound": lambda r: r["budgets"].update(top_k=999),
    "a budget that is true": lambda r: r["budgets"].update(top_k=True),
    "a budget that is text": lambda r: r["budgets"].update(char_budget="20"),
    "a miss with a selection": lambda r: r.update(outcome="miss"),
    "a selection of nothing": lambda r: r.update(selected=[], omitted=[]),
    "an outcome of its own": lambda r: r.update(outcome=FREE_WORDS),
    "one note many times": lambda r: r.update(selected=r["selected"] * 2_000),
    "one note twice": lambda r: r.update(selected=[*r["selected"], {**r["selected"][0], "rank": 3}]),
    "a note both taken and left out": lambda r: r["omitted"][0].update(note_id=r["selected"][0]["note_id"]),
    "a rank twice": lambda r: r["omitted"][0].update(rank=r["selected"][0]["rank"]),
    "a rank left open": lambda r: r["omitted"][0].update(rank=7),
    "a score that is none": lambda r: r["selected"][0].update(score="not a score"),
    "a score that is not a number": lambda r: r["selected"][0].update(score="f64:7ff8000000000000"),
    "a score without end": lambda r: r["selected"][0].update(score="f64:7ff0000000000000"),
    "a score with capitals": lambda r: r["selected"][0].update(score="f64:3FF0000000000000"),
    "a threshold below nothing": lambda r: r["budgets"].update(min_rank="f64:bff0000000000000"),
    "a selection over the budget": lambda r: r["budgets"].update(char_budget=1),
    "a note without characters": lambda r: r["selected"][0].update(char_count=0),
    "a version that is none": lambda r: r["selected"][0].update(lifecycle_version=0),
    "an identity that is none": lambda r: r["selected"][0].update(note_id=FREE_WORDS),
    "a request digest of another request": lambda r: r.update(request_digest="0" * 64),
    "a time of another form": lambda r: r.update(created_at="1999-01-01"),
    "a lexical account that is null": lambda r: r.update(lexical=None),
    "counts that are none": lambda r: r["lexical"].update(lexemes_asked=-1),
    "a mean that is none": lambda r: r["lexical"].update(mean_length=3),
}
# What only the rows beside a receipt can tell.
UNTRUE: dict[str, Change] = {
    "a note that is not there": lambda r: r["selected"][0].update(note_id=str(uuid.UUID(int=7, version=4))),
    "a note on another version": lambda r: r["selected"][0].update(lifecycle_version=7),
    "a note of another digest": lambda r: r["selected"][0].update(text_digest="0" * 64),
    "a note of another source": lambda r: r["selected"][0].update(source_key="elsewhere"),
    "a time of long ago": lambda r: r.update(created_at="1999-01-01T00:00:00.000000Z"),
}


def forged(receipt: Receipt, change: Change) -> Receipt:
    """The receipt with a change, as consistent as whoever forges it can make it: asked anew, and sealed anew."""
    made = copy.deepcopy(receipt)
    before = made["request_digest"]
    change(made)
    if made.get("request_digest") == before:
        with contextlib.suppress(KeyError, TypeError, canonical.NotCanonical):
            made["request_digest"] = forms.FORMS[made["schema"]].request_digest(made)
    made["receipt_digest"] = seals.digest_of(made)
    return made
