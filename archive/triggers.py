"""What the database itself refuses, whatever code path a write comes from (specification 5.6).

Each class is one rule with its own SQLSTATE. Functions are written once here and become migrations through
django-pgtrigger; a `post_migrate` step neutralises its escape hatch and pins every search path (lychd/roles.py).

SQLSTATE  rule
LY001     an identity or a fenced column was changed, or a row names one of another namespace
LY002     a note was born otherwise than as a candidate at version 1
LY003     an illegal edge, a wrong version step, or a transition and its event that do not agree
LY004     a row was deleted
LY005     the namespace row is not held by this transaction
LY010     an append-only row was changed
LY011     a receipt is not what it says of itself: its form, its digests, its row, or what it selected
LY012     a row says something of itself that is not so: a form, digest, length, time or binding (archive/truths.py)
"""

from collections.abc import Iterable

import pgtrigger
from django.db import models

from archive import canonical
from archive.forms import ReceiptForm
from archive.lifecycle import State


def refuse(rule: str, sqlstate: str) -> str:
    """Write the refusal of one rule."""
    return f"RAISE EXCEPTION '{rule}' USING ERRCODE = '{sqlstate}';"


class NamespaceLock(pgtrigger.Trigger):
    """T-NSLOCK: a write needs the namespace row held by its own transaction, or takes it at once, or is refused.

    Under a shared hold only a receipt may be inserted, even where the row could be taken.
    """

    when = pgtrigger.Before
    operation = pgtrigger.Insert | pgtrigger.Update | pgtrigger.Delete
    declare = [("held_id", "bigint")]

    def get_func(self, model: models.Model) -> str:
        return f"""
            IF TG_OP = 'DELETE' THEN held_id := OLD.namespace_id; ELSE held_id := NEW.namespace_id; END IF;
            IF TG_TABLE_NAME = 'archive_recall' AND TG_OP = 'INSERT' THEN
                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR SHARE SKIP LOCKED;
            ELSE
                IF current_setting('lychd.hold', true) = 'shared' THEN
                    {refuse("namespace_held_shared", "LY005")}
                END IF;
                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR UPDATE SKIP LOCKED;
            END IF;
            IF NOT FOUND THEN
                {refuse("namespace_not_held", "LY005")}
            END IF;
            IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
            RETURN NEW;
        """


class SpaceOfRow(pgtrigger.Trigger):
    """Fill the space columns of a new row from its namespace; what the caller sent is not looked at."""

    when = pgtrigger.Before
    operation = pgtrigger.Insert

    def get_func(self, model: models.Model) -> str:
        return """
            SELECT space_id, space_generation INTO NEW.space_id, NEW.space_generation
              FROM public.archive_namespace WHERE id = NEW.namespace_id;
            RETURN NEW;
        """


class SpaceOfNamespace(pgtrigger.Trigger):
    """Put a new namespace into the one shared space that the migrations made."""

    when = pgtrigger.Before
    operation = pgtrigger.Insert

    def get_func(self, model: models.Model) -> str:
        return """
            SELECT id, generation INTO NEW.space_id, NEW.space_generation
              FROM public.archive_memory_space WHERE kind = 'team_shared';
            RETURN NEW;
        """


class BindingFence(pgtrigger.Trigger):
    """T-NSBIND: what a namespace is never changes; its binding changes with a migration row of this transaction only.

    A new text configuration brings the lexical state to `rebuilding` with it; otherwise an update moves the binding or
    the lexical state, never both, and only the rebuild moves the second.
    """

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        return f"""
            IF (NEW.id, NEW.key, NEW.profile, NEW.space_id, NEW.space_generation, NEW.classification, NEW.created_at)
               IS DISTINCT FROM
               (OLD.id, OLD.key, OLD.profile, OLD.space_id, OLD.space_generation, OLD.classification, OLD.created_at)
               OR NEW.row_version <> OLD.row_version + 1 THEN
                {refuse("namespace_identity", "LY001")}
            END IF;
            IF (NEW.owner, NEW.policy_revision, NEW.binding_digest, NEW.text_configuration)
               IS DISTINCT FROM (OLD.owner, OLD.policy_revision, OLD.binding_digest, OLD.text_configuration) THEN
                IF current_setting('lychd.binding_migration', true) IS DISTINCT FROM OLD.id::text
                   OR NOT EXISTS (
                    SELECT 1 FROM public.archive_binding_migration m
                     WHERE m.namespace_id = OLD.id AND m.transaction_id = pg_current_xact_id()
                       AND m.new_owner = NEW.owner AND m.new_policy_revision = NEW.policy_revision
                       AND m.new_binding_digest = NEW.binding_digest
                       AND m.new_text_configuration = NEW.text_configuration) THEN
                    {refuse("namespace_binding", "LY001")}
                END IF;
                IF NEW.lexical_state IS DISTINCT FROM
                   (CASE WHEN NEW.text_configuration = OLD.text_configuration THEN OLD.lexical_state
                         ELSE 'rebuilding' END)
                   OR NEW.lexer_fingerprint IS DISTINCT FROM OLD.lexer_fingerprint THEN
                    {refuse("namespace_lexical_state", "LY001")}
                END IF;
            ELSIF (NEW.lexical_state, NEW.lexer_fingerprint)
                  IS DISTINCT FROM (OLD.lexical_state, OLD.lexer_fingerprint)
                  AND current_setting('lychd.lexical_rebuild', true) IS DISTINCT FROM OLD.id::text THEN
                {refuse("namespace_lexical_state", "LY001")}
            END IF;
            RETURN NEW;
        """


