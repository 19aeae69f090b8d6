"""What is configured, for whoever may discover it: bindings alone, and no archive table is read (R-L-120..123, 0.2)."""

from collections.abc import Collection, Sequence
from typing import Any

from archive import authority, bindings, limits
from archive.authority import Action, Caller, Point, Question
from archive.bindings import Binding
from archive.gates import gate
from archive.refusals import AuthorityRefused
from inspection.cursors import List, PageRequest
from inspection.namespaces import choose


def configuration(
    subject: str | None,
    namespace: str | None = None,
    page: PageRequest | None = None,
    *,
    within: Collection[str] | None = None,
) -> dict[str, Any]:
    """Return the configured profile for a subject, in one namespace or page by page in all that it may discover.

    It says nothing about whether a configuration fits material that is already retained. Whoever comes by a token sees
    `within` what that is for.
    """
    bindings.require_profile()
    if subject is None:
        raise AuthorityRefused
    if namespace is not None:
        return {**_discovered([Caller.in_namespace(subject, namespace, within=within)]), "next_cursor": None}
    page = page or PageRequest(limit=limits.PAGE_SIZE_MAX)
    listed = List.of_subject(subject, {"list": "configuration"})
    after = listed.after_key(page) or ""
    chosen = choose(subject, Action.DISCOVER_CONFIGURATION, within=within, after=after, limit=page.limit)
    told = _discovered([Caller(subject, binding) for binding in chosen.bindings])
    return {**told, "next_cursor": None if chosen.after is None else listed.at_key(chosen.after)}


def configuration_here(caller: Caller) -> dict[str, Any]:
    """Return the one configuration under which somebody was met at the door of a namespace."""
    (binding,) = _discovered([caller])["bindings"]
    told: dict[str, Any] = binding
    return told


def _discovered(callers: Sequence[Caller]) -> dict[str, Any]:
    """Ask twice about each binding, and tell of those that were allowed both times; none is a refusal."""
    allowed = authority.decide([question(caller).asked for caller in callers], Point.A0)
    shown = [caller for caller, yes in zip(callers, allowed, strict=True) if yes]
    if not shown:
        raise AuthorityRefused
    gate("discover_configuration.A2")
    asked_again = authority.decide([question(caller).asked for caller in shown], Point.A2)
    shown = [caller for caller, yes in zip(shown, asked_again, strict=True) if yes]
    if not shown:
        raise AuthorityRefused
    return {
        "profile": limits.PROFILE,
        "policy": limits.LEXICAL_POLICY,
        "bindings": [_told(caller.binding) for caller in shown],
    }


def question(caller: Caller) -> Question:
    """Whether somebody may discover the configuration of a namespace."""
    return caller.asks(Action.DISCOVER_CONFIGURATION, about=caller.binding.digest)


def _told(binding: Binding) -> dict[str, Any]:
    return {
        **binding.fields(),
        "binding_digest": binding.digest,
        "text_configuration": binding.text_configuration,
        "second_person": binding.second_person,
    }
