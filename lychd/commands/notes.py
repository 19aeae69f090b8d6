"""Notes on the command line: lists and records without text, review with it, and the three decisions."""

import argparse
from collections.abc import Callable
from typing import Any

from archive import canonical
from archive.authority import Caller
from archive.lifecycle import Reason, State
from archive.operations import review as reviewing
from archive.operations import transition
from archive.operations.transition import Moved
from archive.records import EventRecord, NoteRecord
from archive.requests import Transition
from inspection import reads
from inspection.cursors import Page, PageRequest
from lychd.commands.acting import caller
from lychd.commands.telling import Told, UsageError, indented, marked, on_one_line, pairs, table


def listed(options: argparse.Namespace) -> Told:
    """List notes of a namespace, or those that the caller took in."""
    page = PageRequest(limit=options.limit, cursor=options.cursor)
    if options.mine:
        if options.state or options.source:
            raise UsageError("--mine takes neither --state nor --source")
        found = reads.list_own_intakes(caller(options), page)
    else:
        state = None if options.state is None else State(options.state)
        found = reads.list_notes(caller(options), page, state=state, source_key=options.source)
    rows = [
        (note.id, note.state, note.lifecycle_version, note.source_key, note.source_revision, note.admitted_subject)
        for note in found.items
    ]
    heads = ("note", "state", "version", "source", "revision", "taken in by")
    return _page(found, [note.as_json() for note in found.items], table(heads, rows, empty="No notes."))


def _page(page: Page[Any], items: list[dict[str, Any]], text: str) -> Told:
    if page.next_cursor is not None:
        text += f"\n\nThere may be more: --cursor {page.next_cursor}"
    return Told({"items": items, "next_cursor": page.next_cursor}, text)


def record(options: argparse.Namespace) -> Told:
    """Show one record."""
    note = reads.note_record(caller(options), options.note)
    return Told({"note": note.as_json()}, _record(note))


def _record(note: NoteRecord) -> str:
    told = note.as_json()
    retention = told.pop("retention")
    rows = [(name.replace("_", " "), value) for name, value in told.items()]
    return pairs([*rows, ("retention class", retention["class"]), ("retain until", retention["retain_until"])])


def review(options: argparse.Namespace) -> Told:
    """Show the text of a note to whoever may judge it."""
    seen = reviewing.review(caller(options), options.note)
    promoted = None if seen.promoted is None else {"note": seen.promoted.as_json(), "text": seen.promoted_text}
    lines = [
        f"{_moved(seen.note)}, {seen.note.char_count} characters",
        f"taken in by {seen.note.admitted_subject}, asserted origin {on_one_line(seen.note.asserted_origin or 'none')}",
        *([f"marked below: {found}"] if (found := marked(seen.text)) else []),
        "",
        indented(seen.text),
    ]
    if seen.promoted is not None:
        lines += [
            "",
            f"promoted today, revision {seen.promoted.source_revision}:",
            "",
            indented(seen.promoted_text or ""),
        ]
    if seen.note.state == State.CANDIDATE:
        lines += ["", f"promote it: lychd promote {seen.note.id} --version {seen.note.lifecycle_version}"]
    return Told({"note": seen.note.as_json(), "text": seen.text, "promoted": promoted}, "\n".join(lines))


def promote(options: argparse.Namespace) -> Told:
    """Promote one candidate."""
    return _decided(options, State.PROMOTED, transition.promote)


def archive(options: argparse.Namespace) -> Told:
    """Archive one promoted note."""
    return _decided(options, State.ARCHIVED, transition.archive)


def revoke(options: argparse.Namespace) -> Told:
    """Revoke one note."""
    return _decided(options, State.REVOKED, transition.revoke)


def _decided(options: argparse.Namespace, state: State, decide: Callable[[Caller, Transition], Moved]) -> Told:
    reason = None if options.reason is None else Reason(options.reason)
    change = Transition(options.note, state, options.version, reason)
    moved = decide(caller(options), change)
    text = _moved(moved.note)
    if moved.superseded is not None:
        text += f"\nIt took the place of {_moved(moved.superseded)}"
    superseded = None if moved.superseded is None else moved.superseded.as_json()
    return Told({"note": moved.note.as_json(), "superseded": superseded}, text)


def _moved(note: NoteRecord) -> str:
    where = f"{note.source_key}, revision {note.source_revision}"
    return f"{where}: {note.state}, version {note.lifecycle_version} ({note.id})"


def events(options: argparse.Namespace) -> Told:
    """Tell the events of one note, or follow those of a namespace."""
    if options.note is not None:
        told = reads.note_events(caller(options), options.note)
        return Told({"items": [event.as_json() for event in told]}, _events(told))
    page = reads.namespace_events(caller(options), PageRequest(limit=options.limit, cursor=options.cursor))
    return _page(page, [event.as_json() for event in page.items], _events(page.items))


def _events(told: tuple[EventRecord, ...]) -> str:
    heads = ("at", "note", "from", "to", "version", "cause", "reason", "by")
    rows = [
        (
            canonical.instant(event.created_at),
            event.note_id,
            event.from_state,
            event.to_state,
            event.to_version,
            event.cause,
            event.reason,
            event.subject,
        )
        for event in told
    ]
    return table(heads, rows, empty="Nothing has happened.")