class NoDelete(pgtrigger.Trigger):
    """T-NODEL: nothing of the archive is ever deleted by a row."""

    when = pgtrigger.Before
    operation = pgtrigger.Delete

    def get_func(self, model: models.Model) -> str:
        return refuse("no_delete", "LY004") + " RETURN OLD;"


class NoUpdate(pgtrigger.Trigger):
    """T-APPEND: a row of this table is written once."""

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        return refuse("append_only", "LY010") + " RETURN NEW;"


class SameNamespace(pgtrigger.Trigger):
    """What a row of a namespace names belongs to that namespace too; nothing depends on rows of another one (0.13)."""

    when = pgtrigger.Before
    operation = pgtrigger.Insert | pgtrigger.Update

    def __init__(self, *, name: str, names: dict[str, str]) -> None:
        self.names = names
        super().__init__(name=name)

    def get_func(self, model: models.Model) -> str:
        # The named row has to be there already, else it could follow in this transaction under another namespace. It is
        # looked for by its identity alone, so that no statistics lead the planner to any other index.
        checks = "".join(
            f"""
            IF NEW.{column} IS NOT NULL AND NEW.{column} IS DISTINCT FROM OLD.{column} AND NEW.namespace_id
               IS DISTINCT FROM (SELECT named.namespace_id FROM public.{table} named WHERE named.id = NEW.{column}) THEN
                {refuse("other_namespace", "LY001")}
            END IF;"""
            for column, table in sorted(self.names.items())
        )
        return f"{checks}\n            RETURN NEW;\n        "


class NoteIdentity(pgtrigger.Trigger):
    """T-NOTE-ID: a revision is immutable; only a step moves its state, that state's time, its words and its successor.

    While the state stays, so does everything else: the times of a tombstone are evidence.
    """

    when = pgtrigger.Before
    operation = pgtrigger.Update
    declare = [("moving", "text[]")]

    def get_func(self, model: models.Model) -> str:
        # Written over the whole row, so that a column added later is fenced from its first day. State, version and
        # words have rules of their own.
        return f"""
            moving := ARRAY['state', 'lifecycle_version', 'text', 'asserted_origin'];
            IF NEW.state <> OLD.state THEN
                moving := moving || ARRAY['state_changed_at', NEW.state || '_at'];
            END IF;
            IF NEW.state = '{State.ARCHIVED}' AND OLD.state <> '{State.ARCHIVED}' THEN
                moving := moving || ARRAY['superseded_by_id'];
            END IF;
            IF (to_jsonb(NEW) - moving) IS DISTINCT FROM (to_jsonb(OLD) - moving) THEN
                {refuse("note_identity", "LY001")}
            END IF;
            RETURN NEW;
        """


class NoteText(pgtrigger.Trigger):
    """T-NOTE-TEXT: text and origin change once, to nothing, in the very update that revokes the note."""

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        return f"""
            IF (NEW.text, NEW.asserted_origin) IS DISTINCT FROM (OLD.text, OLD.asserted_origin)
               AND NOT (NEW.text IS NULL AND NEW.asserted_origin IS NULL
                        AND NEW.state = '{State.REVOKED}' AND OLD.state <> '{State.REVOKED}') THEN
                {refuse("note_text", "LY001")}
            END IF;
            RETURN NEW;
        """


class LegalEdge(pgtrigger.Trigger):
    """T-NOTE-EDGE: born a candidate at version 1, a note moves along the edges of `lifecycle.py`, one step each."""

    when = pgtrigger.Before
    operation = pgtrigger.Insert | pgtrigger.Update

    def __init__(self, *, name: str, edges: Iterable[tuple[State, State]]) -> None:
        self.edges = sorted(edges)
        super().__init__(name=name)

    def get_func(self, model: models.Model) -> str:
        legal = ", ".join(f"('{start}', '{end}')" for start, end in self.edges)
        return f"""
            IF TG_OP = 'INSERT' THEN
                IF (NEW.state, NEW.lifecycle_version) IS DISTINCT FROM ('{State.CANDIDATE}', 1) THEN
                    {refuse("note_birth", "LY002")}
                END IF;
                RETURN NEW;
            END IF;
            IF NEW.state = OLD.state THEN
                IF NEW.lifecycle_version <> OLD.lifecycle_version THEN
                    {refuse("note_version_step", "LY003")}
                END IF;
                RETURN NEW;
            END IF;
            IF (OLD.state, NEW.state) NOT IN ({legal}) THEN
                {refuse("note_edge", "LY003")}
            END IF;
            IF NEW.lifecycle_version <> OLD.lifecycle_version + 1 THEN
                {refuse("note_version_step", "LY003")}
            END IF;
            RETURN NEW;
        """


