"""Every list of the service over very many notes: each page, each table, each list of the API, from both ends.

The same lists of a namespace with a thousand notes stand beside, in the same database and in turns.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

from archive import limits
from archive.authority import Caller
from archive.lifecycle import State
from archive.models import LifecycleEvent, Namespace, Note, Recall
from archive.operations.intake import intake_many
from archive.operations.recall import recall
from archive.operations.transition import transition_many
from archive.requests import Intake, LexicalRecall, Transition
from inspection.admin.tables import TABLES
from inspection.cursors import List
from lychd.bench.copies import multiply
from lychd.bench.figures import Figure
from lychd.bench.ground import Progress, fresh, settle
from lychd.bench.visits import Visitor
from lychd.evaluation.metrics import percentile

FEW: Final = 1_000
OWN: Final = 4_000
"""So many are taken in through the operations; what more there is to be is copied from them."""
RECEIPTS: Final = 300
_ROLES: Final = ("curator", "writer", "recaller", "inspector", "operator", "deriver")
_REVISIONS: Final = 4


def measure(notes: int, rounds: int, progress: Progress) -> list[Figure]:
    """Open every list in turns with its little twin; of each the slowest but one in twenty, and the slowest of all."""
    few, many = _filled(FEW, progress), _filled(notes, progress)
    settle()
    pairs = list(zip(addresses(few), addresses(many), strict=True))
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for (name, _), _ in pairs}
    for turn in range(rounds + 1):
        for place, ((name, small), (_, large)) in enumerate(pairs):
            beside, took = few.visit(small), many.visit(large)
            if turn:
                times[name][0].append(beside)
                times[name][1].append(took)
            progress(f"lists of {notes}, turn {turn}", place + 1, len(pairs))
    note = f"baseline: the same list of {FEW} notes"
    found = [
        Figure(f"lists.{notes}.{name}.p95", percentile(took, 0.95), "ms", percentile(beside, 0.95), note)
        for name, (beside, took) in times.items()
    ]
    slowest = max(found, key=lambda figure: figure.value)
    return [*found, Figure(f"lists.{notes}.slowest", slowest.value, "ms", slowest.baseline, note=slowest.name)]


def addresses(visitor: Visitor) -> Iterator[tuple[str, str]]:
    """Every list by a name: its beginning, each filter, and a page from the middle of it."""
    ns = visitor.namespace
    caller = Caller.in_namespace(visitor.subject, ns)
    key = "s-1"
    yield "home", f"/ns/{ns}"
    yield "review", f"/ns/{ns}/review"
    yield "review.same", f"/ns/{ns}/review?similar=same"
    yield "review.age", f"/ns/{ns}/review?age=day"
    yield "review.proposer", f"/ns/{ns}/review?proposer={visitor.subject}"
    yield "receipts", f"/ns/{ns}/receipts"
    yield "generations", f"/ns/{ns}/generations"
    yield "people", f"/ns/{ns}/people"
    yield "source", f"/ns/{ns}/source?key={key}"
    api = f"/api/v1/ns/{ns}"
    yield "api.generations", f"{api}/generations"
    for name, at in (("notes", f"/ns/{ns}/notes"), ("api.notes", f"{api}/notes")):
        yield f"{name}.source", f"{at}?{'source' if name == 'notes' else 'source_key'}={key}"
        for state in (None, *State):
            rows = Note.objects.filter(namespace__key=ns)
            given = {} if state is None else {"state": state.value}
            label = name if state is None else f"{name}.{state}"
            yield label, f"{at}?{urlencode(given)}"
            middle = _middle(rows.filter(**given).order_by("created_at", "id").values_list("created_at", "id"))
            if middle is not None:
                listed = List.of(caller, {"list": "notes", "state": state and state.value, "source_key": None})
                yield f"{label}.middle", f"{at}?{urlencode({**given, 'cursor': listed.at_moment(*middle)})}"
    yield "api.intakes", f"{api}/intakes?mine"
    events = LifecycleEvent.objects.filter(namespace__key=ns).order_by("id").values_list("id", flat=True)
    after = List.of(caller, {"list": "events"}).at_number(_middle(events) or 0)
    for name, at in (("events", f"/ns/{ns}/events"), ("api.events", f"{api}/events")):
        yield name, at
        yield f"{name}.middle", f"{at}?{urlencode({'cursor': after})}"
    receipts = Recall.objects.filter(namespace__key=ns).order_by("-created_at", "-id").values_list("created_at", "id")
    before = List.of(caller, {"list": "receipts"}).at_moment(*(_middle(receipts) or (None, None)))
    yield "receipts.middle", f"/ns/{ns}/receipts?{urlencode({'cursor': before})}"
    for table in TABLES:
        meta = table.model._meta
        at = f"/admin/{meta.app_label}/{meta.model_name}/"
        name = f"tables.{meta.model_name}"
        yield name, at
        yield f"{name}.nothing", f"{at}?q=nothing-is-called-so"
        for state in table.states:
            yield f"{name}.{state}", f"{at}?state={state}"
    yield "tables.note.late", "/admin/archive/note/?p=15"
    yield "tables.note.source", f"/admin/archive/note/?q={key}"


def _middle(rows: Any) -> Any:
    half = rows.count() // 2
    return next(iter(rows[half : half + 1]), None)


def _filled(notes: int, progress: Progress) -> Visitor:
    """Take so many notes in, four revisions a source; a quarter waits, the others were decided about in every way."""
    visitor = Visitor(f"looks-at-{notes}", _ROLES, f"notes-{notes}")
    own = min(notes, OWN)
    caller = Caller.in_namespace(visitor.subject, visitor.namespace)
    wanted = (
        Intake(fresh("r"), f"s-{n // _REVISIONS}", str(n % _REVISIONS), f"Entry {n} of the list, page {n // 50}.")
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
    for n in range(RECEIPTS):
        recall(caller, LexicalRecall(fresh("q"), f"entry {n}"))
    if notes > own:
        progress(f"{notes} notes, the others copied", 0, 1)
        multiply(Namespace.objects.get(key=visitor.namespace).id, notes // own - 1)
    return visitor
