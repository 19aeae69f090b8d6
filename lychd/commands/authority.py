"""The host's acts about who acts: principals, grants, tokens. No authorizer is asked; each row names the host."""

import argparse
from datetime import datetime
from typing import Any, Final

from django.contrib.auth import get_user_model

from archive import canonical
from archive.models import Grant, Principal, Token
from archive.operations import host
from archive.operations.host import IssuedToken
from archive.refusals import Fault, InvalidRequest
from archive.transactions import moment, reading
from lychd.commands import acting
from lychd.commands.telling import Told, pairs, table

_NAMED: Final = 5
"""So many namespaces of a token are named in its line; its JSON names all."""

# --- principals ------------------------------------------------------------------------------------------------------


def add_principal(options: argparse.Namespace) -> Told:
    """Make a principal, or link one to a user."""
    user_id = None
    if options.user is not None:
        with reading():
            user = get_user_model().objects.filter(username=options.user).first()
        if user is None:
            raise InvalidRequest([Fault("/user", "no such user; `lychd createsuperuser` or `lychd init` makes one")])
        user_id = user.pk
    return _principal(host.map_principal(options.subject, user_id=user_id))


def disable_principal(options: argparse.Namespace) -> Told:
    """Switch a principal off."""
    return _principal(host.set_active(options.subject, active=False))


def enable_principal(options: argparse.Namespace) -> Told:
    """Switch a principal on again."""
    return _principal(host.set_active(options.subject, active=True))


def _principal(principal: Principal) -> Told:
    told = _principal_json(principal)
    return Told({"principal": told}, pairs((name, _yes_no(value)) for name, value in told.items()))


def _principal_json(principal: Principal) -> dict[str, Any]:
    with reading():
        user = principal.user
    return {
        "subject": principal.subject,
        "active": principal.active,
        "user": None if user is None else user.get_username(),
        "created_at": canonical.instant(principal.created_at),
    }


def list_principals(options: argparse.Namespace) -> Told:
    """List everybody who acts."""
    with reading():
        told = [_principal_json(one) for one in Principal.objects.select_related("user").order_by("subject")]
    heads = ("subject", "active", "user", "created at")
    rows = [(one["subject"], _yes_no(one["active"]), one["user"], one["created_at"]) for one in told]
    return Told({"items": told}, table(heads, rows, empty="No principals; `lychd principal add` makes one."))


def _yes_no(value: object) -> object:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


# --- grants ----------------------------------------------------------------------------------------------------------


def give_grant(options: argparse.Namespace) -> Told:
    """Allow roles or actions under the binding that is configured now."""
    binding = acting.binding(options)
    actions = host.actions_of(options.actions)
    rows = host.grant(options.subject, binding, actions, by=host.host_actor(), valid_until=options.until)
    given = [row.action for row in rows]
    held = [action.value for action in actions if action.value not in given]
    text = [f"{options.subject} in {binding.namespace}, under {binding.policy_revision}"]
    text += [f"  given        {', '.join(given)}"] if given else []
    text += [f"  held before  {', '.join(held)}"] if held else []
    document = {"subject": options.subject, "namespace": binding.namespace, "given": given, "held_before": held}
    return Told(document, "\n".join(text))


def list_grants(options: argparse.Namespace) -> Told:
    """List the grants that hold at this moment."""
    with reading():
        rows = Grant.current().order_by("namespace_key", "subject", "action")
        if options.subject is not None:
            rows = rows.filter(subject=options.subject)
        if options.namespace is not None:
            rows = rows.filter(namespace_key=options.namespace)
        told = [
            {
                "subject": row.subject,
                "namespace": row.namespace_key,
                "action": row.action,
                "purpose": row.purpose,
                "owner": row.owner,
                "policy_revision": row.policy_revision,
                "valid_until": None if row.valid_until is None else canonical.instant(row.valid_until),
                "granted_by": row.granted_by,
            }
            for row in rows
        ]
    heads = ("namespace", "subject", "action", "policy revision", "valid until", "granted by")
    names = ("namespace", "subject", "action", "policy_revision", "valid_until", "granted_by")
    lines = table(heads, [[one[name] for name in names] for one in told], empty="No grant holds.")
    return Told({"items": told}, lines)


def withdraw_grant(options: argparse.Namespace) -> Told:
    """End grants now."""
    binding = acting.binding(options)
    actions = host.actions_of(options.actions)
    ended = host.withdraw(options.subject, binding.namespace, actions)
    document = {"subject": options.subject, "namespace": binding.namespace, "withdrawn": ended}
    return Told(document, f"{ended} grants of {options.subject} in {binding.namespace} ended.")


# --- tokens ----------------------------------------------------------------------------------------------------------


def create_token(options: argparse.Namespace) -> Told:
    """Make a token and show its secret, this once."""
    namespaces = None if options.all_namespaces else acting.namespaces(options)
    actor = host.host_actor()
    return _issued(
        host.issue_token(options.subject, by=actor, namespaces=namespaces, name=options.name, days=options.days)
    )


def rotate_token(options: argparse.Namespace) -> Told:
    """Make a successor of a token and show its secret, this once."""
    return _issued(host.rotate_token(options.prefix, by=host.host_actor(), overlap_seconds=options.overlap))


def _issued(issued: IssuedToken) -> Told:
    told = _token_json(issued.token)
    opens = "every namespace" if issued.token.namespaces is None else ", ".join(told["namespaces"])
    text = f"{issued.secret}\n\nThis is the only time it is shown. It is for {opens} and ends at {told['expires_at']}."
    return Told({"token": told, "secret": issued.secret}, text)


def revoke_token(options: argparse.Namespace) -> Told:
    """End a token now."""
    told = _token_json(host.revoke_token(options.prefix))
    return Told({"token": told}, f"{told['prefix']} of {told['subject']} ended at {told['revoked_at']}.")


def list_tokens(options: argparse.Namespace) -> Told:
    """List tokens by their beginnings."""
    with reading():
        rows = Token.objects.select_related("principal").order_by("principal__subject", "created_at")
        if options.subject is not None:
            rows = rows.filter(principal__subject=options.subject)
        now = moment()
        told = [{**_token_json(row), "standing": _standing(row, now)} for row in rows]
    heads = ("token", "subject", "namespaces", "name", "standing", "expires at", "revoked at", "last used at")
    names = ("prefix", "subject", "namespaces", "name", "standing", "expires_at", "revoked_at", "last_used_at")
    lines = [[_few(one[name]) if name == "namespaces" else one[name] for name in names] for one in told]
    return Told({"items": told}, table(heads, lines, empty="No tokens; `lychd token create` makes one."))


def _few(keys: list[str]) -> str:
    """Name some namespaces and count the rest."""
    more = len(keys) - _NAMED
    return ", ".join(keys[:_NAMED]) + (f" and {more} more" if more > 0 else "") or "none"


def _standing(token: Token, now: datetime) -> str:
    """Say in a word how a token stands, and when it has to be followed by another."""
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at <= now:
        return "expired"
    return "ends soon" if token.ends_soon(now) else "good"


def _token_json(token: Token) -> dict[str, Any]:
    times = ("created_at", "expires_at", "revoked_at", "last_used_at")
    return {
        "prefix": token.prefix,
        "subject": token.principal.subject,
        "namespaces": ["*"] if token.namespaces is None else token.namespaces,
        "name": token.name,
        "created_by": token.created_by,
        **{name: None if (moment := getattr(token, name)) is None else canonical.instant(moment) for name in times},
    }
