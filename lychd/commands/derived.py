"""Generations, derivations and recall by meaning on the command line."""

import argparse
import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import Error, connections

from archive.authority import Caller
from archive.refusals import Refusal
from inspection import derivations
from lychd.commands.acting import binding, caller
from lychd.commands.recalls import query_of, resolved_told, seal_lines, selection_lines, sources_text
from lychd.commands.telling import Progress, Told, Unready, UsageError, pairs, problem_of, table
from semantic.lifecycle import EXPIRED, State
from semantic.operations import generations
from semantic.operations.attempts import Attempt, run_attempts
from semantic.operations.preparation import prepare_many
from semantic.operations.rebuild import rebuild_scan
from semantic.operations.recall import recall as recall_by_meaning
from semantic.operations.resolution import resolve as resolve_by_meaning
from semantic.requests import SemanticRecall

Outcome = str | Refusal
"""What became of one note: the state it is in now, that it was sent, or the refusal it met."""

# --- generations -----------------------------------------------------------------------------------------------------


def discover(options: argparse.Namespace) -> Told:
    """Say which generation the settings name here; nothing is read, registered or opened for it."""
    found = generations.discover(caller(options))
    told = {"reference": found.reference, "manifest_digest": found.digest, "manifest": dict(found.manifest)}
    return Told(told, pairs([("reference", found.reference), ("manifest digest", found.digest)]))


def register(options: argparse.Namespace) -> Told:
    """Register the configured generation; repeating it changes nothing."""
    done = generations.register(caller(options))
    told = {"created": done.created, "generation": done.generation.as_json()}
    row = done.generation
    word = "registered" if done.created else "registered before"
    return Told(told, f"{word}: {row.reference}, {row.state}, by {row.embedder}\ndigest {row.manifest_digest}")


def retire(options: argparse.Namespace) -> Told:
    """Retire a generation for good; its vectors are gone with it."""
    row = generations.retire(caller(options), options.reference)
    return Told({"generation": row.as_json()}, f"retired: {row.reference}, at {row.as_json()['retired_at']}")


def rebuild(options: argparse.Namespace) -> Told:
    """Write what is searched in a generation again, as the host; no vector changes."""
    key = binding(options).namespace
    with Progress(f"rebuild {options.reference}", None, unit="vectors") as progress:
        told = asdict(rebuild_scan(key, options.reference, progress=progress.reach))
    return Told(told, pairs((name.replace("_", " "), value) for name, value in told.items()))


def status(options: argparse.Namespace) -> Told:
    """Show the generations of a namespace, or one, with how much of the namespace is embedded."""
    acting = caller(options)
    found = (
        [derivations.generation(acting, options.reference)] if options.reference else derivations.generations(acting)
    )
    heads = ("generation", "state", "embedder", "promoted", "complete", "prepared", "running", "expired", "failed")
    states = (State.COMPLETE, State.PREPARED, State.RUNNING, EXPIRED, State.FAILED)
    rows = [
        (
            one.generation.reference,
            one.generation.state,
            one.generation.embedder,
            one.promoted,
            *(one.states[state] for state in states),
        )
        for one in found
    ]
    text = table(heads, rows, empty="No generation is registered; `lychd generation register` does it.")
    return Told({"items": [one.as_json() for one in found]}, text)


