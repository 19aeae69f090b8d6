"""Configured bindings: which namespaces this deployment serves, under whose ownership and which policy (0.2, R-L-011).

A binding is configuration. The namespace row is retained material and only the first admitted intake makes it; nothing
here writes it. `BindingSource` is the port; two adapters stand beside it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from archive import canonical, limits
from archive.models import ConfiguredBinding
from archive.refusals import ProfileOff

NO_GENERATION: Final = ""
"""What a namespace without embeddings has in place of a generation; None is the deployment's."""


@dataclass(frozen=True)
class Binding:
    """One configured namespace. Text configuration and second person are not in the digest: vectors pin the digest."""

    namespace: str
    owner: str
    policy_revision: str
    text_configuration: str = limits.DEFAULT_TEXT_CONFIGURATION
    second_person: bool = False
    profile: str = limits.PROFILE
    # The embedding generation used here: None is the deployment's, NO_GENERATION none at all. No change of binding.
    generation: str | None = field(default=None, compare=False)

    def fields(self) -> dict[str, str]:
        """The four values that the binding digest covers."""
        return {
            "profile": self.profile,
            "namespace": self.namespace,
            "owner": self.owner,
            "policy_revision": self.policy_revision,
        }

    @cached_property
    def digest(self) -> str:
        return canonical.digest_of(canonical.BINDING, self.fields())


def generation_named(word: str) -> str | None:
    """Read how people say a generation: `default`, `none`, or its reference."""
    return {"default": None, "none": NO_GENERATION}.get(word, word)


def name_of_generation(generation: str | None) -> str:
    """Say it back."""
    return "default" if generation is None else generation or "none"


class BindingSource(Protocol):
    """Where configured bindings come from; a look-up is one indexed read at most."""

    def find(self, namespace: str) -> Binding | None:
        """Return the binding served under this key, or None when it is not configured or disabled."""

    def find_all(self, namespaces: "Collection[str]") -> "dict[str, Binding]":
        """Return the bindings that are served under these keys, in one read."""

    def served(self, after: str, limit: int, starting: str = "") -> "list[Binding]":
        """Return at most so many of the bindings that are served, by key, behind this one, whose keys begin so."""


class SettingsBindings:
    """A fixed few, from `LYCHD_ARCHIVE` itself: its own keys are the first binding, `namespaces` lists more."""

    def find(self, namespace: str) -> Binding | None:
        return next((one for one in self._configured() if one.namespace == namespace), None)

    def find_all(self, namespaces: Collection[str]) -> dict[str, Binding]:
        return {key: binding for key in namespaces if (binding := self.find(key)) is not None}

    def served(self, after: str, limit: int, starting: str = "") -> list[Binding]:
        found = {one.namespace: one for one in reversed(list(self._configured()))}
        return [found[key] for key in sorted(found) if key > after and key.startswith(starting)][:limit]

    def _configured(self) -> Iterator[Binding]:
        configured = require_profile()
        for one in (configured, *configured.get("namespaces", ())):
            if "namespace" in one:
                yield Binding(
                    namespace=one["namespace"],
                    owner=one["owner"],
                    policy_revision=one["policy_revision"],
                    text_configuration=one.get("text_configuration", limits.DEFAULT_TEXT_CONFIGURATION),
                    second_person=bool(one.get("second_person", False)),
                    generation=generation_named(one.get("generation", "default")),
                )


class TableBindings:
    """The host table `lychd_binding`, written by `lychd namespace` alone."""

    def find(self, namespace: str) -> Binding | None:
        row = ConfiguredBinding.served(namespace)
        return None if row is None else Binding(namespace, **row)

    def find_all(self, namespaces: Collection[str]) -> dict[str, Binding]:
        rows = ConfiguredBinding.objects.filter(namespace_key__in=namespaces, disabled_at__isnull=True)
        return {binding.namespace: binding for binding in map(binding_of, rows)}

    def served(self, after: str, limit: int, starting: str = "") -> list[Binding]:
        return [binding_of(row) for row in ConfiguredBinding.further(after, starting, limit)]


def binding_of(row: ConfiguredBinding) -> Binding:
    """Read a row of the host table."""
    return Binding(
        row.namespace_key,
        row.owner,
        row.policy_revision,
        row.text_configuration,
        row.second_person,
        generation=row.generation,
    )


def require_profile() -> dict[str, Any]:
    """Return the archive's settings, or refuse while the profile is off (R-L-010)."""
    configured: dict[str, Any] | None = settings.LYCHD_ARCHIVE
    if configured is None:
        raise ProfileOff
    return configured


def source() -> BindingSource:
    """Return the configured binding source."""
    path = require_profile().get("bindings", "archive.bindings.TableBindings")
    made: BindingSource = import_string(path)()
    return made
