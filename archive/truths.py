"""What a row says of itself is so: the database makes it, or checks it where a statement brings it along (LY012).

What is left out is filled in, and what is wrong is refused by its name. Digests are those of archive/canonical.py,
written in SQL; a time lies within the transaction that writes it. The rules of the tables that every intake writes fill
in the space too, since they look at the namespace anyway.
"""

import re
from collections.abc import Mapping
from typing import Final

import pgtrigger
from django.db import models

from archive import canonical, limits
from archive.lifecycle import LexicalState, State
from archive.triggers import refuse

RULE: Final = "LY012"

_IDENTIFIER: Final = limits.IDENTIFIER_PATTERN
_ADDRESS_KEY: Final = limits.ADDRESS_KEY_PATTERN
_WORDS: Final = limits.TEXT_CONFIGURATION_PATTERN


def _class(points: str) -> str:
    """Write a list of code points and ranges as the inside of a character class; no text holds the first."""
    return re.sub("([0-9A-F]+) ?", lambda code: _escape(max(1, int(code[1], 16))), points)


def _escape(point: int) -> str:
    short = f"{point:04X}"
    return f"\\u{short}" if len(short) <= len("FFFF") else f"\\U{point:08X}"


def unless(condition: str, rule: str) -> str:
    """Refuse where a condition does not hold, or is not known to."""
    return f"IF NOT coalesce({condition}, false) THEN {refuse(rule, RULE)} END IF;"


def formed(columns: Mapping[str, str], rule: str) -> str:
    """Refuse a column of another form; a null is the business of its column."""
    tests = " AND ".join(_matches(f"NEW.{column}", pattern) for column, pattern in columns.items())
    return f"IF NOT ({tests}) THEN {refuse(rule, RULE)} END IF;"


def _matches(text: str, pattern: str) -> str:
    """Write whether a text has one of the forms of `limits`: letters up to a length.

    The length is asked for itself: a counted repetition is matched many times slower, and goes to 255 at most.
    """
    letters, _, most = pattern.removeprefix("^").removesuffix("\\Z").rstrip("}").rpartition("{0,")
    return f"({text} ~ '^{letters}*\\Z' AND length({text}) <= {int(most) + 1})"


def filled(column: str, value: str, rule: str, made: str = "made") -> str:
    """Refuse another value than this; one that is left out is filled in. `made` is a variable of its type."""
    return f"""
            {made} := {value};
            IF NEW.{column} <> {made} THEN {refuse(rule, RULE)} END IF;
            NEW.{column} := {made};"""


def stamped(column: str, rule: str) -> str:
    """Refuse a time outside this transaction; one that is left out is now."""
    return f"""
            NEW.{column} := coalesce(NEW.{column}, clock_timestamp());
            IF NEW.{column} NOT BETWEEN transaction_timestamp() AND clock_timestamp() THEN
                {refuse(rule, RULE)}
            END IF;"""


def random(column: str, rule: str) -> str:
    """Refuse an identity that is not drawn at random, or does not look so."""
    return unless(f"uuid_extract_version(NEW.{column}) = 4", rule)


def instant(moment: str) -> str:
    """Write the canonical JSON of a time, or of none."""
    return f"coalesce('\"' || {canonical.sql_instant(moment)} || '\"', 'null')"


def quoted(text: str) -> str:
    """Write the canonical JSON of a text that holds nothing to escape."""
    return f"'\"' || {text} || '\"'"


def material(note: str, source_key: str, namespace: str) -> str:
    """Write the canonical JSON of what a note was taken in as (`archive.requests.material`)."""
    # All of them are of a form in which nothing is escaped, and quoting alone costs a tenth.
    retention = {"class": quoted(f"{note}.retention_class"), "retain_until": instant(f"{note}.retain_until")}
    return canonical.sql_object(
        {
            "namespace": quoted(namespace),
            "source_key": quoted(source_key),
            "asserted_origin": f"coalesce({quoted(f'{note}.asserted_origin')}, 'null')",
            **{name: quoted(f"{note}.{name}") for name in ("source_revision", "kind", "text_digest", "classification")},
            **{name: f"{note}.{name}::text" for name in ("char_count", "byte_count")},
            "retention": canonical.sql_object(retention),
            "observed_at": instant(f"{note}.observed_at"),
        }
    )


