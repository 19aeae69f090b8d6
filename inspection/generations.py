"""How far each generation of a namespace is, what failed and why, and what waits to be sent again (R-L-177, 180)."""

from dataclasses import dataclass

from django.db.models import Count

from archive.authority import Action, Caller
from archive.models import Namespace
from archive.refusals import Refusal
from inspection.derivations import GenerationStatus, _statuses
from inspection.reads import _read
from semantic.lifecycle import State
from semantic.manifest import configured
from semantic.models import Derivation, Generation


@dataclass(frozen=True, slots=True)
class Progress:
    """One generation, its failures by error, and whether the namespace's binding names it today."""

    status: GenerationStatus
    failures: tuple[tuple[str, int], ...]
    named: bool

    @property
    def reference(self) -> str:
        return self.status.generation.reference

    @property
    def complete(self) -> int:
        return self.status.states[State.COMPLETE]

    def as_json(self) -> dict[str, object]:
        return {
            "reference": self.reference,
            "promoted": self.status.promoted,
            "states": self.status.states,
            "pace": self.status.pace,
        }


def named_generation(caller: Caller) -> str | None:
    """The generation that the binding or the deployment names; None while derivation is off."""
    try:
        return configured(caller.binding).reference
    except Refusal:
        return None


def progress(caller: Caller) -> tuple[Progress, ...]:
    """Read every generation of a namespace, newest first; an absent namespace has none."""
    named = named_generation(caller)

    def look(namespace: Namespace | None) -> tuple[Progress, ...]:
        if namespace is None:
            return ()
        rows = list(Generation.objects.filter(namespace=namespace).order_by("-registered_at", "id"))
        failures = list(
            Derivation.objects.filter(namespace=namespace, state=State.FAILED.value)
            .values("generation_id", "failure_code")
            .annotate(n=Count("id"))
            .order_by("-n", "failure_code")
            .values_list("generation_id", "failure_code", "n")
        )
        return tuple(
            Progress(
                status,
                tuple((str(code), count) for generation_id, code, count in failures if generation_id == row.id),
                row.reference == named,
            )
            for row, status in zip(rows, _statuses(namespace, rows), strict=True)
        )

    return _read(caller, Action.INSPECT_DERIVATION, {"part": "progress"}, look)