class NoteHasItsEvent(pgtrigger.Trigger):
    """T-NOTE-EVENT: at commit each birth and each change of state has the event of the same version.

    The event of a birth names who took the note in; that of an archiving names the successor, where there is one.
    """

    when = pgtrigger.After
    operation = pgtrigger.Insert | pgtrigger.Update
    timing = pgtrigger.Deferred
    declare = [("came_from", "text")]

    def get_func(self, model: models.Model) -> str:
        return f"""
            IF TG_OP = 'UPDATE' THEN
                IF NEW.state = OLD.state THEN RETURN NULL; END IF;
                came_from := OLD.state;
            END IF;
            IF NOT EXISTS (
                SELECT 1 FROM public.archive_lifecycle_event e
                 WHERE e.note_id = NEW.id AND e.to_version = NEW.lifecycle_version AND e.to_state = NEW.state
                   AND e.from_state IS NOT DISTINCT FROM came_from
                   AND (TG_OP = 'UPDATE' OR e.subject = NEW.admitted_subject)
                   AND e.caused_by_note_id IS NOT DISTINCT FROM
                       (CASE NEW.state WHEN '{State.ARCHIVED}' THEN NEW.superseded_by_id END)) THEN
                {refuse("note_without_event", "LY003")}
            END IF;
            RETURN NULL;
        """


class EventIsTrue(pgtrigger.Trigger):
    """T-EVENT-TRUE: at commit the note stands where its event says, or has passed through it in this transaction.

    What is named as the cause of an archiving has been promoted in this transaction.
    """

    when = pgtrigger.After
    operation = pgtrigger.Insert
    timing = pgtrigger.Deferred

    def get_func(self, model: models.Model) -> str:
        return f"""
            IF NOT EXISTS (
                SELECT 1 FROM public.archive_note n
                 WHERE n.id = NEW.note_id AND n.namespace_id = NEW.namespace_id
                   AND ((n.lifecycle_version = NEW.to_version AND n.state = NEW.to_state)
                        OR (n.lifecycle_version > NEW.to_version AND EXISTS (
                            SELECT 1 FROM public.archive_lifecycle_event e
                             WHERE e.note_id = NEW.note_id AND e.to_version = NEW.to_version + 1
                               AND e.from_state = NEW.to_state)))) THEN
                {refuse("event_without_transition", "LY003")}
            END IF;
            IF NEW.caused_by_note_id IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM public.archive_lifecycle_event e
                 WHERE e.note_id = NEW.caused_by_note_id AND e.to_state = '{State.PROMOTED}'
                   AND e.created_at >= transaction_timestamp()) THEN
                {refuse("event_cause", "LY003")}
            END IF;
            RETURN NULL;
        """


class GrantFence(pgtrigger.Trigger):
    """T-GRANT: a grant changes once, when it is revoked."""

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        return f"""
            IF (to_jsonb(NEW) - ARRAY['revoked_at']) IS DISTINCT FROM (to_jsonb(OLD) - ARRAY['revoked_at'])
               OR OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL THEN
                {refuse("grant_fence", "LY001")}
            END IF;
            RETURN NEW;
        """


class PrincipalFence(pgtrigger.Trigger):
    """A subject stays the subject it was, and stands for one user for good, even after that user is gone.

    The database notes when a principal is first linked; nothing unlinks that, so no second user comes by way of none.
    """

    when = pgtrigger.Before
    operation = pgtrigger.Insert | pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        return f"""
            IF TG_OP = 'INSERT' THEN
                NEW.linked_at := CASE WHEN NEW.user_id IS NOT NULL THEN clock_timestamp() END;
                RETURN NEW;
            END IF;
            IF (NEW.id, NEW.subject, NEW.created_at, NEW.linked_at)
               IS DISTINCT FROM (OLD.id, OLD.subject, OLD.created_at, OLD.linked_at)
               OR (OLD.linked_at IS NOT NULL AND NEW.user_id IS NOT NULL
                   AND NEW.user_id IS DISTINCT FROM OLD.user_id) THEN
                {refuse("principal_fence", "LY001")}
            END IF;
            IF NEW.user_id IS NOT NULL AND OLD.linked_at IS NULL THEN
                NEW.linked_at := clock_timestamp();
            END IF;
            RETURN NEW;
        """