def binding(row: str, prefix: str = "", namespace: str | None = None, profile: str | None = None) -> str:
    """Write the digest of the binding that a row names."""
    members = {
        "profile": profile or f"{row}.profile",
        "namespace": namespace or f"{row}.key",
        "owner": f"{row}.{prefix}owner",
        "policy_revision": f"{row}.{prefix}policy_revision",
    }
    return canonical.sql_digest(
        canonical.BINDING, canonical.sql_object({name: canonical.sql_string(at) for name, at in members.items()})
    )


class Truth(pgtrigger.Trigger):
    """The rule of one table, after every other of its rules: its name comes last."""

    when = pgtrigger.Before
    operation = pgtrigger.Insert
    declare = [("made", "text")]

    def __init__(self) -> None:
        super().__init__(name="truth")


class NamespaceTruth(Truth):
    """A namespace is born ready, at version 1, under the digest of its binding and the fingerprint of its words."""

    operation = pgtrigger.Insert | pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        fingerprint = "public.archive_lexer_fingerprint(NEW.text_configuration::regconfig)"
        named = {"key": _ADDRESS_KEY, "owner": _IDENTIFIER, "policy_revision": _IDENTIFIER}
        return f"""
            {formed({**named, "text_configuration": _WORDS}, "namespace_form")}
            {unless(f"NEW.profile = '{limits.PROFILE}'", "namespace_form")}
            IF TG_OP = 'INSERT' THEN
                {unless(f"(NEW.lexical_state, NEW.row_version) = ('{LexicalState.READY}', 1)", "namespace_birth")}
                {stamped("created_at", "namespace_time")}
            END IF;
            {filled("binding_digest", binding("NEW"), "namespace_digest")}
            IF TG_OP = 'INSERT' THEN
                {filled("lexer_fingerprint", fingerprint, "namespace_fingerprint")}
            ELSIF NEW.lexer_fingerprint <> OLD.lexer_fingerprint
                  AND NEW.lexer_fingerprint <> {fingerprint} THEN
                {refuse("namespace_fingerprint", RULE)}
            END IF;
            RETURN NEW;
        """


class SourceTruth(Truth):
    """A source has a key that is one, and the time of its transaction."""

    def get_func(self, model: models.Model) -> str:
        return f"""
            {formed({"source_key": _IDENTIFIER}, "source_form")}
            {stamped("created_at", "source_time")}
            RETURN NEW;
        """


