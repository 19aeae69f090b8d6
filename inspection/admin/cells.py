"""How columns of every table are formatted, and which rows of a table somebody may look at."""

import json
from typing import Any, Final

from django.db.models import QuerySet
from django.utils.html import format_html

from archive.authority import Action
from inspection.admin.scope import Scope
from inspection.admin.site import Column, column
from inspection.templatetags.showing import age, breakable, full_time

_JSON_MAX: Final = 20_000


def whole(value: object) -> object:
    """A digest or identity, not shortened."""
    return format_html("<code>{}</code>", value)


def pretty(value: object) -> object:
    """JSON for reading, up to a length."""
    told = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    if len(told) > _JSON_MAX:
        told = told[:_JSON_MAX] + "\n… cut here; the page of the record shows it whole"
    return format_html('<pre class="json" tabindex="0">{}</pre>', told)


def yes(value: object) -> str:
    """A truth value in a word."""
    return "yes" if value else "no"


def words(value: Any) -> str:
    """Several values on one line."""
    return ", ".join(str(one) for one in value)


def namespace() -> Column:
    """The namespace that a row belongs to."""
    return column("Namespace", "namespace.key", breakable)


def age_of(label: str, where: str) -> Column:
    """A time, as how long ago it was."""
    return column(label, where, age)


def time_of(label: str, where: str) -> Column:
    """A time in full."""
    return column(label, where, full_time)


def of_namespaces(model: type[Any]) -> Any:
    """The rows of the namespaces in which the action is granted."""

    def rows(scope: Scope, action: Action) -> "QuerySet[Any]":
        found: QuerySet[Any] = model.objects.filter(namespace_id__in=scope.namespaces(action))
        return found

    return rows


def by_key(model: type[Any]) -> Any:
    """The same for rows that name their namespace by its key."""

    def rows(scope: Scope, action: Action) -> "QuerySet[Any]":
        found: QuerySet[Any] = model.objects.filter(namespace_key__in=scope.keys(action))
        return found

    return rows
