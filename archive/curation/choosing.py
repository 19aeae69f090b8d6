"""Several notes chosen on one page, each with the version that the page showed beside it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.http import HttpRequest

from archive import limits
from archive.curation.posted import stray
from archive.lifecycle import Reason, State
from archive.refusals import Fault, InvalidRequest

STEPS: Final[Mapping[str, State]] = {"promote": State.PROMOTED, "revoke": State.REVOKED}
_SEEN: Final = re.compile(r"seen-(?P<note>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")
_VERSION: Final = re.compile(r"[1-9][0-9]{0,9}\Z")
_ALONE: Final = frozenset({"csrfmiddlewaretoken", "step", "reason", "all", "note"})


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is to be done to which notes, on which versions, for which reason."""

    step: str
    seen: Mapping[UUID, int]
    reason: Reason | None

    @property
    def to_state(self) -> State:
        return STEPS[self.step]


def chosen(request: HttpRequest) -> Chosen:
    """Read a form of tick boxes; `all` takes every note that the page showed. Raises `InvalidRequest`."""
    faults: list[Fault] = []
    shown: dict[str, int] = {}
    for name in request.POST:
        found = _SEEN.match(name)
        version = request.POST.get(name, "")
        if found and len(request.POST.getlist(name)) == 1 and _VERSION.match(version) and int(version) < 2**31:
            shown[found["note"]] = int(version)
        elif found or name not in _ALONE:
            faults.append(stray(name, "no such field, or no version that a page shows"))
    step, reason = request.POST.get("step", ""), request.POST.get("reason") or None
    if step not in STEPS:
        faults.append(Fault("/step", "one of " + ", ".join(STEPS)))
    if reason is not None and reason not in set(Reason):
        faults.append(Fault("/reason", "one of " + ", ".join(Reason)))
    ticked = list(shown) if "all" in request.POST else list(dict.fromkeys(request.POST.getlist("note")))
    if any(note not in shown for note in ticked):
        faults.append(Fault("/note", "a note that the page showed, with the version beside it"))
    elif not 1 <= len(ticked) <= limits.BATCH_TRANSITION_MAX:
        faults.append(Fault("/note", f"tick 1 to {limits.BATCH_TRANSITION_MAX} notes"))
    if faults:
        raise InvalidRequest(faults)
    return Chosen(step, {UUID(note): shown[note] for note in ticked}, None if reason is None else Reason(reason))