class NoteTruth(Truth):
    """T-NOTE-TRUTH: digests, lengths and form are those of the text, the binding is in force, and times are now."""

    operation = pgtrigger.Insert | pgtrigger.UpdateOf("state")  # type: ignore[no-untyped-call]
    declare = [
        *(("made", "text"), ("counted", "integer"), ("reached", "timestamptz")),
        *(("source_key", "text"), ("namespace_key", "text"), ("policy", "text")),
    ]

    def get_func(self, model: models.Model) -> str:
        ended = (State.PROMOTED, State.ARCHIVED, State.REVOKED)
        reached = " ".join(f"WHEN '{state}' THEN NEW.{state}_at" for state in ended)
        entered = " ".join(f"WHEN '{state}' THEN NEW.{state}_at := NEW.state_changed_at;" for state in ended)
        born = " AND ".join(f"NEW.{state}_at IS NULL" for state in ended)
        identifiers = dict.fromkeys(("source_revision", "admitted_subject"), _IDENTIFIER)
        kinds = dict.fromkeys(("kind", "retention_class"), limits.KIND_PATTERN)
        times = " AND ".join(
            f"coalesce(NEW.{column} BETWEEN '0001-01-01T00:00:00Z'::timestamptz"
            f" AND '9999-12-31T23:59:59.999999Z'::timestamptz, true)"
            for column in ("retain_until", "observed_at")
        )
        digest = canonical.sql_digest(canonical.TEXT, "NEW.text")
        taken = canonical.sql_digest(canonical.INTAKE_MATERIAL, material("NEW", "source_key", "namespace_key"))
        return f"""
            IF TG_OP = 'UPDATE' THEN
                IF NEW.state = OLD.state THEN RETURN NEW; END IF;
                reached := CASE NEW.state {reached} END;
                IF reached IS NULL THEN
                    IF NEW.state_changed_at = OLD.state_changed_at THEN
                        NEW.state_changed_at := clock_timestamp();
                    END IF;
                    CASE NEW.state {entered} END CASE;
                ELSIF NEW.state_changed_at <> reached THEN
                    {refuse("note_time", RULE)}
                END IF;
                {stamped("state_changed_at", "note_time")}
                IF NEW.superseded_by_id IS DISTINCT FROM OLD.superseded_by_id AND NOT EXISTS (
                    SELECT 1 FROM public.archive_note n
                     WHERE n.id = NEW.superseded_by_id AND n.source_id = NEW.source_id AND n.id <> NEW.id) THEN
                    {refuse("note_successor", RULE)}
                END IF;
                RETURN NEW;
            END IF;
            {random("id", "note_identity_form")}
            {formed({**identifiers, **kinds}, "note_form")}
            {formed({"asserted_origin": limits.REFERENCE_PATTERN}, "note_form")}
            {unless(times, "note_form")}
            {unless(f"NEW.superseded_by_id IS NULL AND {born}", "note_birth_times")}
            {stamped("created_at", "note_time")}
            {stamped("state_changed_at", "note_time")}
            {filled("char_count", "length(NEW.text)", "note_length", "counted")}
            {filled("byte_count", "octet_length(NEW.text)", "note_length", "counted")}
            IF NEW.text !~ '[^{_class(limits.BLANKS)}]' OR (NEW.byte_count > NEW.char_count
               AND NEW.text ~ '[{_class(limits.MARKS)}]{{{limits.MARKS_IN_A_ROW_MAX + 1}}}') THEN
                {refuse("note_text_form", RULE)}
            END IF;
            {filled("text_digest", digest, "note_digest")}
            SELECT s.source_key, n.key, n.policy_revision, n.space_id, n.space_generation
              INTO source_key, namespace_key, policy, NEW.space_id, NEW.space_generation
              FROM public.archive_source s JOIN public.archive_namespace n ON n.id = s.namespace_id
             WHERE s.id = NEW.source_id;
            {filled("policy_revision", "policy", "note_binding")}
            {filled("material_digest", taken, "note_material")}
            RETURN NEW;
        """


class EventTruth(Truth):
    """T-EVENT-TRUTH: an event is numbered by the database, under the hold, and names the binding in force.

    The number is drawn here and not by the column: a default is taken before the hold, and a follower of a cursor
    would be past it when it appears.
    """

    def get_func(self, model: models.Model) -> str:
        return f"""
            NEW.id := nextval('public.archive_lifecycle_event_id_seq');
            {formed({"subject": _IDENTIFIER}, "event_form")}
            {stamped("created_at", "event_time")}
            SELECT n.policy_revision, n.space_id, n.space_generation
              INTO made, NEW.space_id, NEW.space_generation
              FROM public.archive_namespace n WHERE n.id = NEW.namespace_id;
            {filled("policy_revision", "made", "event_binding")}
            RETURN NEW;
        """


