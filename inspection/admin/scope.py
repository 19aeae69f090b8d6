"""What somebody may look at: the namespaces in which the authorizer allows each way of inspecting."""

from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from archive import authority, bindings, canonical
from archive.authority import Action, AuthorityQuestion, Caller, Point
from archive.bindings import Binding
from archive.models import Namespace
from archive.refusals import AuthorityRefused
from inspection.discovery import served_bindings

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
    allowed: dict[Action, tuple[Binding, ...]]

    @classmethod
    def of(cls, subject: str, point: Point) -> "Scope":
        """Ask for every action in every served namespace in which the subject holds a grant, all at once."""
        bindings.require_profile()
        served = served_bindings(subject, ACTIONS)
        asked = [(action, binding) for action in ACTIONS for binding in served]
        answers = authority.decide([_question(subject, *one) for one in asked], point)
        allowed: dict[Action, tuple[Binding, ...]] = dict.fromkeys(ACTIONS, ())
        for (action, binding), yes in zip(asked, answers, strict=True):
            if yes:
                allowed[action] += (binding,)
        if not any(allowed.values()):
            raise AuthorityRefused
        return cls(subject, allowed)

    def bindings(self, action: Action) -> tuple[Binding, ...]:
        return self.allowed[action]

    def keys(self, action: Action) -> list[str]:
        return [binding.namespace for binding in self.allowed[action]]

    def namespaces(self, action: Action) -> list[int]:
        """The retained rows of these namespaces; one under another binding than the configured one is left out."""
        fits = Q(pk__in=[])
        for binding in self.allowed[action]:
            fits |= Q(
                key=binding.namespace,
                binding_digest=binding.digest,
                text_configuration=binding.text_configuration,
            )
        return list(Namespace.objects.filter(fits).values_list("id", flat=True))


def _question(subject: str, action: Action, binding: Binding) -> AuthorityQuestion:
    about = canonical.lookup_digest(action, binding.namespace, {"part": "admin"})
    return Caller(subject, binding).asks(action, about=about).asked
