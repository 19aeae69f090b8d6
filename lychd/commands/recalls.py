"""Recall, resolution and receipts on the command line."""

import argparse
import sys
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from archive import canonical, limits
from archive.operations import recall as recalling
from archive.operations import resolution
from archive.requests import LexicalRecall
from archive.selections import Resolved
from inspection import reads
from lychd.commands.acting import caller
from lychd.commands.telling import Told, indented, pairs, table


def recall(options: argparse.Namespace) -> Told:
    """Ask, and show the receipt; a miss is an answer."""
    wanted = LexicalRecall(
        request_id=options.request_id or f"cli-{uuid4()}",
        query=query_of(options),
        top_k=options.top_k,
        char_budget=options.char_budget,
        min_rank=options.min_rank,
    )
    asking = caller(options)
    answer = recalling.recall(asking, wanted)
    document: dict[str, Any] = {"outcome": answer.outcome.value, "receipt": answer.receipt}
    text = f"{answer.outcome.value}: {receipt_text(answer.receipt)}"
    if options.text and answer.receipt["selected"]:
        resolved = resolution.resolve(asking, wanted.request_id)
        document["sources"] = [source.as_json() for source in resolved.sources]
        text += "\n\n" + sources_text(resolved)
    elif answer.receipt["selected"]:
        text += f"\n\nread the texts: lychd resolve {wanted.request_id}"
    return Told(document, text)


def query_of(options: argparse.Namespace) -> str:
    """Read the question off the command line, or off stdin where a lone dash stands for it."""
    # One character beyond the limit is enough to be told that there are too many.
    return sys.stdin.read(limits.QUERY_MAX_CHARS + 1) if options.query == ["-"] else " ".join(options.query)


def receipt_text(receipt: Mapping[str, Any]) -> str:
    """Write a receipt for people: what was selected, under which figures, and its digest."""
    lines = selection_lines(receipt, "score", empty="Nothing admissible was found.")
    if receipt["omitted"]:
        budget = receipt["budgets"]["char_budget"]
        lines.append(f"left out for the budget of {budget} characters: {len(receipt['omitted'])}")
    if lexical := receipt.get("lexical"):
        words = f"{lexical['lexemes_found']} of {lexical['lexemes_asked']} words found"
        lines.append(f"{words} among {lexical['corpus_notes']} promoted notes")
    return "\n".join([*lines, *seal_lines(receipt)])


def selection_lines(receipt: Mapping[str, Any], score: str, *, empty: str) -> list[str]:
    """Write how a receipt of either schema begins: for whom, and what was selected."""
    rows = [
        (
            one["rank"],
            f"{canonical.read_real(one['score']):.4f}",
            one["source_key"],
            one["source_revision"],
            one["note_id"],
        )
        for one in receipt["selected"]
    ]
    return [
        f"{receipt['outcome']} for {receipt['subject']} in {receipt['namespace']} at {receipt['created_at']}",
        table(("rank", score, "source", "revision", "note"), rows, empty=empty),
    ]


def seal_lines(receipt: Mapping[str, Any]) -> list[str]:
    """Write how it ends: the request that it answers, and its digest."""
    return [f"request {receipt['request_id']}", f"digest  {receipt['receipt_digest']}"]


def resolve(options: argparse.Namespace) -> Told:
    """Turn a receipt into text."""
    return resolved_told(resolution.resolve(caller(options), options.request_id))


def resolved_told(resolved: Resolved) -> Told:
    """Tell the texts of a receipt."""
    document = {
        "receipt_id": str(resolved.receipt_id),
        "sources": [source.as_json() for source in resolved.sources],
    }
    return Told(document, sources_text(resolved) or "The receipt selected nothing.")


def sources_text(resolved: Resolved) -> str:
    """Write resolved texts for people, each set off and attributed."""
    return "\n\n".join(
        f"{one.rank}. {one.source_key}, revision {one.source_revision} ({one.note_id})\n\n{indented(one.text)}"
        for one in resolved.sources
    )


def receipt(options: argparse.Namespace) -> Told:
    """Show one retained receipt after checking it."""
    found = reads.receipt(caller(options), options.request_id)
    text = f"{receipt_text(found)}\n{pairs([('verified', 'yes'), ('current eligibility', 'not assessed')])}"
    return Told({"receipt": found, "current_eligibility": "not_assessed"}, text)
