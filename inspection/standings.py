"""Where many chosen notes stand now, for whoever is about to decide on them together."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from archive.authority import Action, Caller
from archive.models import Namespace, Note
from archive.records import METADATA, NoteRecord
from archive.visible import visible
from inspection.reads import _read


@dataclass(frozen=True, slots=True)
class Standing:
    """One note as it stands, and how many characters of its text nobody would see."""

    note: NoteRecord
    hidden: int


def standings(caller: Caller, note_ids: Collection[UUID]) -> dict[UUID, Standing]:
    """Look these notes up for whoever may review them; their texts are counted through, and none leaves."""
    keys = {"list": "standings", "note_ids": sorted(str(note_id) for note_id in note_ids)}

    def look(namespace: Namespace | None) -> dict[UUID, Standing]:
        if namespace is None:
            return {}
        rows = Note.objects.select_related("source").only(*METADATA, "text")
        return {
            note.id: Standing(NoteRecord.of(note), visible(note.text or "").hidden)
            for note in rows.filter(namespace=namespace, id__in=note_ids)
        }

    return _read(caller, Action.REVIEW, keys, look)
