"""What the settings must say of derivation before anything is served; read from the settings alone.

The archive's own checks see that semantic recall has a derivation (E002) and that an attempt lives one minute (E003).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error

from semantic import limits
from semantic.embedders import providers
from semantic.manifest import BINDING_KEYS


def register() -> None:
    """Register the checks under no tag, so that every command that checks at all runs them."""
    checks.register(check_derivation)


def check_derivation(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse settings under which nothing could be embedded, or more at once than the leases allow."""
    configured: dict[str, Any] | None = settings.LYCHD_ARCHIVE
    derivation = None if configured is None else configured.get("derivation")
    if configured is None or not isinstance(derivation, Mapping):
        return []
    return [*_embedder(derivation), *_coordination(configured)]


def _embedder(derivation: Mapping[str, Any]) -> Iterator[CheckMessage]:
    profile = derivation.get("embed_profile")
    if profile not in limits.PROFILE_DIMENSIONS:
        yield Error(
            f"LYCHD_ARCHIVE['derivation']['embed_profile'] is {profile!r}.",
            hint=f"There is: {', '.join(limits.PROFILE_DIMENSIONS)}.",
            id="semantic.E001",
        )
    binding = derivation.get("embed_binding")
    if not isinstance(binding, Mapping) or set(binding) != set(BINDING_KEYS):
        yield Error(
            "LYCHD_ARCHIVE['derivation']['embed_binding'] does not describe an embedder.",
            hint=f"It holds exactly: {', '.join(BINDING_KEYS)}. `lychd generation describe FOLDER` writes one.",
            id="semantic.E002",
        )
        return
    bounds = (("max_bytes", limits.EMBED_MAX_BYTES), ("max_tokens", limits.EMBED_MAX_TOKENS))
    for key, most in bounds:
        if type(binding[key]) is not int or not 1 <= binding[key] <= most:
            yield Error(
                f"The embedder's {key} is {binding[key]!r}.",
                hint=f"It is a whole number from 1 to {most}.",
                id="semantic.E002",
            )
    if binding["provider"] not in providers():
        yield Error(
            f"There is no embedder {binding['provider']!r}.",
            hint=f"There is: {', '.join(sorted(providers()))}.",
            id="semantic.E003",
        )
    elif binding["provider"] == "stand-in" and not settings.LYCHD_TEST_EMBEDDER:
        yield Error(
            "The stand-in embedder is configured, which knows words and no meaning.",
            hint="Set LYCHD_TEST_EMBEDDER=true where that is wanted, for a demonstration say, or name a model.",
            id="semantic.E003",
        )


def _coordination(configured: Mapping[str, Any]) -> Iterator[CheckMessage]:
    """The memory of one process counts nothing for another, and a broker that is not there nothing at all."""
    if configured.get("coordination") != "process":
        if not (settings.REDIS_URL or settings.LYCHD_EMBEDDED):
            yield Error(
                "Leases are counted in the worker's broker, and there is none.",
                hint="Set REDIS_URL, or LYCHD_COORDINATION=process where one process alone embeds.",
                id="semantic.E004",
            )
        return
    for name, count in (("web", settings.LYCHD_WEB_PROCESSES), ("worker", settings.CELERY_WORKER_CONCURRENCY)):
        if count > 1:
            yield Error(
                f"Leases are counted in one process's memory, and there are {count} {name} processes.",
                hint="Leave LYCHD_COORDINATION unset, or run one process.",
                id="semantic.E004",
            )
