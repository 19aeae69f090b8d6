"""Whether what the admission engine admits by default asks for this profile (R-L-124..129).

It is a comparison of two configurations. It says nothing of readiness, of the next run or of one already admitted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from archive import admission
from archive.admission import Pattern
from archive.authority import Action, Caller, Point

Requests = bool | Literal["unknown"]


@dataclass(frozen=True, slots=True)
class Projection:
    """The default Pattern by name, and whether it asks for this profile; no other binding is ever shown."""

    pattern: str | None
    requests_profile: Requests

    def as_json(self) -> dict[str, Any]:
        return {"pattern": self.pattern, "requests_profile": self.requests_profile}


def projection(caller: Caller) -> Projection:
    """Compare the default Pattern's binding with the one that the caller met; touches no storage, model or run."""
    question = caller.asks(Action.INSPECT_INTERFACE, about=caller.binding.digest)
    question.require(Point.A0)
    pattern = admission.default_pattern()
    question.require(Point.A2)
    if pattern is None:
        return Projection(None, "unknown")
    return Projection(pattern.name, _requests(pattern, caller))


def _requests(pattern: Pattern, caller: Caller) -> bool:
    return (
        pattern.name == admission.REQUESTING
        and isinstance(pattern.archive, Mapping)
        and dict(pattern.archive) == caller.binding.fields()
    )