def describe(options: argparse.Namespace) -> Told:
    """Describe a model's folder, for LYCHD_DERIVATION_EMBEDDER; reads the files and touches no archive."""
    from semantic.embedders.sentence_transformers import describe as described

    folder = Path(options.folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder")
    try:
        told = described(
            folder,
            model=options.model or folder.name,
            revision=options.revision,
            document_prefix=options.document_prefix,
            query_prefix=options.query_prefix,
        )
    except ValueError as error:
        raise Unready(f"This model cannot be used: {error}.") from None
    return Told(told, json.dumps(told, indent=2, ensure_ascii=False))


# --- derivations -----------------------------------------------------------------------------------------------------


def show(options: argparse.Namespace) -> Told:
    """Show where one derivation stands by the database's clock."""
    found = derivations.derivation(caller(options), options.derivation)
    names = ("state", "attempt", "row_version", "generation", "source_key", "source_revision", "failure_code")
    told = found.as_json()
    return Told(
        {"derivation": told}, pairs([("id", told["id"]), *((name.replace("_", " "), told[name]) for name in names)])
    )


def derive(options: argparse.Namespace) -> Told:
    """Embed the named notes, or every promoted one without a complete derivation; what was done is not done again."""
    if bool(options.note) is options.all:
        raise UsageError("name notes, or say --all")
    acting = caller(options)
    reference = generations.discover(acting).reference
    outcomes: list[Outcome] = []
    stopped: Refusal | None = None
    total = len(options.note) if options.note else _missing(acting, reference, options.limit)
    with Progress("derive", total) as progress:
        try:
            for run in _runs(acting, reference, options):
                outcomes += _run(acting, run, options)
                progress.reach(len(outcomes))
        except Refusal as refusal:
            if not outcomes:
                raise
            # What came before stands and is told; the rest is left to the next call.
            stopped = refusal
    return _derived(reference, outcomes, stopped)


def _derived(reference: str, outcomes: Sequence[Outcome], stopped: Refusal | None) -> Told:
    """Count what became of the notes; the exit code is that of the gravest refusal among them."""
    counts = Counter(one.code if isinstance(one, Refusal) else one for one in outcomes)
    met = {one.code: one for one in (*outcomes, stopped) if isinstance(one, Refusal)}
    told = {
        "generation": reference,
        "outcomes": dict(sorted(counts.items())),
        "refused": [problem_of(refusal) for _, refusal in sorted(met.items())],
        "stopped": None if stopped is None else stopped.code,
    }
    lines = [table(("outcome", "notes"), sorted(counts.items()), empty="Nothing was left to derive.")]
    lines += [f"{refusal.code}: {refusal.title}. {refusal.detail}" for _, refusal in sorted(met.items())]
    lines += [] if stopped is None else [f"stopped before the end: {stopped.code}"]
    return Told(told, "\n".join(lines), max((refusal.exit_code for refusal in met.values()), default=0))


def _missing(acting: Caller, reference: str, limit: int | None) -> int | None:
    found = [one for one in derivations.generations(acting) if one.generation.reference == reference]
    if not found:
        return limit
    left = max(0, found[0].promoted - found[0].states[State.COMPLETE])
    return left if limit is None else min(limit, left)


def _runs(acting: Caller, reference: str, options: argparse.Namespace) -> Iterator[Sequence[UUID]]:
    """Cut what is asked for into runs that fit one attempt's minute."""
    if options.note:
        for place in range(0, len(options.note), options.batch):
            yield options.note[place : place + options.batch]
        return
    left, after = options.limit, None
    while left is None or left > 0:
        most = options.batch if left is None else min(options.batch, left)
        found = derivations.underived(acting, reference, after=after, limit=most)
        if not found:
            return
        yield found
        after, left = found[-1], None if left is None else left - len(found)


def _run(acting: Caller, run: Sequence[UUID], options: argparse.Namespace) -> list[Outcome]:
    prepared = prepare_many(acting, run)
    outcomes: list[Outcome] = [answer.refusal for answer in prepared if answer.refusal is not None]
    rows = [answer.given().derivation for answer in prepared if answer.refusal is None]
    attempts = [Attempt(row.id, row.row_version, bool(options.retry) and row.ended_without_vector) for row in rows]
    if options.queue:
        return [*outcomes, *_sent(acting, attempts)]
    if attempts:
        outcomes += [answer.refusal or answer.given().state for answer in run_attempts(acting, attempts)]
    return outcomes


def _sent(acting: Caller, attempts: Sequence[Attempt]) -> Iterator[Outcome]:
    from lychd import celery  # noqa: F401 - the messages go to our own broker
    from semantic.operations.request import request
    from semantic.tasks import send

    for attempt in attempts:
        try:
            requested = request(acting, attempt)
            if requested.needed:
                send(acting, attempt, str(uuid4()))
            yield "sent" if requested.needed else requested.derivation.state
        except Refusal as refusal:
            yield refusal


def worker(options: argparse.Namespace) -> None:
    """Embed what is asked for until Ctrl-C; one process a lease."""
    from lychd.celery import app
    from lychd.commands.host import warn_of_moved_words

    with contextlib.suppress(Error):
        # A database that is away is waited for, and no reason to end.
        warn_of_moved_words()
    connections.close_all()
    if settings.LYCHD_EMBEDDED and not settings.REDIS_URL:
        from lychd.broker import start_broker

        start_broker(settings.LYCHD_STATE_DIR)
    words = ["worker", "--queues", "embedding", "--loglevel", "WARNING", "--without-gossip", "--without-mingle"]
    app.worker_main([*words, "--concurrency", str(settings.CELERY_WORKER_CONCURRENCY)])


# --- recall ----------------------------------------------------------------------------------------------------------


def recall(options: argparse.Namespace) -> Told:
    """Ask by meaning, and show the receipt with how much of the namespace was searched."""
    wanted = SemanticRecall(
        request_id=options.request_id or f"cli-{uuid4()}",
        query=query_of(options),
        min_cosine=options.min_cosine,
        top_k=options.top_k,
        char_budget=options.char_budget,
    )
    asking = caller(options)
    answer = recall_by_meaning(asking, wanted)
    document: dict[str, Any] = {
        "outcome": answer.outcome.value,
        "receipt": answer.receipt,
        "caller_execution": answer.caller_execution,
    }
    text = f"{answer.outcome.value}: {_receipt_text(answer.receipt)}"
    if options.text and answer.receipt["selected"]:
        resolved = resolve_by_meaning(asking, wanted.request_id)
        document["sources"] = [source.as_json() for source in resolved.sources]
        text += "\n\n" + sources_text(resolved)
    return Told(document, text)


def _receipt_text(receipt: dict[str, Any]) -> str:
    coverage, reference = receipt["coverage"], receipt["generation"]["reference"]
    searched = f"searched {coverage['complete']} of {coverage['promoted']} promoted notes in generation {reference}"
    return "\n".join(
        [
            *selection_lines(receipt, "cosine", empty="Nothing was near enough."),
            f"{searched}; {receipt['matched_count']} reached the threshold",
            *seal_lines(receipt),
        ]
    )


def resolve(options: argparse.Namespace) -> Told:
    """Turn a semantic receipt into text."""
    return resolved_told(resolve_by_meaning(caller(options), options.request_id))
