"""Which namespaces somebody may choose from: a page of them by key, however many there are.

Where the grants decide, they are walked in the database. Another authorizer is asked about one page of what is served
after another, until enough was allowed.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from archive import authority, bindings, canonical, limits
from archive.authority import Action, AuthorityQuestion, Caller, Point
from archive.bindings import Binding, binding_of
from archive.models import Grant
from archive.requests import Checker
from archive.transactions import reading

PAGES_ASKED: Final = 20
"""So many pages of what is served are asked about at most, before whoever asks has to say how the key begins."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One page of namespaces; `after` is where the next one begins."""

    bindings: tuple[Binding, ...]
    after: str | None

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(binding.namespace for binding in self.bindings)


def choose(
    subject: str,
    action: Action | None = None,
    *,
    within: Collection[str] | None = None,
    starting: str = "",
    after: str = "",
    limit: int = limits.PAGE_SIZE_DEFAULT,
) -> Choice:
    """Return the served namespaces in which a subject is allowed an action, or any, whose keys begin as said.

    `within` narrows it to what a token is for.
    """
    check = Checker()
    for name, value in (("starting", starting), ("after", after)):
        if value:
            check.address_key(f"/{name}", value)
    check.settle()
    bindings.require_profile()
    if authority.grants_decide():
        with reading():
            rows = Grant.walked(
                subject,
                action=None if action is None else action.value,
                within=within,
                after=after,
                starting=starting,
                limit=limit + 1,
            )
        found = [binding_of(row) for row in rows]
        more = found[limit - 1].namespace if len(found) > limit else None
        return Choice(tuple(found[:limit]), more)
    return _asked(subject, tuple(Action) if action is None else (action,), within, starting, after, limit)


def _asked(
    subject: str, actions: Sequence[Action], within: Collection[str] | None, starting: str, after: str, limit: int
) -> Choice:
    found: list[Binding] = []
    for _ in range(PAGES_ASKED):
        with reading():
            served = bindings.source().served(after, limits.PAGE_SIZE_MAX, starting)
        asked = [
            (binding, _choosing(Caller(subject, binding), action))
            for binding in served
            if within is None or binding.namespace in within
            for action in actions
        ]
        answers = authority.decide([question for _, question in asked], Point.A0)
        allowed = {binding.namespace for (binding, _), yes in zip(asked, answers, strict=True) if yes}
        found += [binding for binding in served if binding.namespace in allowed]
        if len(found) > limit:
            return Choice(tuple(found[:limit]), found[limit - 1].namespace)
        if len(served) < limits.PAGE_SIZE_MAX:
            return Choice(tuple(found), None)
        after = served[-1].namespace
    return Choice(tuple(found), after)


def _choosing(caller: Caller, action: Action) -> AuthorityQuestion:
    return caller.asks(action, about=canonical.lookup_digest(action, caller.namespace, {"part": "choice"})).asked