class TokenFence(pgtrigger.Trigger):
    """A token only gets less: it is revoked once, its end is never put later, no namespace is added to it."""

    when = pgtrigger.Before
    operation = pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        moving = "ARRAY['revoked_at', 'last_used_at', 'expires_at', 'namespaces']"
        return f"""
            IF (to_jsonb(NEW) - {moving}) IS DISTINCT FROM (to_jsonb(OLD) - {moving})
               OR NEW.expires_at > OLD.expires_at
               OR (OLD.namespaces IS NOT NULL AND (NEW.namespaces <@ OLD.namespaces) IS NOT TRUE)
               OR (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at) THEN
                {refuse("token_fence", "LY001")}
            END IF;
            RETURN NEW;
        """


class BindingHistory(pgtrigger.Trigger):
    """Every form of a configured binding is kept in the history, by the database."""

    when = pgtrigger.After
    operation = pgtrigger.Insert | pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        return """
            INSERT INTO public.lychd_binding_history
                (namespace_key, owner, policy_revision, text_configuration, generation, second_person,
                 configured_by, configured_at, disabled_at)
            VALUES (NEW.namespace_key, NEW.owner, NEW.policy_revision, NEW.text_configuration, NEW.generation,
                    NEW.second_person, NEW.configured_by, NEW.configured_at, NEW.disabled_at);
            RETURN NULL;
        """


class ReceiptTruth(pgtrigger.Trigger):
    """T-RECEIPT: a receipt of one schema has its closed form, agrees with its row, and selected what is promoted now.

    Form, request digest and seal are computed again from what it says (archive/forms.py).
    """

    when = pgtrigger.Before
    operation = pgtrigger.Insert

    def __init__(self, *, name: str, form: ReceiptForm) -> None:
        self.form = form
        super().__init__(name=name)

    def get_func(self, model: models.Model) -> str:
        repeated = ("request_id", "request_digest", "receipt_digest", "subject", "purpose")
        row = ", ".join(
            (*(f"NEW.{name}" for name in repeated), "NEW.id::text", canonical.sql_instant("NEW.created_at"))
        )
        told = ", ".join(f"NEW.receipt ->> '{name}'" for name in (*repeated, "receipt_id", "created_at"))
        return f"""
            IF NEW.schema <> {self.form.schema} THEN RETURN NEW; END IF;
            IF NOT coalesce({self.form.sql("NEW.receipt")}, false) THEN
                {refuse("receipt_form", "LY011")}
            END IF;
            IF ({row}) IS DISTINCT FROM ({told}) THEN
                {refuse("receipt_row", "LY011")}
            END IF;
            IF NEW.created_at NOT BETWEEN transaction_timestamp() AND clock_timestamp() THEN
                {refuse("receipt_time", "LY011")}
            END IF;
            IF NOT EXISTS (
                SELECT 1 FROM public.archive_namespace n
                 WHERE n.id = NEW.namespace_id
                   AND (n.key, n.profile, n.owner, n.policy_revision)
                       = (NEW.receipt ->> 'namespace', NEW.receipt ->> 'profile', NEW.receipt ->> 'owner',
                          NEW.receipt ->> 'policy_revision')) THEN
                {refuse("receipt_binding", "LY011")}
            END IF;
            IF EXISTS (
                SELECT 1 FROM jsonb_array_elements(NEW.receipt -> 'selected') AS chosen (note)
                 WHERE NOT EXISTS (
                    SELECT 1 FROM public.archive_note n JOIN public.archive_source s ON s.id = n.source_id
                     WHERE n.id = (note ->> 'note_id')::uuid AND n.namespace_id = NEW.namespace_id
                       AND n.state = '{State.PROMOTED}'
                       AND (n.lifecycle_version::text, n.text_digest, n.char_count::text, n.source_revision,
                            s.source_key)
                           = (note ->> 'lifecycle_version', note ->> 'text_digest', note ->> 'char_count',
                              note ->> 'source_revision', note ->> 'source_key'))) THEN
                {refuse("receipt_selection", "LY011")}
            END IF;
            RETURN NEW;
        """


def of_memory(*, spaced: bool = False) -> list[pgtrigger.Trigger]:
    """The rules of every table with a namespace column; the lock fires first, by its name.

    `spaced` says that a rule of the table's own fills in the space.
    """
    space = [] if spaced else [SpaceOfRow(name="space")]
    return [NamespaceLock(name="a_nslock"), *space, NoDelete(name="nodelete")]


def of_append_only_memory(*, spaced: bool = False) -> list[pgtrigger.Trigger]:
    """The same for tables whose rows are written once."""
    return [*of_memory(spaced=spaced), NoUpdate(name="append")]
