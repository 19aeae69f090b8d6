"""What somebody may look at: the namespaces in which the authorizer allows each way of inspecting.

Where the grants decide, they are part of every statement, so that no list of namespaces is ever carried around. Another
authorizer is asked about the namespace that was chosen, or else about the first that are served.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from archive import authority, bindings, canonical, limits
from archive.authority import Action, AuthorityQuestion, Caller, Point
from archive.bindings import Binding
from archive.models import ConfiguredBinding, Namespace
from archive.refusals import AuthorityRefused
from archive.transactions import reading

ACTIONS: Final = (
    Action.INSPECT_METADATA,
    Action.INSPECT_RECEIPT,
    Action.INSPECT_DERIVATION,
    Action.DISCOVER_CONFIGURATION,
    Action.GRANT,
)
"""Each table of the admin is looked at under one of these."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The answers of one check point. A grant that ends between two of them takes the page with it."""

    subject: str
    chosen: str | None
    """The one namespace to which everything is narrowed."""
    actions: frozenset[Action]
    """What is allowed somewhere in it."""
    asked: Mapping[Action, tuple[Binding, ...]] | None
    """Where each is allowed, as an authorizer answered that is none of grants."""
    granted: tuple[Decimal | None, ...] = ()
    """Digests of all bindings under which grants allow what the page tells: one less, and the scope is another one."""
    cut: bool = False
    """Whether there is more than was asked about."""

    @classmethod
    def of(cls, subject: str, point: Point, chosen: str | None = None, told: Sequence[Action] = ACTIONS) -> "Scope":
        """Find out what is allowed anywhere, or in the chosen namespace; nothing at all is a refusal.

        `told` are the actions on whose namespaces the page rests.
        """
        bindings.require_profile()
        if chosen is not None and not re.match(limits.ADDRESS_KEY_PATTERN, chosen):
            raise AuthorityRefused
        found = _by_grants(subject, chosen, told) if authority.grants_decide() else _by_asking(subject, point, chosen)
        if not found.actions:
            raise AuthorityRefused
        return found

    def configured(self, action: Action) -> "QuerySet[ConfiguredBinding]":
        """The bindings of the host's table under which this is allowed."""
        if self.asked is not None:
            keys = [binding.namespace for binding in self.asked[action]]
            return ConfiguredBinding.objects.filter(namespace_key__in=keys, disabled_at__isnull=True)
        return _narrowed(ConfiguredBinding.granted(self.subject, action.value), self.chosen)

    def keys(self, action: Action) -> "QuerySet[Any]":
        return self.configured(action).values("namespace_key")

    def namespaces(self, action: Action) -> "QuerySet[Any]":
        """The retained rows of these namespaces; one under another binding than the configured one is left out."""
        if self.asked is not None:
            fits = Q(pk__in=[])
            for binding in self.asked[action]:
                fits |= Q(
                    key=binding.namespace,
                    binding_digest=binding.digest,
                    text_configuration=binding.text_configuration,
                )
            return Namespace.objects.filter(fits).values("id")
        fitting = self.configured(action).filter(
            namespace_key=OuterRef("key"),
            owner=OuterRef("owner"),
            policy_revision=OuterRef("policy_revision"),
            text_configuration=OuterRef("text_configuration"),
        )
        return Namespace.objects.filter(Exists(fitting), profile=limits.PROFILE).values("id")


def _by_grants(subject: str, chosen: str | None, told: Sequence[Action]) -> Scope:
    with reading():
        found = ConfiguredBinding.granted_somewhere(subject, [*ACTIONS], whole=[*told], chosen=chosen)
    whole = tuple(found.get(action) for action in told)
    return Scope(subject, chosen, frozenset(map(Action, found)), None, whole)


def _narrowed(configured: "QuerySet[ConfiguredBinding]", chosen: str | None) -> "QuerySet[ConfiguredBinding]":
    return configured if chosen is None else configured.filter(namespace_key=chosen)


def _by_asking(subject: str, point: Point, chosen: str | None) -> Scope:
    with reading():
        source = bindings.source()
        if chosen is None:
            served = source.served("", limits.PAGE_SIZE_MAX + 1)
        else:
            served = list(source.find_all([chosen]).values())
    looked_at = served[: limits.PAGE_SIZE_MAX]
    asked = [(action, binding) for action in ACTIONS for binding in looked_at]
    answers = authority.decide([_question(subject, *one) for one in asked], point)
    allowed: dict[Action, tuple[Binding, ...]] = dict.fromkeys(ACTIONS, ())
    for (action, binding), yes in zip(asked, answers, strict=True):
        if yes:
            allowed[action] += (binding,)
    somewhere = frozenset(action for action, found in allowed.items() if found)
    return Scope(subject, chosen, somewhere, allowed, cut=len(served) > len(looked_at))


def _question(subject: str, action: Action, binding: Binding) -> AuthorityQuestion:
    about = canonical.lookup_digest(action, binding.namespace, {"part": "admin"})
    return Caller(subject, binding).asks(action, about=about).asked
