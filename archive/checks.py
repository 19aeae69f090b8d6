"""What the settings must say before anything is served (specification 5.4); read from the settings alone.

An error stops `runserver`, workers and commands; its hint is what to do. Nothing here opens a connection (R-L-019).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error
from django.utils.module_loading import import_string
from psycopg import IsolationLevel

from archive import limits

ATTEMPT_SECONDS: Final = 60
_KEYS: Final = {
    "namespace": limits.ADDRESS_KEY_PATTERN,
    "owner": limits.IDENTIFIER_PATTERN,
    "policy_revision": limits.IDENTIFIER_PATTERN,
}
_FURTHER: Final[dict[str, type]] = {"text_configuration": str, "second_person": bool, "generation": str}
_OPTIONAL: Final = frozenset({"admission_default"})
_OF_TASKS: Final = ("acks_late", "autoretry_for", "max_retries", "retry_kwargs", "retry_backoff")


def register() -> None:
    """Register the checks under no tag, so that every command that checks at all runs them."""
    checks.register(check_settings)


def check_settings(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse settings under which the archive could not keep its promises."""
    configured: dict[str, Any] | None = settings.LYCHD_ARCHIVE
    found = [*_databases(), *_tasks()]
    if configured is not None:
        found += [*_ports(configured), *_derivation(configured), *_identifiers(configured)]
    return found


def _ports(configured: Mapping[str, Any]) -> Iterator[CheckMessage]:
    """E001: an authorizer that cannot be loaded never allows anything, and is better known at the start (R-L-013)."""
    ports = (
        ("authorizer", "LYCHD_AUTHORIZER", "decide_many", None, "archive.authority.GrantAuthorizer"),
        ("bindings", "LYCHD_BINDINGS", "find", "archive.bindings.TableBindings", "archive.bindings.TableBindings"),
        ("admission_default", "LYCHD_ADMISSION_DEFAULT", "current", None, "nobody, which is told as unknown"),
    )
    for key, variable, method, default, usual in ports:
        path = configured.get(key, default)
        if key in _OPTIONAL and path is None:
            continue
        if not _offers(path, method):
            yield Error(
                f"LYCHD_ARCHIVE['{key}'] is {path!r}, which names no class with a method {method}.",
                hint=f"Set {variable} to the dotted path of such a class that can be imported, or leave it unset for"
                f" {usual}.",
                id="archive.E001",
            )


def _offers(path: object, method: str) -> bool:
    if not isinstance(path, str):
        return False
    try:
        made = import_string(path)
    except Exception:  # whatever a foreign module raises while it is imported
        return False
    return callable(made) and callable(getattr(made, method, None))


def _derivation(configured: Mapping[str, Any]) -> Iterator[CheckMessage]:
    """E002 and E003: semantic recall reads what derivation wrote, and an attempt lives exactly one minute."""
    derivation = configured.get("derivation")
    if configured.get("semantic") and derivation is None:
        yield Error(
            "LYCHD_ARCHIVE['semantic'] is on without LYCHD_ARCHIVE['derivation'].",
            hint="Configure a derivation generation as well, or switch semantic recall off.",
            id="archive.E002",
        )
    if derivation is not None:
        seconds = derivation.get("attempt_seconds") if isinstance(derivation, Mapping) else None
        if type(seconds) is not int or seconds != ATTEMPT_SECONDS:
            yield Error(
                f"LYCHD_ARCHIVE['derivation']['attempt_seconds'] is {seconds!r}; an attempt lives {ATTEMPT_SECONDS}.",
                hint=f"Set attempt_seconds to {ATTEMPT_SECONDS}.",
                id="archive.E003",
            )


def _databases() -> Iterator[CheckMessage]:
    """E004 and E005: each operation begins its own transaction, and its locks are thought out for READ COMMITTED."""
    for alias, database in settings.DATABASES.items():
        if database.get("ATOMIC_REQUESTS"):
            yield Error(
                f"DATABASES['{alias}'] has ATOMIC_REQUESTS on, so an answer would leave before its commit.",
                hint="Set ATOMIC_REQUESTS to False; the operations begin and end their own transactions.",
                id="archive.E004",
            )
        options = database.get("OPTIONS") or {}
        level = options.get("isolation_level")
        started = str(options.get("options", "")).replace("\\ ", " ").lower()
        asked = re.search(r"default_transaction_isolation\s*=\s*'?\"?(\w+ ?\w*)", started)
        if (level is not None and level != IsolationLevel.READ_COMMITTED) or (
            asked is not None and not asked[1].startswith("read committed")
        ):
            yield Error(
                f"DATABASES['{alias}'] asks for another isolation level than READ COMMITTED.",
                hint="Take isolation_level and default_transaction_isolation out of its OPTIONS.",
                id="archive.E005",
            )


