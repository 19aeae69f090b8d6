"""What the rows of generations and derivations say of themselves is so (archive/truths.py; LY012).

Manifests and receipts have one closed form, digests are computed again, and a time lies within its transaction.
"""

from typing import Final

import pgtrigger
from django.db import models

from archive import canonical
from archive import forms as archive_forms
from archive.triggers import refuse
from archive.truths import RULE, Truth, filled, formed, random, stamped, unless
from semantic import forms
from semantic.lifecycle import State

_IDENTIFIER: Final = archive_forms.IDENTIFIER.pattern
_FAILURE: Final = "[a-z][a-z0-9_]{0,63}"


def vector_digest(vector: str) -> str:
    """Write the digest of a stored vector, bit by bit; `vector_send` gives its bytes in the other order."""
    length = f"public.vector_dims({vector})"
    low, high = (f"lpad(to_hex({part}), 2, '0')" for part in (f"mod({length}, 256)", f"{length} / 256"))
    turned = (
        f"regexp_replace(encode(substring(public.vector_send({vector}) FROM 5), 'hex'),"
        " '(..)(..)(..)(..)', '\\4\\3\\2\\1', 'g')"
    )
    domain = f"convert_to('{canonical.VECTOR}', 'UTF8') || '\\x00'::bytea"
    return f"encode(sha256({domain} || decode({low} || {high} || '0000' || {turned}, 'hex')), 'hex')"


def real(number: str) -> str:
    """Write a real as `canonical.real` does; zero has one sign there."""
    return f"'f64:' || encode(float8send({number} + 0::float8), 'hex')"


def derivation_digest(row: str, generation: str, namespace: str) -> str:
    """Write the identity of one note in one generation (`semantic.manifest.derivation_digest`)."""
    members = {
        "namespace": f"{namespace}.key",
        "generation_reference": f"{generation}.reference",
        "manifest_digest": f"{generation}.manifest_digest",
        **{name: f"{row}.{name}" for name in ("source_key", "source_revision", "text_digest", "chunk")},
    }
    return canonical.sql_digest(
        canonical.DERIVATION, canonical.sql_object({name: canonical.sql_string(at) for name, at in members.items()})
    )


def embed_binding_digest(manifest: str) -> str:
    """Write the digest of the model that a manifest names."""
    return canonical.sql_digest(
        canonical.EMBED_BINDING, forms.EMBED_BINDING.canonical_sql(f"({manifest} -> 'embed_binding')")
    )


def account(row: str, *, attempt: str, vector_digest: str, l2: str, started_at: str, finished_at: str) -> str:
    """Write what the receipt of an attempt says beside its usage, as a query over generation and namespace."""
    members = {
        "profile": "g.manifest ->> 'embed_profile'",
        "binding_digest": embed_binding_digest("g.manifest"),
        "derivation_digest": derivation_digest(row, "g", "n"),
        "attempt": attempt,
        "vector_digest": vector_digest,
        "l2": real(l2),
        "started_at": canonical.sql_instant(started_at),
        "finished_at": canonical.sql_instant(finished_at),
    }
    listed = ", ".join(f"'{name}', {value}" for name, value in members.items())
    return (
        f"(SELECT jsonb_build_object({listed}) FROM public.semantic_generation g"
        f" JOIN public.archive_namespace n ON n.id = g.namespace_id WHERE g.id = {row}.generation_id)"
    )


def completion(vector: str, moment: str) -> str:
    """Write the assignments by which a running row is completed with a vector, without any embedder."""
    row = "semantic_derivation"
    receipt = account(
        row,
        attempt=f"{row}.attempt",
        vector_digest=vector_digest(vector),
        l2=f"public.vector_norm({vector})",
        started_at=f"{row}.claimed_at",
        finished_at=moment,
    )
    return (
        f"vector = {vector}, settled_at = {moment},"
        f""" receipt = {receipt} || '{{"input_bytes": 1, "tokens": 1}}'::jsonb"""
    )


