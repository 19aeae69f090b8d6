"""The host's own acts: principals, grants, tokens, served namespaces (0.13, 5.15).

Whoever can run these with the operator's credentials is the host, so no authorizer is asked; each row names
`host:<operating-system user>` or the subject that acted. Nothing here touches archive material.
"""

import getpass
import hashlib
import os
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.db.models import Q, Value
from django.db.models.functions import Least

from archive import limits
from archive.authority import PURPOSE_OF, Action
from archive.bindings import NO_GENERATION, Binding
from archive.gates import gate
from archive.models import ConfiguredBinding, Grant, Principal, Role, Token
from archive.models.columns import CLOCK
from archive.refusals import Fault, InvalidRequest, RecordAbsent
from archive.requests import Checker
from archive.transactions import host_write, moment, reading

TOKEN_PREFIX: Final = "lychd_"  # noqa: S105 - a mark that secret scanners can look for, no secret
_PREFIX_LENGTH: Final = len(TOKEN_PREFIX) + 8


def host_actor() -> str:
    """Name who runs a host command."""
    try:
        return f"host:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"host:uid-{os.getuid()}"


def map_principal(subject: str, *, user_id: int | None = None) -> Principal:
    """Make or return the principal with this subject, and link it to a user if one is named."""
    check = Checker()
    check.identifier("/subject", subject)
    check.settle()
    with host_write():
        principal, _ = Principal.objects.get_or_create(subject=subject)
        if user_id is not None and principal.user_id != user_id:
            if principal.linked_at is not None:
                raise InvalidRequest([Fault("/user", "this subject stands for another user, or for one that is gone")])
            if Principal.objects.filter(user_id=user_id).exists():
                raise InvalidRequest([Fault("/user", "this user already has a principal")])
            principal.user_id = user_id
            principal.save(update_fields=["user"])
        return principal


def set_active(subject: str, *, active: bool) -> Principal:
    """Switch a principal off or on; while off, every question about it is refused."""
    with host_write():
        principal = Principal.objects.filter(subject=subject).first()
        if principal is None:
            raise RecordAbsent
        principal.active = active
        principal.save(update_fields=["active"])
        return principal


def actions_of(names: Iterable[str]) -> list[Action]:
    """Turn action names and role names into actions, in a stable order."""
    with reading():
        roles = dict(Role.objects.values_list("name", "actions"))
    actions: set[Action] = set()
    for name in names:
        if name in roles:
            actions.update(Action(action) for action in roles[name])
        elif name in {action.value for action in Action}:
            actions.add(Action(name))
        else:
            known = ", ".join([*sorted(roles), *(action.value for action in Action)])
            raise InvalidRequest([Fault("/actions", f"no role or action of that name; there are: {known}")])
    return sorted(actions)


def grant(
    subject: str,
    binding: Binding,
    actions: Sequence[Action],
    *,
    by: str,
    valid_until: datetime | None = None,
) -> list[Grant]:
    """Allow actions to a subject under one binding; what is already allowed as long gets no second row."""
    check = Checker()
    check.moment("/valid_until", valid_until)
    check.settle()
    with host_write():
        if not Principal.objects.filter(subject=subject).exists():
            raise InvalidRequest([Fault("/subject", "no such principal; make it with `lychd principal add`")])
        if valid_until is not None and valid_until <= moment():
            raise InvalidRequest([Fault("/valid_until", "a time in the future")])
        alike = _grants_of(subject, binding).filter(
            Q(valid_until__isnull=True)
            if valid_until is None
            else Q(valid_until__isnull=True) | Q(valid_until__gte=valid_until)
        )
        held = set(alike.values_list("action", flat=True))
        rows = [
            Grant(
                subject=subject,
                namespace_key=binding.namespace,
                owner=binding.owner,
                purpose=PURPOSE_OF[action].value,
                policy_revision=binding.policy_revision,
                action=action.value,
                valid_until=valid_until,
                granted_by=by,
            )
            for action in actions
            if action.value not in held
        ]
        return Grant.objects.bulk_create(rows)


