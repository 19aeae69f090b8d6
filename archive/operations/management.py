"""Who may do what in a namespace, changed through a page: the host's own acts, asked about like any other (5.15).

A token opens the namespaces that it names, as far as its subject's grants go. To issue or end one is asked in all of
them, so that whoever grants in one namespace gets no key to another. Nor is it told who there is in another.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from django.db.models import Q

from archive import authority, bindings, canonical, limits
from archive.authority import Action, Caller, Point
from archive.bindings import Binding, TableBindings
from archive.models import ConfiguredBinding, Grant, Principal, Role, Token
from archive.models.columns import CLOCK
from archive.operations import host
from archive.operations.host import IssuedToken
from archive.refusals import AuthorityRefused, BindingMismatch, Fault, InvalidRequest, RecordAbsent
from archive.requests import Checker
from archive.transactions import host_write, moment, read_only, reading

T = TypeVar("T")

DAYS_MAX: Final = 3_650
_CONFIGURED: Final = ("owner", "policy_revision", "text_configuration", "second_person", "generation")
NAMESPACES_ASKED: Final = 1_000
"""In so many namespaces at most is somebody asked about at once. Who holds grants in more gets tokens from the host."""


@dataclass(frozen=True, slots=True)
class Key:
    """A token as somebody sees it who grants in one of its namespaces."""

    token: Token
    namespaces: tuple[str, ...]
    """Those of its namespaces in which the asker may grant, and this one; nothing is told of others."""
    everywhere: bool
    """Whether the host made it for every namespace."""
    managed: bool
    """Whether the asker may end it: who may grant in all of its namespaces."""


@dataclass(frozen=True, slots=True)
class Person:
    """A subject in one namespace: what it may do, and by which tokens it comes."""

    subject: str
    active: bool
    roles: tuple[str, ...]
    """Roles that it holds whole."""
    grants: tuple[Grant, ...]
    tokens: tuple[Key, ...]

    beyond_roles: tuple[str, ...]
    """Actions that no whole role explains."""
    ends_at: datetime | None
    """When the first of its grants runs out, if any does."""


@dataclass(frozen=True, slots=True)
class People:
    """One page of the subjects of a namespace, by name; `after` is the last of them where more follow."""

    people: tuple[Person, ...]
    roles: tuple[tuple[str, tuple[str, ...]], ...]
    next_after: str | None


def people(caller: Caller, *, after: str | None = None) -> People:
    """Show who holds current grants here, and their live tokens by prefix; asked as `grant`, at A0 and A2."""
    if after is not None:
        _well_named(after)
    return _asked(caller, Action.GRANT, {"list": "people", "after": after}, lambda: _people(caller, after))


def give(caller: Caller, subject: str, names: Sequence[str], *, days: int | None = None) -> list[Grant]:
    """Allow roles or actions to a subject that is known here, under the caller's binding, for some days or for good.

    A subject that was never granted anything here is refused in one way, whether it acts elsewhere or nowhere.
    """
    _well_named(subject)
    check = Checker()
    if days is not None:
        check.within("/days", days, 1, DAYS_MAX)
    check.settle()
    actions = host.actions_of(names)

    def act() -> list[Grant]:
        with reading():
            known = Grant.objects.filter(subject=subject, namespace_key=caller.namespace).exists()
            if not known:
                raise InvalidRequest([Fault("/subject", "new here; the host gives the first role: lychd grant give")])
            until = None if days is None else moment() + timedelta(days=days)
        return host.grant(subject, caller.binding, actions, by=caller.subject, valid_until=until)

    keys = {"act": "give", "days": days, **_proposal(caller, subject, actions)}
    return _asked(caller, Action.GRANT, keys, act)


def withdraw(caller: Caller, subject: str, names: Sequence[str]) -> int:
    """End every grant of these roles or actions to a subject here, from this moment; returns how many ended."""
    _well_named(subject)
    actions = host.actions_of(names)
    keys = {"act": "withdraw", **_proposal(caller, subject, actions)}
    return _asked(caller, Action.GRANT, keys, lambda: host.withdraw(subject, caller.namespace, actions))


def issue(
    caller: Caller,
    subject: str,
    *,
    also_for: Collection[str] = (),
    name: str = "",
    days: int = limits.TOKEN_LIFETIME_DAYS_DEFAULT,
) -> IssuedToken:
    """Make a token for a subject of this namespace; its secret leaves once, and only if the last answer is yes.

    It opens this namespace and those named besides, in each of which the caller has to be allowed to grant.
    """
    _well_named(subject)
    keys = {caller.namespace, *also_for}

    def act() -> IssuedToken:
        if not _stands_in(subject, caller.namespace):
            raise AuthorityRefused
        _require_everywhere(caller, keys, Point.A0)
        issued = host.issue_token(subject, by=caller.subject, namespaces=keys, name=name, days=days)
        _require_everywhere(caller, keys, Point.A2)
        return issued

    proposal = {"act": "issue", "subject": subject, "namespaces": sorted(keys), "days": days}
    return _asked(caller, Action.GRANT, proposal, act)


def end_token(caller: Caller, prefix: str) -> Token:
    """End a token of this namespace now; raises `RecordAbsent`."""

    def act() -> Token:
        with reading():
            found = Token.objects.filter(prefix=prefix, revoked_at__isnull=True).select_related("principal").first()
        if found is None or caller.namespace not in (keys := _opened([found])[found.id]):
            raise RecordAbsent
        _require_everywhere(caller, keys, Point.A0)
        return host.revoke_token(prefix)

    if "\x00" in prefix or len(prefix) > limits.IDENTIFIER_MAX:
        raise RecordAbsent
    return _asked(caller, Action.GRANT, {"act": "end token", "prefix": prefix}, act)


def tag_of(binding: Binding) -> str:
    """Name one whole configuration, so that a change can say which one it was decided on."""
    keys = {
        **binding.fields(),
        "text_configuration": binding.text_configuration,
        "second_person": binding.second_person,
        "generation": binding.generation,
    }
    return canonical.lookup_digest(Action.CONFIGURE_NAMESPACE, binding.namespace, keys)


def text_configurations(caller: Caller) -> list[str]:
    """Name what a namespace can be configured to cut words by, to whoever may configure this one."""

    def look() -> list[str]:
        with reading():
            return host.text_configurations()

    return _asked(caller, Action.CONFIGURE_NAMESPACE, {"part": "settings"}, look)


def changeable() -> bool:
    """Say whether bindings stand in the host's table, where they can be changed, or somewhere else."""
    return isinstance(bindings.source(), TableBindings)


