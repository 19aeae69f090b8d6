"""Notes by the hundred, straight into the tables: postings belong to the database, whatever wrote the note."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

from django.db import connection

from archive.lifecycle import State
from archive.models import Namespace
from archive.transactions import held, host_write


def rows(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, list(values))
        return cursor.fetchall() if cursor.description else []


def retained(key: str, configuration: str = "simple") -> Namespace:
    """A namespace row, as the first intake would have made it."""
    with host_write():
        rows(
            "INSERT INTO archive_namespace (key, profile, owner, policy_revision, classification, text_configuration,"
            " lexical_state, row_version)"
            " VALUES (%s, 'local-public-notes@1', 'alice', '1', 'public', %s::text, 'ready', 1)",
            key,
            configuration,
        )
    return Namespace.objects.get(key=key)


def admitted(
    namespace: Namespace, texts: Sequence[str], number: Callable[[int], UUID] = lambda _: uuid4()
) -> list[UUID]:
    """One candidate a text, each of a source of its own."""
    ids = [number(place) for place in range(len(texts))]
    with held(namespace.key):
        rows(
            "INSERT INTO archive_source (namespace_id, source_key)"
            " SELECT %s::bigint, id::text FROM unnest(%s::uuid[]) AS id",
            namespace.id,
            ids,
        )
        rows(
            # Digests, lengths, times and the policy revision are the database's to fill in.
            "INSERT INTO archive_note (namespace_id, id, source_id, source_revision, kind, text, classification,"
            " retention_class, admitted_subject, state, lifecycle_version)"
            " SELECT source.namespace_id, given.id, source.id, '1', 'note', given.body,"
            " 'public', 'standard', 'alice', 'candidate', 1"
            " FROM unnest(%s::uuid[], %s::text[]) WITH ORDINALITY AS given (id, body, place)"
            " JOIN archive_source AS source"
            "   ON source.namespace_id = %s::bigint AND source.source_key = given.id::text"
            " ORDER BY given.place",
            ids,
            list(texts),
            namespace.id,
        )
        _tell(namespace, ids, None, State.CANDIDATE)
    return ids


def moved(namespace: Namespace, ids: Sequence[UUID], start: State, end: State) -> None:
    """Take all these notes from one state to another in one transaction."""
    with held(namespace.key):
        rows(
            "UPDATE archive_note SET state = %s::text, lifecycle_version = lifecycle_version + 1,"
            " text = CASE WHEN %s::text = 'revoked' THEN NULL ELSE text END WHERE id = ANY(%s::uuid[])",
            end.value,
            end.value,
            list(ids),
        )
        _tell(namespace, ids, start, end)


def promoted(
    namespace: Namespace, texts: Sequence[str], number: Callable[[int], UUID] = lambda _: uuid4()
) -> list[UUID]:
    ids = admitted(namespace, texts, number)
    moved(namespace, ids, State.CANDIDATE, State.PROMOTED)
    return ids


def _tell(namespace: Namespace, ids: Sequence[UUID], start: State | None, end: State) -> None:
    rows(
        "INSERT INTO archive_lifecycle_event"
        " (namespace_id, note_id, from_state, to_state, from_version, to_version, cause, subject, policy_revision)"
        " SELECT namespace_id, id, %s::text, %s::text, lifecycle_version - 1, lifecycle_version, 'explicit', 'alice',"
        " '1' FROM archive_note WHERE id = ANY(%s::uuid[])",
        start and start.value,
        end.value,
        list(ids),
    )


def postings(namespace: Namespace) -> list[tuple[Any, ...]]:
    return rows(
        "SELECT note.id, posting.lexeme, posting.tf, posting.length FROM archive_posting AS posting"
        " JOIN archive_note AS note ON note.note_number = posting.note_number"
        " WHERE posting.namespace_id = %s ORDER BY 1, 2",
        namespace.id,
    )


def truth(namespace: Namespace) -> list[tuple[Any, ...]]:
    """What the postings ought to be, cut anew from the promoted notes."""
    return rows(
        "SELECT note.id, found.lexeme, found.tf,"
        "       (SELECT sum(tf)::integer FROM archive_lexemes(%s::text::regconfig, note.text, false))"
        " FROM archive_note AS note CROSS JOIN archive_lexemes(%s::text::regconfig, note.text, true) AS found"
        " WHERE note.namespace_id = %s AND note.state = 'promoted' ORDER BY 1, 2",
        namespace.text_configuration,
        namespace.text_configuration,
        namespace.id,
    )


def true_figures(namespace: Namespace) -> tuple[int, int]:
    """What the corpus figures ought to be."""
    [(notes, total)] = rows(
        "SELECT count(*), coalesce(sum((SELECT sum(tf) FROM archive_lexemes(%s::text::regconfig, text, false))), 0)"
        " FROM archive_note WHERE namespace_id = %s AND state = 'promoted'",
        namespace.text_configuration,
        namespace.id,
    )
    return notes, int(total)


@contextmanager
def reconfigured(namespace: Namespace, configuration: str) -> Iterator[None]:
    """Change the text configuration as a binding migration does, and stay inside its transaction for the block."""
    with held(namespace.key):
        rows(
            "INSERT INTO archive_binding_migration (namespace_id, id, old_owner, new_owner, old_policy_revision,"
            " new_policy_revision, old_text_configuration, new_text_configuration, old_binding_digest,"
            " new_binding_digest, actor_subject, reason)"
            " SELECT id, gen_random_uuid(), owner, owner, policy_revision, policy_revision, text_configuration,"
            " %s::text, binding_digest, binding_digest, 'otto', 'test' FROM archive_namespace WHERE id = %s",
            configuration,
            namespace.id,
        )
        rows("SELECT set_config('lychd.binding_migration', %s::text, true)", str(namespace.id))
        rows(
            "UPDATE archive_namespace SET text_configuration = %s::text, lexical_state = 'rebuilding',"
            " row_version = row_version + 1 WHERE id = %s",
            configuration,
            namespace.id,
        )
        yield
