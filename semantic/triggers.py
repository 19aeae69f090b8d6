"""What the database refuses of generations and derivations, and what it does by itself (specification 5.8).

SQLSTATE  rule
LY001     an identity or a fenced column was changed
LY003     an illegal edge or a wrong step of a version or of the attempt
LY006     a manifest or its digest was changed, or a retired generation came back
LY007     an attempt that may not run or may not be complete: token, deadline, note, generation or vector
"""

from collections.abc import Iterable
from typing import Final

import pgtrigger
from django.db import models

from archive.lifecycle import State as NoteState
from semantic import limits
from semantic.lifecycle import GenerationState, Invalidation, State


def _refuse(rule: str, sqlstate: str) -> str:
    return f"RAISE EXCEPTION '{rule}' USING ERRCODE = '{sqlstate}';"


# The truth that a derivation stands on, read when it moves: nobody can change it meanwhile, the namespace is held.
_STANDS: Final = f"""
    EXISTS (
        SELECT 1 FROM public.archive_note note
         WHERE note.id = NEW.note_id AND note.namespace_id = NEW.namespace_id
           AND note.state = '{NoteState.PROMOTED}' AND note.text IS NOT NULL
           AND note.lifecycle_version = NEW.note_lifecycle_version AND note.text_digest = NEW.text_digest
           AND note.source_revision = NEW.source_revision)
    AND EXISTS (
        SELECT 1 FROM public.semantic_generation generation
         WHERE generation.id = NEW.generation_id AND generation.state = '{GenerationState.ACTIVE}')
"""


class GenerationFence(pgtrigger.Trigger):
    """T-GEN: born active at version 1 with the dimension its manifest names; afterwards it is retired, once."""

    when = pgtrigger.Before
    operation = pgtrigger.Insert | pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        return f"""
            IF TG_OP = 'INSERT' THEN
                IF (NEW.state, NEW.version) IS DISTINCT FROM ('{GenerationState.ACTIVE}', 1) THEN
                    {_refuse("generation_birth", "LY006")}
                END IF;
                IF (NEW.manifest->>'dimensions', NEW.manifest->>'reference')
                   IS DISTINCT FROM (NEW.dimensions::text, NEW.reference) THEN
                    {_refuse("generation_manifest", "LY006")}
                END IF;
                RETURN NEW;
            END IF;
            IF (to_jsonb(NEW) - ARRAY['state', 'version', 'retired_by', 'retired_at'])
               IS DISTINCT FROM (to_jsonb(OLD) - ARRAY['state', 'version', 'retired_by', 'retired_at']) THEN
                {_refuse("generation_manifest", "LY006")}
            END IF;
            IF (OLD.state, NEW.state) IS DISTINCT FROM ('{GenerationState.ACTIVE}', '{GenerationState.RETIRED}') THEN
                {_refuse("generation_edge", "LY006")}
            END IF;
            IF NEW.version <> OLD.version + 1 THEN
                {_refuse("generation_version_step", "LY003")}
            END IF;
            RETURN NEW;
        """


class DerivationIdentity(pgtrigger.Trigger):
    """T-DER-ID: which note in which generation a row stands for never changes."""

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        # Column by column, unlike the other fences: the whole row as JSON would spell the vector out on every step.
        columns = (
            "id",
            "namespace_id",
            "space_id",
            "space_generation",
            "generation_id",
            "note_id",
            "chunk",
            "source_key",
            "source_revision",
            "text_digest",
            "note_lifecycle_version",
            "dimensions",
            "prepared_at",
        )
        new, old = (", ".join(f"{row}.{column}" for column in columns) for row in ("NEW", "OLD"))
        return f"""
            IF ({new}) IS DISTINCT FROM ({old}) THEN
                {_refuse("derivation_identity", "LY001")}
            END IF;
            RETURN NEW;
        """


class DerivationEdge(pgtrigger.Trigger):
    """T-DER-EDGE: born prepared, a derivation moves along the edges of `lifecycle.py`, one row version each.

    Entering `running` takes a fresh token and one attempt more, and never while an older attempt still lives.
    """

    when = pgtrigger.Before
    operation = pgtrigger.Insert | pgtrigger.Update

    def __init__(self, *, name: str, edges: Iterable[tuple[State, State]]) -> None:
        self.edges = sorted(edges)
        super().__init__(name=name)

    def get_func(self, model: models.Model) -> str:
        legal = ", ".join(f"('{start}', '{end}')" for start, end in self.edges)
        return f"""
            IF TG_OP = 'INSERT' THEN
                IF (NEW.state, NEW.attempt, NEW.row_version) IS DISTINCT FROM ('{State.PREPARED}', 0, 1) THEN
                    {_refuse("derivation_birth", "LY003")}
                END IF;
                IF NOT ({_STANDS}) THEN
                    {_refuse("derivation_source", "LY007")}
                END IF;
                RETURN NEW;
            END IF;
            IF (OLD.state, NEW.state) NOT IN ({legal}) THEN
                {_refuse("derivation_edge", "LY003")}
            END IF;
            IF NEW.row_version <> OLD.row_version + 1 THEN
                {_refuse("derivation_version_step", "LY003")}
            END IF;
            IF NEW.attempt - OLD.attempt <> (NEW.state = '{State.RUNNING}')::integer THEN
                {_refuse("derivation_attempt_step", "LY003")}
            END IF;
            IF NEW.state = '{State.RUNNING}' THEN
                IF OLD.state = '{State.RUNNING}' AND OLD.deadline > clock_timestamp() THEN
                    {_refuse("attempt_alive", "LY007")}
                END IF;
                IF NEW.attempt_token IS NOT DISTINCT FROM OLD.attempt_token OR NEW.attempt_token IS NULL THEN
                    {_refuse("attempt_token", "LY007")}
                END IF;
                IF NEW.claimed_at > clock_timestamp() THEN
                    {_refuse("attempt_deadline", "LY007")}
                END IF;
                IF NOT ({_STANDS}) THEN
                    {_refuse("derivation_source", "LY007")}
                END IF;
            END IF;
            IF NEW.receipt IS DISTINCT FROM OLD.receipt AND NEW.state <> '{State.COMPLETE}' THEN
                {_refuse("derivation_receipt", "LY001")}
            END IF;
            RETURN NEW;
        """