def withdraw(subject: str, namespace: str, actions: Sequence[Action]) -> int:
    """End every grant of these actions in a namespace from this moment; returns how many ended."""
    standing = Grant.objects.filter(
        subject=subject,
        namespace_key=namespace,
        action__in=[action.value for action in actions],
        revoked_at__isnull=True,
    ).order_by("id")
    ended = 0
    with host_write():
        # Again until none is left: a migration for which this waited may have carried grants over meanwhile, in rows
        # that the statement before could not see.
        while found := list(standing.select_for_update().values_list("id", flat=True)):
            ended += Grant.objects.filter(id__in=found).update(revoked_at=CLOCK)
        gate("withdrawn")
    return ended


def _grants_of(subject: str, binding: Binding):  # type: ignore[no-untyped-def]
    return Grant.objects.filter(
        subject=subject,
        namespace_key=binding.namespace,
        owner=binding.owner,
        policy_revision=binding.policy_revision,
        revoked_at__isnull=True,
        valid_from__lte=CLOCK,
    )


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A fresh token. `secret` is shown once and kept nowhere."""

    token: Token
    secret: str

    def __repr__(self) -> str:
        return f"IssuedToken({self.token.prefix})"


def digest_of_secret(secret: str) -> str:
    """Return what is stored instead of a secret: its sha256 (the secret has 256 random bits, so no salt is needed)."""
    return hashlib.sha256(secret.encode("utf-8")).hexdigest()


def issue_token(
    subject: str,
    *,
    by: str,
    namespaces: Collection[str] | None,
    name: str = "",
    days: int = limits.TOKEN_LIFETIME_DAYS_DEFAULT,
) -> IssuedToken:
    """Make a bearer token for a principal, valid for `days` and for these namespaces; None is every one."""
    check = Checker()
    check.within("/days", days, 1, limits.TOKEN_LIFETIME_DAYS_MAX)
    check.whole_text("/name", name)
    if len(name) > limits.IDENTIFIER_MAX:
        check.fault("/name", f"at most {limits.IDENTIFIER_MAX} characters")
    if namespaces is not None:
        if not 1 <= len(namespaces) <= limits.TOKEN_NAMESPACES_MAX:
            check.fault("/namespaces", f"1 to {limits.TOKEN_NAMESPACES_MAX} of them")
        for namespace in namespaces:
            check.address_key("/namespaces", namespace)
    check.settle()
    with host_write():
        return _issued(subject, by=by, namespaces=namespaces, name=name, days=days)


def _issued(subject: str, *, by: str, namespaces: Collection[str] | None, name: str, days: int) -> IssuedToken:
    principal = Principal.objects.filter(subject=subject, active=True).first()
    if principal is None:
        raise InvalidRequest([Fault("/subject", "no active principal has it; `lychd principal add` makes one")])
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = Token.objects.create(
        principal=principal,
        name=name,
        digest=digest_of_secret(secret),
        prefix=secret[:_PREFIX_LENGTH],
        namespaces=None if namespaces is None else sorted(set(namespaces)),
        created_by=by,
        expires_at=moment() + timedelta(days=days),
    )
    return IssuedToken(token, secret)


def rotate_token(
    prefix: str, *, by: str, overlap_seconds: int = limits.TOKEN_ROTATION_OVERLAP_SECONDS_DEFAULT
) -> IssuedToken:
    """Issue a successor for the same namespaces; the old token goes on for `overlap_seconds`, so nobody is cut off."""
    check = Checker()
    check.within("/overlap_seconds", overlap_seconds, 0, limits.TOKEN_LIFETIME_DAYS_MAX * 86_400)
    check.settle()
    old = _live_token(prefix)
    # Rounded, since a token's end is reckoned a moment before its row is stamped.
    days = round((old.expires_at - old.created_at) / timedelta(days=1))
    days = min(max(1, days), limits.TOKEN_LIFETIME_DAYS_MAX)
    with host_write():
        # Judged and held by one statement: revoked meanwhile, it has no successor; rotated meanwhile, its end stays.
        live = Token.objects.filter(id=old.id, revoked_at__isnull=True, expires_at__gt=CLOCK)
        if not live.update(expires_at=Least("expires_at", moment() + timedelta(seconds=overlap_seconds))):
            raise RecordAbsent
        return _issued(old.principal.subject, by=by, namespaces=old.namespaces, name=old.name, days=days)


def revoke_token(prefix: str) -> Token:
    """End a token now."""
    token = _live_token(prefix)
    with host_write():
        Token.objects.filter(id=token.id, revoked_at__isnull=True).update(revoked_at=CLOCK)
        token.refresh_from_db()
    return token


def token_used(token_id: int) -> None:
    """Note that a token was used just now, at most once in ten minutes; never for a refused call."""
    with host_write():
        Token.objects.filter(
            Q(last_used_at__isnull=True)
            | Q(last_used_at__lt=CLOCK - Value(timedelta(seconds=limits.TOKEN_LAST_USE_SECONDS))),
            id=token_id,
        ).update(last_used_at=CLOCK)


def _live_token(prefix: str) -> Token:
    live = Token.objects.filter(prefix=prefix, revoked_at__isnull=True, expires_at__gt=CLOCK)
    with reading():
        rows = list(live.select_related("principal")[:2]) if prefix.isascii() and "\x00" not in prefix else []
    if not rows:
        raise RecordAbsent
    if len(rows) > 1:
        raise InvalidRequest([Fault("/prefix", "names more than one token")])
    return rows[0]


def configure_namespace(
    namespace: str,
    *,
    owner: str,
    policy_revision: str,
    by: str,
    text_configuration: str = limits.DEFAULT_TEXT_CONFIGURATION,
    second_person: bool = False,
    generation: str | None = None,
) -> Binding:
    """Serve a namespace under this binding, or change the one that is configured.

    Material that is already retained stays under its old binding and refuses until it is migrated.
    """
    wanted = Binding(namespace, owner, policy_revision, text_configuration, second_person, generation=generation)
    check_configuration(wanted)
    with host_write():
        ConfiguredBinding.objects.update_or_create(
            namespace_key=namespace,
            defaults={
                "owner": owner,
                "policy_revision": policy_revision,
                "text_configuration": text_configuration,
                "second_person": second_person,
                "generation": generation,
                "configured_by": by,
                "configured_at": moment(),
                "disabled_at": None,
            },
        )
    return wanted


def check_configuration(wanted: Binding) -> None:
    """Refuse a configuration with a name that cannot be one, or with words that the server cannot cut."""
    check = Checker()
    check.address_key("/namespace", wanted.namespace)
    check.identifier("/owner", wanted.owner)
    check.identifier("/policy_revision", wanted.policy_revision)
    if wanted.generation not in (None, NO_GENERATION):
        check.identifier("/generation", wanted.generation)
    check.settle()
    with reading():
        if wanted.text_configuration not in text_configurations():
            raise InvalidRequest([Fault("/text_configuration", "no text search configuration of that name")])


def disable_namespace(namespace: str, *, by: str) -> None:
    """Stop serving a namespace; its rows stay, and it can be configured again."""
    with host_write():
        changed = ConfiguredBinding.objects.filter(namespace_key=namespace, disabled_at__isnull=True).update(
            disabled_at=moment(), configured_by=by, configured_at=moment()
        )
        if not changed:
            raise RecordAbsent


def text_configurations() -> list[str]:
    """Name every text search configuration that the server itself brings."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.cfgname FROM pg_catalog.pg_ts_config c JOIN pg_catalog.pg_namespace n ON n.oid = c.cfgnamespace"
            " WHERE n.nspname = 'pg_catalog' ORDER BY 1"
        )
        return [name for (name,) in cursor.fetchall()]
