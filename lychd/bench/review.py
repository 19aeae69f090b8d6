"""The page a curator waits for two hundred times an hour: the next candidate, with few waiting and with very many."""

from typing import Final

from archive.authority import Caller
from archive.lifecycle import State
from archive.models import Note
from archive.operations.intake import intake_many
from archive.operations.transition import transition_many
from archive.requests import Intake, Transition
from lychd.bench.figures import Figure, spread
from lychd.bench.ground import Progress, fresh, settle
from lychd.bench.texts import Texts
from lychd.bench.visits import Visitor

FEW: Final = 100
PROMOTED: Final = 1_000
_ROLES: Final = ("curator", "writer")
_WARM: Final = 3


def measure(texts: Texts, waiting: int, rounds: int, progress: Progress) -> list[Figure]:
    """Open candidate after candidate in two namespaces in turns; one has a hundred waiting, one as many as asked."""
    few, many = (_filled(texts, count, progress) for count in (FEW, waiting))
    settle()
    few_times: list[float] = []
    many_times: list[float] = []
    turns = rounds + _WARM
    pairs = zip(_spread(_places(few), turns), _spread(_places(many), turns), strict=True)
    for turn, (few_at, many_at) in enumerate(pairs, start=1):
        beside, took = few.visit(_address(few, few_at)), many.visit(_address(many, many_at))
        if turn > _WARM:
            few_times.append(beside)
            many_times.append(took)
        progress(f"review among {waiting}", turn, turns)
    at_first = _address(many, _places(many)[0])
    note = f"the whole page; baseline: the same page with {FEW} waiting"
    return [
        *spread(f"review.{waiting}", many_times, few_times, note),
        Figure(f"review.{waiting}.statements", many.statements(at_first), "", note="of one page"),
    ]


def _address(visitor: Visitor, note: str) -> str:
    return f"/ns/{visitor.namespace}/review?at={note}"


def _places(visitor: Visitor) -> list[str]:
    notes = Note.objects.filter(namespace__key=visitor.namespace, state=State.CANDIDATE)
    return [str(note) for note in notes.order_by("created_at", "id").values_list("id", flat=True)]


def _spread(places: list[str], count: int) -> list[str]:
    """So many of them, from the first to the last."""
    return [places[turn * len(places) // count] for turn in range(count)]


def _filled(texts: Texts, waiting: int, progress: Progress) -> Visitor:
    """Promote a first revision of a thousand sources, then leave so many candidates, the first of them second ones."""
    visitor = Visitor(f"curator-of-{waiting}", _ROLES, f"waiting-{waiting}")
    caller = Caller.in_namespace(visitor.subject, visitor.namespace)
    written = texts.passages(PROMOTED + waiting, seed=waiting)
    first = [Intake(fresh("r"), f"s-{n}", "1", written[n]) for n in range(PROMOTED)]
    later = [Intake(fresh("r"), f"s-{n}", "2", f"{written[n]} {written[-n - 1][:60]}") for n in range(waiting)]
    taken: list[Transition] = []
    for start in range(0, PROMOTED, 500):
        answers = intake_many(caller, first[start : start + 500])
        taken += [Transition(answer.given().note.id, State.PROMOTED, 1) for answer in answers]
    for start in range(0, PROMOTED, 200):
        for answer in transition_many(caller, taken[start : start + 200]):
            answer.given()
    for start in range(0, waiting, 500):
        for admitted in intake_many(caller, later[start : start + 500]):
            admitted.given()
        progress(f"{waiting} candidates", min(start + 500, waiting), waiting)
    return visitor