def configure(caller: Caller, wanted: Binding, *, seen: str) -> bool:
    """Serve this namespace under another configuration from now on; False where it stands so already (0.2, 0.14).

    `seen` is the tag of the configuration that the change was decided on; another one is `binding_mismatch`.
    """
    if tag_of(wanted) != tag_of(caller.binding):
        host.check_configuration(wanted)
    return _configured(caller, seen, None if tag_of(wanted) == tag_of(caller.binding) else wanted)


def disable(caller: Caller, *, seen: str) -> None:
    """Stop serving this namespace; its rows stay, and the host can serve it again."""
    _configured(caller, seen, None, disabled=True)


def _configured(caller: Caller, seen: str, wanted: Binding | None, *, disabled: bool = False) -> bool:
    """Change exactly the row that the caller met at the door, in one statement."""
    met = caller.binding

    def act() -> bool:
        if not changeable():
            raise InvalidRequest([Fault("", "this namespace is configured in the settings of the service")])
        if wanted is None and not disabled:
            return False
        if seen != tag_of(met):
            raise BindingMismatch
        with host_write():
            now = moment()
            changes = {"disabled_at": now} if wanted is None else {name: getattr(wanted, name) for name in _CONFIGURED}
            changed = ConfiguredBinding.objects.filter(
                namespace_key=met.namespace,
                disabled_at__isnull=True,
                **{name: getattr(met, name) for name in _CONFIGURED},
            ).update(**changes, configured_by=caller.subject, configured_at=now)
        if not changed:
            raise BindingMismatch
        return True

    keys = {"act": "disable" if disabled else "configure", "seen": seen}
    return _asked(caller, Action.CONFIGURE_NAMESPACE, {**keys, "wanted": wanted and tag_of(wanted)}, act)


def may(caller: Caller, action: Action) -> bool:
    """Say whether to offer the way to such a page; the page asks for itself."""
    asked = caller.asks(action, about=canonical.lookup_digest(action, caller.namespace, {"part": "offer"})).asked
    return authority.decide([asked], Point.A0)[0]


# --- within ----------------------------------------------------------------------------------------------------------


def _asked(caller: Caller, action: Action, keys: dict[str, Any], act: Callable[[], T]) -> T:
    """Ask about the proposal, act in the host's tables alone, ask again before anything of it leaves."""
    question = caller.asks(action, about=canonical.lookup_digest(action, caller.namespace, keys))
    question.require(Point.A0)
    done = act()
    question.require(Point.A2)
    return done


def _well_named(subject: str) -> None:
    check = Checker()
    check.identifier("/subject", subject)
    check.settle()


def _proposal(caller: Caller, subject: str, actions: Sequence[Action]) -> dict[str, Any]:
    return {
        "subject": subject,
        "owner": caller.binding.owner,
        "policy_revision": caller.binding.policy_revision,
        "actions": [action.value for action in actions],
    }


