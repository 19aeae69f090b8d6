"""What the rows of the archive say of themselves, computed again by the archive's own functions.

The triggers see to it when a row is written; this finds what was written past them, by the owner or into the files.
"""

from collections.abc import Iterator
from typing import Final

from django.db import DEFAULT_DB_ALIAS, connections

from archive import canonical
from archive.bindings import Binding
from archive.lifecycle import State
from archive.models import BindingMigration, IntakeRequest, Namespace, Note
from archive.records import NUMBER
from archive.requests import material

_AT_ONCE: Final = 500

# Steps that do not lead from birth to where the note stands, one version each, in the order of their numbers.
_STEPS: Final = """
    WITH walked AS (
        SELECT e.note_id, e.id, e.from_version, e.to_version, e.from_state, e.to_state, e.subject,
               lag(e.to_state) OVER walk AS stood, lag(e.to_version) OVER walk AS version,
               lag(e.id) OVER walk AS earlier,
               last_value(e.id) OVER (walk ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) = e.id AS latest
        FROM archive_lifecycle_event e WINDOW walk AS (PARTITION BY e.note_id ORDER BY e.to_version)
    )
    SELECT n.id::text FROM archive_note n LEFT JOIN walked w ON w.note_id = n.id
    GROUP BY n.id HAVING NOT coalesce(bool_and(
        coalesce(w.version, 0) = w.from_version AND w.from_state IS NOT DISTINCT FROM w.stood
        AND coalesce(w.earlier < w.id, true)
        AND (w.from_version > 0 OR w.subject = n.admitted_subject)
        AND (NOT w.latest OR (w.to_state, w.to_version) = (n.state, n.lifecycle_version))), false)
    ORDER BY 1
"""


def notes(limit: int | None) -> Iterator[tuple[str, bool]]:
    """The newest notes, and whether text, lengths and digests belong together; all of them without a limit."""
    rows = Note.objects.select_related("source", "namespace").order_by(NUMBER.desc())
    for note in rows[:limit] if limit else rows.iterator(chunk_size=_AT_ONCE):
        yield str(note.id), _is_whole(note)


def _is_whole(note: Note) -> bool:
    if note.text is not None and (note.text_digest, note.char_count, note.byte_count) != (
        canonical.text_digest(note.text),
        len(note.text),
        len(note.text.encode("utf-8")),
    ):
        return False
    # The origin has left a tombstone, and with it what the digest was made of.
    return note.text is None or canonical.same(
        canonical.digest_of(canonical.INTAKE_MATERIAL, _material(note)), note.material_digest
    )


def _material(note: Note) -> dict[str, object]:
    return material(
        note,
        namespace=note.namespace.key,
        source_key=note.source.source_key,
        text_digest=note.text_digest,
        char_count=note.char_count,
        classification=note.classification,
    )


def requests(limit: int | None) -> Iterator[tuple[str, bool]]:
    """The newest requests, and whether each carries the digests of what its note was taken in as, while it says so."""
    rows = IntakeRequest.objects.select_related("note__source", "note__namespace").defer("note__text").order_by("-id")
    for row in rows[:limit] if limit else rows.iterator(chunk_size=_AT_ONCE):
        asked = {"request_id": row.request_id, "subject": row.subject, "material": _material(row.note)}
        digest = canonical.digest_of(canonical.INTAKE_REQUEST, asked)
        whole = row.note.state == State.REVOKED or canonical.same(digest, row.request_digest)
        yield row.request_id, whole and row.material_digest == row.note.material_digest


def bindings() -> Iterator[tuple[str, bool]]:
    """Every namespace and every change of one, and whether the digest is that of the binding it names."""
    for namespace in Namespace.objects.order_by("key"):
        bound = Binding(namespace.key, namespace.owner, namespace.policy_revision, profile=namespace.profile)
        yield namespace.key, bound.digest == namespace.binding_digest
    for record in BindingMigration.objects.select_related("namespace").order_by("created_at", "id"):
        new = Binding(record.namespace.key, record.new_owner, record.new_policy_revision)
        old = Binding(record.namespace.key, record.old_owner, record.old_policy_revision)
        yield str(record.id), (old.digest, new.digest) == (record.old_binding_digest, record.new_binding_digest)


def strayed() -> list[str]:
    """Notes whose events do not lead from their birth to where they stand."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_STEPS)
        return [note for (note,) in cursor.fetchall()]
