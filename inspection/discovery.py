"""What is configured, for whoever may discover it: bindings alone, and no archive table is read (R-L-120..123, 0.2)."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from archive import authority, bindings, limits
from archive.authority import Action, AuthorityQuestion, Caller, Point
from archive.bindings import Binding
from archive.gates import gate
from archive.models import Grant
from archive.refusals import AuthorityRefused
from archive.transactions import reading


def configuration(subject: str | None, namespace: str | None = None) -> dict[str, Any]:
    """Return the configured profile for a subject, in one namespace or in all that it may discover.

    Without a namespace it lists those in which the subject holds a current grant of this action, at most 100. It says
    nothing about whether a configuration fits material that is already retained.
    """
    bindings.require_profile()
    if subject is None:
        raise AuthorityRefused
    if namespace is not None:
        return _discovered([Caller.in_namespace(subject, namespace)])
    granted = _served(Grant.current().filter(subject=subject, action=Action.DISCOVER_CONFIGURATION.value))
    return _discovered([Caller(subject, binding) for binding in granted])


def configuration_here(caller: Caller) -> dict[str, Any]:
    """Return the one configuration under which somebody was met at the door of a namespace."""
    (binding,) = _discovered([caller])["bindings"]
    told: dict[str, Any] = binding
    return told


def served_namespaces(subject: str) -> tuple[str, ...]:
    """Return the served namespaces in which a subject holds any current grant, for the pages' choice of namespace."""
    bindings.require_profile()
    return tuple(binding.namespace for binding in _served(Grant.current().filter(subject=subject)))


def _served(grants: "QuerySet[Grant]") -> list[Binding]:
    """Find the bindings of the namespaces that grants name, at most a page of them."""
    with reading():
        keys = list(
            grants.order_by("namespace_key").values_list("namespace_key", flat=True).distinct()[: limits.PAGE_SIZE_MAX]
        )
        source = bindings.source()
        return [binding for key in keys if (binding := source.find(key)) is not None]


def _discovered(callers: Sequence[Caller]) -> dict[str, Any]:
    """Ask twice about each binding, and tell of those that were allowed both times; none is a refusal."""
    allowed = authority.decide([_discovery(caller) for caller in callers], Point.A0)
    shown = [caller for caller, yes in zip(callers, allowed, strict=True) if yes]
    if not shown:
        raise AuthorityRefused
    gate("discover_configuration.A2")
    asked_again = authority.decide([_discovery(caller) for caller in shown], Point.A2)
    shown = [caller for caller, yes in zip(shown, asked_again, strict=True) if yes]
    if not shown:
        raise AuthorityRefused
    return {
        "profile": limits.PROFILE,
        "policy": limits.LEXICAL_POLICY,
        "bindings": [_told(caller.binding) for caller in shown],
    }


def _discovery(caller: Caller) -> AuthorityQuestion:
    return caller.asks(Action.DISCOVER_CONFIGURATION, about=caller.binding.digest).asked


def _told(binding: Binding) -> dict[str, Any]:
    return {
        **binding.fields(),
        "binding_digest": binding.digest,
        "text_configuration": binding.text_configuration,
        "second_person": binding.second_person,
    }