def _standing() -> Q:
    """Grants that hold now or will, whoever's."""
    return Q(revoked_at__isnull=True) & (Q(valid_until__isnull=True) | Q(valid_until__gt=CLOCK))


def _stands_in(subject: str, namespace: str) -> bool:
    with reading():
        return Grant.objects.filter(_standing(), subject=subject, namespace_key=namespace).exists()


def _namespaces_of(subjects: Iterable[str]) -> dict[str, set[str]]:
    """The namespaces in which each of them holds or will hold anything, one more than may be asked about at most."""
    found: dict[str, set[str]] = {subject: set() for subject in subjects}
    with reading():
        for subject, key in Grant.standing(list(found), limit=NAMESPACES_ASKED + 1):
            found[subject].add(key)
    return found


def _opened(tokens: Sequence[Token]) -> dict[int, set[str]]:
    """The namespaces that each of these tokens opens now or will; of one for all, those of its subject's grants."""
    everywhere = _namespaces_of({one.principal.subject for one in tokens if one.namespaces is None})
    return {
        one.id: everywhere[one.principal.subject] if one.namespaces is None else set(one.namespaces) for one in tokens
    }


def _managed(caller: Caller, keys: set[str], point: Point) -> set[str]:
    """Of these namespaces, those in which the caller may grant; one that is not served has nobody to ask."""
    with reading():
        served = bindings.source().find_all(keys)
    asked = [
        Caller(caller.subject, served[key])
        .asks(Action.GRANT, about=canonical.lookup_digest(Action.GRANT, key, {"part": "tokens"}))
        .asked
        for key in sorted(served)
    ]
    answers = authority.decide(asked, point)
    return {question.namespace for question, yes in zip(asked, answers, strict=True) if yes}


def _few(namespaces: dict[int, set[str]]) -> set[str]:
    """As many of these namespaces as may be asked about at once, of one token after another, all of it or nothing."""
    taken: set[str] = set()
    for keys in namespaces.values():
        if len(taken | keys) <= NAMESPACES_ASKED:
            taken |= keys
    return taken


def _require_everywhere(caller: Caller, keys: set[str], point: Point) -> None:
    if len(keys) > NAMESPACES_ASKED or _managed(caller, keys, point) != keys:
        raise AuthorityRefused


def _people(caller: Caller, after: str | None) -> People:
    with read_only():
        roles = tuple(
            (name, tuple(actions)) for name, actions in Role.objects.order_by("name").values_list("name", "actions")
        )
        here = Grant.objects.filter(
            _standing(),
            namespace_key=caller.namespace,
            owner=caller.binding.owner,
            policy_revision=caller.binding.policy_revision,
        )
        subjects = here.order_by("subject").values_list("subject", flat=True).distinct()
        if after is not None:
            subjects = subjects.filter(subject__gt=after)
        named = list(subjects[: limits.PAGE_SIZE_DEFAULT + 1])
        shown = named[: limits.PAGE_SIZE_DEFAULT]
        grants = list(here.filter(subject__in=shown).order_by("subject", "action", "id"))
        principals = {one.subject: one for one in Principal.objects.filter(subject__in=shown)}
        tokens = list(
            Token.objects.defer("digest")
            .filter(Q(namespaces__isnull=True) | Q(namespaces__contains=[caller.namespace]))
            .filter(principal__subject__in=shown, revoked_at__isnull=True, expires_at__gt=CLOCK)
            .select_related("principal")
            .order_by("id")
        )
    opened = _opened(tokens)
    managed = _managed(caller, _few(opened), Point.A0)
    keys = [
        Key(
            token=one,
            namespaces=tuple(sorted(opened[one.id] & {caller.namespace, *managed})),
            everywhere=one.namespaces is None,
            managed=opened[one.id] <= managed,
        )
        for one in tokens
    ]
    return People(
        people=tuple(
            _person(
                principals[subject],
                [one for one in grants if one.subject == subject],
                [one for one in keys if one.token.principal.subject == subject],
                roles,
            )
            for subject in shown
        ),
        roles=roles,
        next_after=shown[-1] if len(named) > len(shown) else None,
    )


def _person(
    principal: Principal,
    grants: list[Grant],
    tokens: list[Key],
    roles: tuple[tuple[str, tuple[str, ...]], ...],
) -> Person:
    held = {grant.action for grant in grants}
    whole = tuple(name for name, actions in roles if held.issuperset(actions))
    covered = {action for name, actions in roles if name in whole for action in actions}
    return Person(
        subject=principal.subject,
        active=principal.active,
        roles=whole,
        grants=tuple(grants),
        tokens=tuple(tokens),
        beyond_roles=tuple(sorted(held - covered)),
        ends_at=min((grant.valid_until for grant in grants if grant.valid_until is not None), default=None),
    )
