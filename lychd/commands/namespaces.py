"""Served namespaces and their bindings, and the index of their words."""

import argparse
from dataclasses import asdict
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from archive import canonical
from archive.bindings import generation_named, name_of_generation
from archive.models import ConfiguredBinding, Namespace
from archive.operations import host, migration
from archive.operations.rebuild import rebuild_lexical
from archive.requests import well_formed
from archive.transactions import reading
from inspection.interface import projection
from lychd import upgrades
from lychd.commands import acting
from lychd.commands.telling import Progress, Told, UsageError, pairs, table


def configure(options: argparse.Namespace) -> Told:
    """Serve a namespace under this binding; what is not named stays as it is configured."""
    well_formed("/namespace", options.key)
    with reading():
        before = ConfiguredBinding.objects.filter(namespace_key=options.key).first()
    asked = {"text_configuration": options.text_configuration, "second_person": options.second_person}
    kept = {} if before is None else {name: getattr(before, name) for name in (*asked, "generation")}
    if options.generation is not None:
        kept["generation"] = generation_named(options.generation)
    binding = host.configure_namespace(
        options.key,
        owner=options.owner,
        policy_revision=options.policy,
        by=host.host_actor(),
        **{**kept, **{name: value for name, value in asked.items() if value is not None}},
    )
    with reading():
        retained = Namespace.objects.filter(key=options.key).first()
    stale = retained is not None and (retained.binding_digest, retained.text_configuration) != (
        binding.digest,
        binding.text_configuration,
    )
    told = {
        **binding.fields(),
        "binding_digest": binding.digest,
        "text_configuration": binding.text_configuration,
        "second_person": binding.second_person,
        "generation": name_of_generation(binding.generation),
        "migration_needed": stale,
    }
    text = pairs((name.replace("_", " "), value) for name, value in told.items())
    if stale:
        text += (
            "\n\nWhat is retained stands under another binding and refuses until it is migrated:"
            f"\n  lychd namespace migrate --namespace {options.key} --as OPERATOR --reason WHY"
        )
    return Told({"binding": told}, text)


def listed(options: argparse.Namespace) -> Told:
    """List configured namespaces, disabled ones too, and how each is retained."""
    with reading():
        retained = {row.key: row for row in Namespace.objects.all()}
        told = [
            _configured(row, retained.get(row.namespace_key))
            for row in ConfiguredBinding.objects.order_by("namespace_key")
        ]
    heads = ("namespace", "owner", "policy revision", "words", "second person", "generation", "served", "retained")
    names = tuple(one.replace("words", "text_configuration").replace(" ", "_") for one in heads)
    spelled: dict[object, object] = {True: "yes", False: "no"}
    rows = [[spelled.get(one[name], one[name]) for name in names] for one in told]
    return Told({"items": told}, table(heads, rows, empty="Nothing is served; `lychd namespace configure` does it."))


def _configured(row: ConfiguredBinding, retained: Namespace | None) -> dict[str, Any]:
    standing = "nothing yet"
    if retained is not None:
        same = (retained.owner, retained.policy_revision, retained.text_configuration) == (
            row.owner,
            row.policy_revision,
            row.text_configuration,
        )
        standing = retained.lexical_state if same else "under another binding"
    return {
        "namespace": row.namespace_key,
        "owner": row.owner,
        "policy_revision": row.policy_revision,
        "text_configuration": row.text_configuration,
        "second_person": row.second_person,
        "generation": name_of_generation(row.generation),
        "served": row.disabled_at is None,
        "retained": standing,
        "configured_by": row.configured_by,
        "configured_at": canonical.instant(row.configured_at),
    }


def interface(options: argparse.Namespace) -> Told:
    """Say what the admission engine's default asks for; it is a comparison of two configurations."""
    found = projection(acting.caller(options))
    asks = {True: "yes", False: "no"}.get(found.requests_profile is True) if found.pattern else "unknown"
    return Told(found.as_json(), pairs([("default pattern", found.pattern), ("asks for this profile", asks)]))


def migrate(options: argparse.Namespace) -> Told:
    """Bring retained notes under the configured binding, as a principal who may."""
    migrated = migration.migrate(acting.caller(options), reason=options.reason, carry_grants=options.carry_grants)
    told = {
        "namespace": migrated.binding.namespace,
        "migration_id": None if migrated.migration_id is None else str(migrated.migration_id),
        "policy_revision": migrated.binding.policy_revision,
        "carried_grants": migrated.carried_grants,
        "rebuild_needed": migrated.rebuild_needed,
    }
    text = pairs((name.replace("_", " "), value) for name, value in told.items())
    if migrated.migration_id is None:
        text = f"{migrated.binding.namespace} stands under the configured binding already."
    if migrated.rebuild_needed:
        text += f"\n\nRecall waits for: lychd lexical rebuild --namespace {migrated.binding.namespace}"
    return Told(told, text)


def disable(options: argparse.Namespace) -> Told:
    """Stop serving a namespace."""
    host.disable_namespace(options.key, by=host.host_actor())
    return Told({"namespace": options.key, "served": False}, f"{options.key} is not served any more; its rows stay.")


def rebuild(options: argparse.Namespace) -> Told:
    """Rebuild the postings of one namespace, or of each in which recall waits for it."""
    if not options.all:
        told = _rebuilt(acting.binding(options).namespace)
        return Told(told, pairs((name.replace("_", " "), value) for name, value in told.items()))
    if options.namespace:
        raise UsageError("name a namespace, or say --all")
    with reading():
        waiting = upgrades.uncut(DEFAULT_DB_ALIAS)
    done = [_rebuilt(key) for key in waiting]
    heads = ("namespace", "text_configuration", "notes", "total_length")
    rows = [tuple(one[head] for head in heads) for one in done]
    return Told({"rebuilt": done}, table(heads, rows, empty="Recall waits nowhere; every namespace is ready."))


def _rebuilt(key: str) -> dict[str, Any]:
    with Progress(f"rebuild {key}", None) as progress:
        return asdict(rebuild_lexical(key, progress=progress.reach))