class GenerationTruth(Truth):
    """T-GEN-TRUTH: a manifest has its closed form and its digest, and names the binding in force."""

    operation = pgtrigger.Insert | pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        names = {"key": "namespace", **{name: name for name in ("owner", "policy_revision", "binding_digest")}}
        bound = ", ".join(f"n.{name}" for name in names)
        told = ", ".join(f"NEW.manifest ->> '{name}'" for name in names.values())
        digest = canonical.sql_digest(canonical.GENERATION, forms.MANIFEST.canonical_sql("NEW.manifest"))
        return f"""
            IF TG_OP = 'UPDATE' THEN
                IF NEW.state <> OLD.state THEN
                    {formed({"retired_by": _IDENTIFIER}, "generation_form")}
                    {stamped("retired_at", "generation_time")}
                END IF;
                RETURN NEW;
            END IF;
            {random("id", "generation_form")}
            {formed({"registered_by": _IDENTIFIER}, "generation_form")}
            {unless(forms.MANIFEST.sql("NEW.manifest"), "generation_form")}
            {stamped("registered_at", "generation_time")}
            IF NOT EXISTS (
                SELECT 1 FROM public.archive_namespace n WHERE n.id = NEW.namespace_id AND ({bound}) = ({told})) THEN
                {refuse("generation_binding", RULE)}
            END IF;
            {filled("manifest_digest", digest, "generation_digest")}
            RETURN NEW;
        """


class DerivationTruth(Truth):
    """T-DER-TRUTH: a derivation names its source, its times are now, and a vector and its receipt are what they say."""

    operation = pgtrigger.Insert | pgtrigger.Update

    def get_func(self, model: models.Model) -> str:
        source = (
            "(SELECT s.source_key FROM public.archive_note n JOIN public.archive_source s ON s.id = n.source_id"
            " WHERE n.id = NEW.note_id)"
        )
        said = account(
            "NEW",
            attempt="NEW.attempt",
            vector_digest="NEW.vector_digest",
            l2="NEW.l2_norm",
            started_at="OLD.claimed_at",
            finished_at="NEW.settled_at",
        )
        return f"""
            IF TG_OP = 'INSERT' THEN
                {random("id", "derivation_form")}
                {stamped("prepared_at", "derivation_time")}
                {filled("source_key", source, "derivation_source_key")}
                {unless("NEW.settled_at IS NULL", "derivation_time")}
                RETURN NEW;
            END IF;
            IF NEW.state = '{State.RUNNING}' THEN
                {random("attempt_token", "derivation_token")}
                {unless("NEW.claimed_at BETWEEN transaction_timestamp() AND clock_timestamp()", "derivation_time")}
                NEW.settled_at := NULL;
                RETURN NEW;
            END IF;
            IF NEW.state = OLD.state THEN RETURN NEW; END IF;
            IF NEW.settled_at IS NOT DISTINCT FROM OLD.settled_at THEN
                NEW.settled_at := clock_timestamp();
            END IF;
            {stamped("settled_at", "derivation_time")}
            IF NEW.failure_code !~ '^(?:{_FAILURE})\\Z' THEN
                {refuse("derivation_failure", RULE)}
            END IF;
            IF NEW.state <> '{State.COMPLETE}' THEN RETURN NEW; END IF;
            {filled("vector_digest", vector_digest("NEW.vector"), "derivation_digest")}
            NEW.l2_norm := coalesce(NEW.l2_norm, public.vector_norm(NEW.vector));
            {unless(forms.ATTEMPT.sql("NEW.receipt"), "derivation_receipt_form")}
            IF NEW.receipt - ARRAY['input_bytes', 'tokens'] IS DISTINCT FROM {said} THEN
                {refuse("derivation_receipt_row", RULE)}
            END IF;
            RETURN NEW;
        """
