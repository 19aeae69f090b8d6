"""Before many decisions at once: what was seen, where each note stands now, and which of them are left out."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from archive import lifecycle
from archive.authority import Caller
from archive.curation.choosing import Chosen, chosen
from archive.curation.door import in_namespace
from archive.lifecycle import Reason, State
from inspection.standings import Standing, standings


@dataclass(frozen=True, slots=True)
class Row:
    """One chosen note: the version that was seen, where it stands, and why it is not ticked, if it is not."""

    note_id: UUID
    seen: int
    now: Standing | None
    why_not: str
    offered: bool
    """Whether it can be ticked at all."""


@in_namespace("POST")
def preview(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Show what is about to be decided; it changes nothing, and only the next page's form does."""
    wanted = chosen(request)
    now = standings(caller, wanted.seen.keys())
    rows = [_row(caller, wanted, note_id, now.get(note_id)) for note_id in wanted.seen]
    rows.sort(key=lambda row: not row.why_not)
    shown = {
        "ns": caller.namespace,
        "step": wanted.step,
        "rows": rows,
        "ticked": sum(not row.why_not for row in rows),
        "left_out": sum(bool(row.why_not) for row in rows),
        "reasons": tuple(Reason),
        "reason": wanted.reason,
        "characters": sum(row.now.note.char_count for row in rows if row.now is not None and not row.why_not),
    }
    return render(request, "pages/preview.html", shown)


def _row(caller: Caller, wanted: Chosen, note_id: UUID, now: Standing | None) -> Row:
    seen, promoting = wanted.seen[note_id], wanted.to_state is State.PROMOTED
    if now is None:
        return Row(note_id, seen, now, "there is no such note", offered=False)
    if not lifecycle.is_legal(State(now.note.state), wanted.to_state):
        return Row(note_id, seen, now, "moved: it can no longer go there", offered=False)
    if promoting and caller.binding.second_person and now.note.admitted_subject == caller.subject:
        return Row(note_id, seen, now, "you took it in: somebody else has to promote it", offered=False)
    if promoting and now.hidden:
        return Row(note_id, seen, now, f"hidden characters ({now.hidden}): review it by itself", offered=False)
    if now.note.lifecycle_version != seen:
        return Row(note_id, seen, now, "moved since you saw it", offered=True)
    return Row(note_id, seen, now, "", offered=True)