class DerivationDone(pgtrigger.Trigger):
    """T-DER-DONE: complete only before the deadline, for a note and a generation that stand, with a vector that may be.

    It has unit length, and nothing but zeros where the manifest says that it is padded.
    """

    when = pgtrigger.Before
    operation = pgtrigger.Update
    declare = [("kept", "integer")]

    def get_func(self, model: models.Model) -> str:
        # pgvector refuses NaN and infinities itself; a zero vector has length 0, and its cosine would be NaN.
        return f"""
            IF NEW.state <> '{State.COMPLETE}' OR OLD.state = '{State.COMPLETE}' THEN
                RETURN NEW;
            END IF;
            IF OLD.deadline IS NULL OR OLD.deadline <= clock_timestamp() THEN
                {_refuse("attempt_expired", "LY007")}
            END IF;
            IF NOT ({_STANDS}) THEN
                {_refuse("derivation_source", "LY007")}
            END IF;
            IF NEW.vector IS NOT NULL AND (
                public.vector_dims(NEW.vector) <> NEW.dimensions
                OR NOT (abs(public.vector_norm(NEW.vector) - 1) <= {limits.L2_TOLERANCE} + 1e-12)
                OR NOT (abs(NEW.l2_norm - public.vector_norm(NEW.vector)) <= 1e-9)) THEN
                {_refuse("derivation_vector", "LY007")}
            END IF;
            SELECT (generation.manifest #>> '{{embed_binding,padding,from}}')::integer INTO kept
              FROM public.semantic_generation generation WHERE generation.id = NEW.generation_id;
            IF kept < NEW.dimensions
               AND public.vector_norm(public.subvector(NEW.vector, kept + 1, NEW.dimensions - kept)) <> 0 THEN
                {_refuse("derivation_padding", "LY007")}
            END IF;
            RETURN NEW;
        """


ENDS: Final = f"""
    state = '{State.INVALIDATED}', row_version = row_version + 1, attempt_token = NULL, claimed_at = NULL,
    deadline = NULL, vector = NULL, vector_digest = NULL, l2_norm = NULL, failure_code = NULL,
    settled_at = clock_timestamp()
"""


class InvalidateNote(pgtrigger.Trigger):
    """T-NOTE-INVALIDATE: a note that leaves `promoted` takes its derivations of all generations with it (R-L-195)."""

    when = pgtrigger.After
    operation = pgtrigger.UpdateOf("state")  # type: ignore[no-untyped-call]

    def get_func(self, model: models.Model) -> str:
        return f"""
            IF OLD.state = '{NoteState.PROMOTED}' AND NEW.state <> '{NoteState.PROMOTED}' THEN
                UPDATE public.semantic_derivation
                   SET {ENDS},
                       invalidation = CASE
                           WHEN NEW.state = '{NoteState.REVOKED}' THEN '{Invalidation.REVOKED}'
                           WHEN NEW.superseded_by_id IS NOT NULL THEN '{Invalidation.SUPERSEDED}'
                           ELSE '{Invalidation.ARCHIVED}' END
                 WHERE note_id = NEW.id AND state <> '{State.INVALIDATED}';
            END IF;
            RETURN NULL;
        """


class InvalidateGeneration(pgtrigger.Trigger):
    """T-GEN-INVALIDATE: a retired generation takes all its derivations with it (R-L-195, spec 5.17 no. 18)."""

    when = pgtrigger.After
    operation = pgtrigger.UpdateOf("state")  # type: ignore[no-untyped-call]

    def get_func(self, model: models.Model) -> str:
        return f"""
            IF OLD.state = '{GenerationState.ACTIVE}' AND NEW.state = '{GenerationState.RETIRED}' THEN
                UPDATE public.semantic_derivation
                   SET {ENDS}, invalidation = '{Invalidation.GENERATION_RETIRED}'
                 WHERE generation_id = NEW.id AND state <> '{State.INVALIDATED}';
            END IF;
            RETURN NULL;
        """
