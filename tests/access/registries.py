"""What the service really has to enter by: out of the URL resolver, the registries of commands, tasks and the admin."""

from collections.abc import Iterator, Sequence
from typing import Any

from celery import Celery
from django.contrib.admin import AdminSite
from django.core.management import get_commands
from django.urls import URLPattern, URLResolver

from lychd.commands.entries import ENTRIES

Pattern = URLPattern | URLResolver


def addresses(patterns: Sequence[Pattern], before: str = "") -> Iterator[str]:
    """Every address pattern, as the resolver spells it."""
    for one in patterns:
        here = before + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from addresses(one.url_patterns, here)
        else:
            yield here


def commands() -> dict[str, str]:
    """Every command of the framework's registry and the app that brings it."""
    return {
        name: app if isinstance(app, str) else app.__module__.partition(".management.")[0]
        for name, app in get_commands().items()
    }


def lines() -> set[str]:
    """Every line of the grammar."""
    return {entry.line for entry in ENTRIES}


def tasks(app: Celery) -> set[str]:
    """Every task that a worker would take, but for those that the library itself registers and nothing routes."""
    app.loader.import_default_modules()
    return {name for name in app.tasks if not name.startswith("celery.")}


def administered(site: AdminSite) -> set[str]:
    """Every model of an admin site."""
    return {model._meta.label for model in site._registry}


def difference(found: set[str], listed: set[str]) -> dict[str, list[str]]:
    """What the table lacks, and what it still has; empty where they agree."""
    told: dict[str, Any] = {"not in the table": sorted(found - listed), "only in the table": sorted(listed - found)}
    return {name: names for name, names in told.items() if names}
