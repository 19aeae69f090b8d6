"""Every list of the service over very many rows: each page, each table, each list of the API, each figure.

One subject holds thousands of namespaces, one of which has very many notes and receipts. Beside it, in turns, stands
what is compared: the lists of a namespace with a thousand notes, or the same lists without the indexes that they were
given for their growth.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from archive import limits
from archive.authority import Caller
from archive.lifecycle import State
from archive.models import IntakeRequest, LifecycleEvent, Namespace, Note, Recall
from archive.operations.intake import intake_many
from archive.operations.recall import recall
from archive.operations.transition import transition_many
from archive.records import NUMBER
from archive.requests import Intake, LexicalRecall, Transition
from inspection.admin.tables import TABLES
from inspection.cursors import List
from lychd import metrics
from lychd.bench import copies
from lychd.bench.figures import Figure, clocked
from lychd.bench.ground import Progress, fresh, settle
from lychd.bench.visits import Visitor
from lychd.evaluation.metrics import percentile

BOUND: Final = 150.0
"""What each list may take, in milliseconds."""
GROWN: Final = (
    "event_decided",
    "event_state_keyset",
    "note_material_digest",
    "note_promoted_text",
    "note_text_digest",
    "recall_missed",
    "recall_receipt_digest",
    "recall_request_digest",
    "source_named",
)
"""The indexes that lists were given for their growth, and that nothing else needs."""
_ROLES: Final = ("curator", "writer", "recaller", "inspector", "operator", "deriver")
_REVISIONS: Final = 4


@dataclass(frozen=True)
class Scale:
    """How much there is: notes and as many receipts in one namespace, and namespaces of one subject."""

    notes: int = 200_000
    namespaces: int = 2_000
    few: int = 1_000
    own: int = 4_000
    """So many notes are taken in through the operations; what more there is to be is copied from them."""
    each: int = 10
    """So many notes are in each of the other namespaces."""
    receipts: int = 200
    """So many are left by recalls; the others are copied."""


def measure(scale: Scale, rounds: int, progress: Progress, *, baseline: bool = False) -> list[Figure]:
    """Open every list in turns with its baseline; of each the median, the 95th percentile, and what is late."""
    few, many = filled(scale, progress)
    settle()
    own = dict(addresses(many))
    beside = own if baseline else dict(addresses(few))
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in own}
    for turn in range(rounds + 1):
        for side, acts in enumerate((beside, own)):
            with copies.hidden(GROWN) if baseline and not side else contextlib.nullcontext():
                for place, (name, act) in enumerate(acts.items()):
                    took = act()
                    if turn:
                        times[name][side].append(took)
                    progress(f"lists of {scale.notes}, turn {turn}.{side}", place + 1, len(acts))
    note = "baseline: without its indexes" if baseline else f"baseline: the same list of {scale.few} notes"
    found = [
        Figure(
            f"lists.{scale.notes}.{name}.{part}",
            percentile(took, share),
            "ms",
            percentile(compared, share),
            f"over {BOUND:.0f} ms; {note}" if percentile(took, share) > BOUND else note,
        )
        for name, (compared, took) in times.items()
        for part, share in (("p50", 0.5), ("p95", 0.95))
    ]
    late = [figure for figure in found if figure.value > BOUND and figure.name.endswith(".p50")]
    slowest = max(found, key=lambda figure: figure.value)
    return [
        *found,
        Figure(f"lists.{scale.notes}.slowest", slowest.value, "ms", slowest.baseline, note=slowest.name),
        Figure(f"lists.{scale.notes}.late", len(late), "lists", note=", ".join(figure.name for figure in late)),
    ]


def addresses(visitor: Visitor) -> Iterator[tuple[str, Callable[[], float]]]:
    """Every list by a name and how it is opened: its beginning, each filter, a page from the middle of it."""
    for name, address in _lists(visitor):
        yield name, partial(visitor.visit, address)
    note = Note.objects.filter(namespace__key=visitor.namespace).order_by(NUMBER.desc()).first()
    receipt = Recall.objects.filter(namespace__key=visitor.namespace).order_by("created_at", "id").last()
    if note is None or receipt is None:
        raise AssertionError(f"{visitor.namespace} was not filled")
    named = {
        "note": str(note.id),
        "source": "s-45",
        "request": receipt.request_id,
        "beginning_of_note": str(note.id)[:9],
        "beginning_of_text": note.text_digest[:8],
        "beginning_of_material": note.material_digest[:8],
        "beginning_of_receipt": receipt.receipt_digest[:8],
        "nothing": "0123456789abcdef",
    }
    for name, term in named.items():
        yield f"find.{name}", partial(visitor.visit, f"/ns/{visitor.namespace}/find", {"identifier": term})
    yield "metrics", lambda: clocked(metrics.exposition)[0]


def _lists(visitor: Visitor) -> Iterator[tuple[str, str]]:
    ns = visitor.namespace
    caller = Caller.in_namespace(visitor.subject, ns)
    key = "s-45"
    yield "home", f"/ns/{ns}"
    yield "review", f"/ns/{ns}/review"
    yield "review.same", f"/ns/{ns}/review?similar=same"
    yield "review.age", f"/ns/{ns}/review?age=day"
    yield "review.proposer", f"/ns/{ns}/review?proposer={visitor.subject}"
    yield "review.source", f"/ns/{ns}/review?source={key}"
    yield "search", f"/ns/{ns}/search"
    yield "configuration", f"/ns/{ns}/configuration"
    yield "receipts", f"/ns/{ns}/receipts"
    yield "generations", f"/ns/{ns}/generations"
    yield "people", f"/ns/{ns}/people"
    yield "source", f"/ns/{ns}/source?key={key}"
    api = f"/api/v1/ns/{ns}"
    yield "api.configuration", "/api/v1/configuration"
    yield "api.generations", f"{api}/generations"
    for name, at in (("notes", f"/ns/{ns}/notes"), ("api.notes", f"{api}/notes")):
        yield f"{name}.source", f"{at}?{'source' if name == 'notes' else 'source_key'}={key}"
        for state in (None, *State):
            rows = Note.objects.filter(namespace__key=ns)
            given = {} if state is None else {"state": state.value}
            label = name if state is None else f"{name}.{state}"
            yield label, f"{at}?{urlencode(given)}"
            middle = _middle(rows.filter(**given).annotate(number=NUMBER).order_by("number"), "number")
            if middle is not None:
                listed = List.of(caller, {"list": "notes", "state": state and state.value, "source_key": None})
                yield f"{label}.middle", f"{at}?{urlencode({**given, 'cursor': listed.at_number(middle)})}"
    yield "api.intakes", f"{api}/intakes?mine"
    after = List.of(caller, {"list": "events"}).at_number(
        _middle(LifecycleEvent.objects.filter(namespace__key=ns).order_by("id"), "id") or 0
    )
    for name, at in (("events", f"/ns/{ns}/events"), ("api.events", f"{api}/events")):
        yield name, at
        yield f"{name}.middle", f"{at}?{urlencode({'cursor': after})}"
    receipts = Recall.objects.filter(namespace__key=ns).order_by("-created_at", "-id")
    half = receipts.count() // 2
    moment, row_id = receipts.values_list("created_at", "id")[half]
    before = List.of(caller, {"list": "receipts"}).at_moment(moment, row_id)
    yield "receipts.middle", f"/ns/{ns}/receipts?{urlencode({'cursor': before})}"
    yield from _tables(ns, key)


def _tables(ns: str, key: str) -> Iterator[tuple[str, str]]:
    yield "tables", "/admin/"
    for table in TABLES:
        meta = table.model._meta
        at = f"/admin/{meta.app_label}/{meta.model_name}/"
        name = f"tables.{meta.model_name}"
        yield name, at
        yield f"{name}.late", f"{at}?p=15" if table.model in (Note, Recall, LifecycleEvent, IntakeRequest) else at
        yield f"{name}.nothing", f"{at}?q=nothing-is-called-so"
        for state in table.states:
            yield f"{name}.{state}", f"{at}?state={state}"
    yield "tables.note.source", f"/admin/archive/note/?q={key}"
    digest = Note.objects.filter(namespace__key=ns).order_by(NUMBER).values_list("text_digest", flat=True)[0]
    yield "tables.note.digest", f"/admin/archive/note/?q={digest}"


def _middle(rows: Any, name: str) -> Any:
    half = rows.count() // 2
    return next(iter(rows.values_list(name, flat=True)[half : half + 1]), None)


def filled(scale: Scale, progress: Progress) -> tuple[Visitor, Visitor]:
    """Fill the little namespace, the many that are like it, and the one with very much in it."""
    few = _filled("few", scale.few, scale, progress)
    many = _filled("many", scale.notes, scale, progress)
    progress(f"{scale.namespaces} namespaces, copied", 0, 1)
    copies.spread(few.namespace, many.subject, scale.namespaces, scale.each)
    return few, many


def _filled(name: str, notes: int, scale: Scale, progress: Progress) -> Visitor:
    """Take so many notes in, four revisions a source; a quarter waits, the others were decided about in every way.

    One in ten of those that wait says what a promoted one says.
    """
    visitor = Visitor(f"looks-at-{name}", _ROLES, f"notes-{name}")
    own = min(notes, scale.own)
    caller = Caller.in_namespace(visitor.subject, visitor.namespace)
    wanted = (
        Intake(
            fresh("r"), f"s-{n // _REVISIONS}", str(n % _REVISIONS), f"Entry {_said(n)} of the list, page {n // 50}."
        )
        for n in range(own)
    )
    done = 0
    while slice_ := list(itertools.islice(wanted, limits.BATCH_INTAKE_MAX)):
        ids = [answer.given().note.id for answer in intake_many(caller, slice_)]
        steps = [Transition(one, State.PROMOTED, 1) for n, one in enumerate(ids) if n % _REVISIONS in (0, 1)]
        steps += [Transition(one, State.REVOKED, 1) for n, one in enumerate(ids) if n % _REVISIONS == 2 and n % 40 == 2]
        for start in range(0, len(steps), limits.BATCH_TRANSITION_MAX):
            for answer in transition_many(caller, steps[start : start + limits.BATCH_TRANSITION_MAX]):
                answer.given()
        done += len(ids)
        progress(f"{own} notes", done, own)
    for n in range(scale.receipts):
        recall(caller, LexicalRecall(fresh("q"), f"entry {n}" if n % 10 else f"nothing-like-{n}"))
    if notes > own:
        progress(f"{notes} notes, the others copied", 0, 1)
        copies.multiply(Namespace.objects.get(key=visitor.namespace).id, notes // own - 1)
    if notes > scale.receipts:
        progress(f"{notes} receipts, the others copied", 0, 1)
        copies.multiply_receipts(Namespace.objects.get(key=visitor.namespace).id, notes // scale.receipts - 1)
    return visitor


def _text(n: int) -> str:
    """As long as a passage, and with few words to copy."""
    return f"Entry {n} of the list, page {n // 50}: {'more ' * 60}"


def _said(n: int) -> int:
    """One in ten of the last revisions says what the second said, which is promoted."""
    return n - 2 if n % (10 * _REVISIONS) == _REVISIONS - 1 else n
