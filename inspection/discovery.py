"""What is configured, for whoever may discover it: bindings alone, and no archive table is read (R-L-120..123, 0.2)."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from archive import authority, bindings, canonical, limits
from archive.authority import Action, AuthorityQuestion, Caller, Point
from archive.bindings import Binding
from archive.gates import gate
from archive.models import Grant
from archive.refusals import AuthorityRefused
from archive.transactions import reading

_PAGES_ASKED: Final = 10


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
    found = served_bindings(subject, (Action.DISCOVER_CONFIGURATION,))
    return _discovered([Caller(subject, binding) for binding in found])


def configuration_here(caller: Caller) -> dict[str, Any]:
    """Return the one configuration under which somebody was met at the door of a namespace."""
    (binding,) = _discovered([caller])["bindings"]
    told: dict[str, Any] = binding
    return told


def served_namespaces(subject: str) -> tuple[str, ...]:
    """Return the served namespaces in which a subject holds any current grant, for the pages' choice of namespace."""
    bindings.require_profile()
    return tuple(binding.namespace for binding in served_bindings(subject, tuple(Action)))


def served_bindings(subject: str, actions: Collection[Action]) -> list[Binding]:
    """Find served namespaces in which a subject may do one of these, by key, at most a page of them.

    Under the built-in authorizer its grants name them. Any other one is asked, a page of namespaces at a time and no
    more than ten of them: what it says is for choosing where to look, and is asked again there.
    """
    if authority.grants_decide():
        return _granted(subject, actions)
    found: list[Binding] = []
    after = ""
    for _ in range(_PAGES_ASKED):
        with reading():
            page = bindings.source().served(after, limits.PAGE_SIZE_MAX)
        questions = [(binding, _choosing(Caller(subject, binding), action)) for binding in page for action in actions]
        answers = authority.decide([question for _, question in questions], Point.A0)
        allowed = {binding.namespace for (binding, _), yes in zip(questions, answers, strict=True) if yes}
        found += [binding for binding in page if binding.namespace in allowed]
        if len(page) < limits.PAGE_SIZE_MAX or len(found) >= limits.PAGE_SIZE_MAX:
            break
        after = page[-1].namespace
    return found[: limits.PAGE_SIZE_MAX]


def _choosing(caller: Caller, action: Action) -> AuthorityQuestion:
    return caller.asks(action, about=canonical.lookup_digest(action, caller.namespace, {"part": "choice"})).asked


def _granted(subject: str, actions: Collection[Action]) -> list[Binding]:
    grants = Grant.current().filter(subject=subject)
    if len(actions) < len(Action):
        grants = grants.filter(action__in=[action.value for action in actions])
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