class FlagTruth(Truth):
    """A flag is numbered by the database, under the hold, and marks the version that its note stands on."""

    declare = [("counted", "integer")]

    def get_func(self, model: models.Model) -> str:
        version = "(SELECT n.lifecycle_version FROM public.archive_note n WHERE n.id = NEW.note_id)"
        return f"""
            NEW.id := nextval('public.archive_flag_id_seq');
            {formed({"subject": _IDENTIFIER}, "flag_form")}
            {stamped("created_at", "flag_time")}
            {filled("lifecycle_version", version, "flag_version", "counted")}
            RETURN NEW;
        """


class RequestTruth(Truth):
    """T-REQUEST-TRUTH: a request carries the digests of what its note was taken in as, and says whether it made it."""

    declare = [("made", "text"), ("asked", "text"), ("first", "boolean")]

    def get_func(self, model: models.Model) -> str:
        request = {
            "request_id": quoted("NEW.request_id"),
            "subject": quoted("NEW.subject"),
            "material": material("n", "s.source_key", "k.key"),
        }
        digest = canonical.sql_digest(canonical.INTAKE_REQUEST, canonical.sql_object(request))
        return f"""
            {formed({"request_id": _ADDRESS_KEY, "subject": _IDENTIFIER}, "request_form")}
            {stamped("created_at", "request_time")}
            SELECT n.space_id, n.space_generation, n.material_digest, {digest},
                   n.created_at >= transaction_timestamp() AND NOT EXISTS (
                       SELECT 1 FROM public.archive_intake_request r WHERE r.note_id = n.id)
              INTO NEW.space_id, NEW.space_generation, made, asked, first
              FROM public.archive_note n JOIN public.archive_source s ON s.id = n.source_id
              JOIN public.archive_namespace k ON k.id = n.namespace_id
             WHERE n.id = NEW.note_id;
            {filled("material_digest", "made", "request_material")}
            {filled("request_digest", "asked", "request_digest", "asked")}
            {filled("created_note", "first", "request_created", "first")}
            RETURN NEW;
        """


class MigrationTruth(Truth):
    """A record of a change of binding says what the namespace was bound to, and bears its own transaction."""

    declare = [("made", "text"), ("was", "record")]

    def get_func(self, model: models.Model) -> str:
        names = ("owner", "policy_revision", "text_configuration", "binding_digest")
        told = ", ".join(f"coalesce(NEW.old_{name}, was.{name})" for name in names)
        kept = " ".join(f"NEW.old_{name} := was.{name};" for name in names)
        new = {"new_owner": _IDENTIFIER, "new_policy_revision": _IDENTIFIER, "actor_subject": _IDENTIFIER}
        digest = binding("NEW", "new_", namespace="n.key", profile="n.profile")
        return f"""
            {random("id", "migration_form")}
            {formed({**new, "new_text_configuration": _WORDS}, "migration_form")}
            {unless(f"length(NEW.reason) BETWEEN 1 AND {limits.MIGRATION_REASON_MAX}", "migration_form")}
            {stamped("created_at", "migration_time")}
            SELECT {", ".join(f"n.{name}" for name in names)}, {digest} AS bound INTO was
              FROM public.archive_namespace n WHERE n.id = NEW.namespace_id;
            IF ({told}) IS DISTINCT FROM ({", ".join(f"was.{name}" for name in names)}) THEN
                {refuse("migration_binding", RULE)}
            END IF;
            {kept}
            {filled("new_binding_digest", "was.bound", "migration_digest")}
            NEW.transaction_id := pg_current_xact_id();
            RETURN NEW;
        """


class HistoryTruth(Truth):
    """The history of configured bindings is written by the database alone, and stamped by it."""

    def get_func(self, model: models.Model) -> str:
        # A statement of a caller fires triggers at depth 1; this one is fired by another trigger.
        return f"""
            IF pg_trigger_depth() < 2 THEN
                {refuse("binding_history", RULE)}
            END IF;
            NEW.recorded_at := clock_timestamp();
            RETURN NEW;
        """