def _tasks() -> Iterator[CheckMessage]:
    """E006: a message is delivered once and leaves nothing behind; only a person asks again (R-L-180)."""
    repeating = ("CELERY_TASK_ACKS_LATE", "CELERY_TASK_REJECT_ON_WORKER_LOST")
    keeping = ("CELERY_RESULT_BACKEND", "CELERY_BEAT_SCHEDULE")
    wrong = [(name, "False") for name in repeating if getattr(settings, name, False)]
    wrong += [(name, "nothing") for name in keeping if getattr(settings, name, None)]
    if not getattr(settings, "CELERY_TASK_IGNORE_RESULT", False):
        wrong.append(("CELERY_TASK_IGNORE_RESULT", "True"))
    if _annotated(getattr(settings, "CELERY_TASK_ANNOTATIONS", None)):
        wrong.append(("CELERY_TASK_ANNOTATIONS", "nothing that retries or acknowledges late"))
    for name, right in wrong:
        yield Error(
            f"{name} would let work run again, or by itself, or keep what it returned.",
            hint=f"Set {name} to {right}, or leave it out of the settings.",
            id="archive.E006",
        )


def _annotated(annotations: object) -> bool:
    """Say whether any annotation touches repeating; one that is code cannot be judged, and counts as if it did."""
    if annotations is None:
        return False
    if isinstance(annotations, Mapping):
        return any(
            not isinstance(options, Mapping) or any(options.get(name) for name in _OF_TASKS)
            for options in annotations.values()
        )
    return not isinstance(annotations, Sequence) or any(_annotated(one) for one in annotations)


def _identifiers(configured: Mapping[str, Any]) -> Iterator[CheckMessage]:
    """E008: what a binding of the settings is called has to be a name that requests and digests can carry."""
    if configured.get("profile") != limits.PROFILE:
        yield _misnamed("LYCHD_ARCHIVE['profile']", configured.get("profile"), f"the one profile is {limits.PROFILE}")
    listed = configured.get("namespaces", ())
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        yield _misnamed("LYCHD_ARCHIVE['namespaces']", listed, "it is a list of bindings")
        listed = ()
    if configured.get("bindings") == "archive.bindings.SettingsBindings" and not (listed or "namespace" in configured):
        yield Error(
            "Bindings are read from the settings, and there is none: no namespace would be served.",
            hint="Name a file with a list of bindings in LYCHD_BINDINGS_FILE, or leave LYCHD_BINDINGS unset.",
            id="archive.E008",
        )
    first = [("LYCHD_ARCHIVE", configured)] if any(key in configured for key in _KEYS) else []
    for place, binding in [*first, *((f"LYCHD_ARCHIVE['namespaces'][{n}]", one) for n, one in enumerate(listed))]:
        if not isinstance(binding, Mapping):
            yield _misnamed(place, binding, "a binding is a dictionary")
            continue
        for key, pattern in _KEYS.items():
            value = binding.get(key)
            if not isinstance(value, str) or not re.match(pattern, value):
                yield _misnamed(f"{place}['{key}']", value, f"it has to match {pattern}")
        yield from _of_binding(place, binding) if binding is not configured else ()
    derivation = configured.get("derivation")
    if isinstance(derivation, Mapping):
        for key in ("generation", "embed_profile"):
            value = derivation.get(key)
            if not isinstance(value, str) or not re.match(limits.IDENTIFIER_PATTERN, value.replace("@", "-")):
                yield _misnamed(
                    f"LYCHD_ARCHIVE['derivation']['{key}']", value, f"it has to match {limits.IDENTIFIER_PATTERN}"
                )


def _of_binding(place: str, binding: Mapping[str, Any]) -> Iterator[CheckMessage]:
    """What a binding says beside its names; a word that nobody reads is a slip."""
    for key in sorted(binding.keys() - _KEYS.keys() - _FURTHER.keys(), key=str):
        yield _misnamed(f"{place}[{key!r}]", binding[key], "a binding has no such key")
    for key, kind in _FURTHER.items():
        if key in binding and not isinstance(binding[key], kind):
            yield _misnamed(f"{place}['{key}']", binding[key], f"it is a {kind.__name__}")


def _misnamed(place: str, value: object, rule: str) -> Error:
    return Error(f"{place} is {value!r}; {rule}.", hint=f"Correct {place} in the settings.", id="archive.E008")
