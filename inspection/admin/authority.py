"""Who acts, what they were granted, and the tokens they act with."""

from typing import Any, Final

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, F, Func, OuterRef, Q, QuerySet

from archive.authority import Action
from archive.models import Grant, Principal, Role, Token
from inspection.admin.cells import age_of, by_key, time_of, words, yes
from inspection.admin.scope import Scope
from inspection.admin.site import Table, column
from inspection.templatetags.showing import breakable

_BOTH: Final = "ARRAY(SELECT unnest(%(expressions)s) ORDER BY 1)"


def _principals(scope: Scope, action: Action) -> "QuerySet[Any]":
    """Whoever was ever granted anything in these namespaces; nobody else is shown to be there."""
    return Principal.objects.filter(
        Exists(Grant.objects.filter(subject=OuterRef("subject"), namespace_key__in=scope.keys(action)))
    )


def _tokens(scope: Scope, action: Action) -> "QuerySet[Any]":
    """Tokens of these principals for these namespaces; what else they are for is not told."""
    here = ArraySubquery(scope.keys(action))
    told = Func(F("namespaces"), here, template=_BOTH, arg_joiner=") INTERSECT SELECT unnest(")
    return Token.objects.filter(
        Q(namespaces__isnull=True) | Q(namespaces__overlap=here), principal__in=_principals(scope, action)
    ).annotate(told=told)


def _opens(token: Any) -> str:
    return "every namespace" if token.namespaces is None else words(token.told)


_opens.short_description = "Namespaces"  # type: ignore[attr-defined]
_opens.where = "namespaces"  # type: ignore[attr-defined]


def _roles(scope: Scope, action: Action) -> "QuerySet[Any]":
    return Role.objects.all()


TABLES: Final = (
    Table(
        Grant,
        "Grants",
        "One action for one subject, given and withdrawn",
        Action.GRANT,
        by_key(Grant),
        (
            column("Subject", "subject", breakable),
            column("Action", "action"),
            column("Namespace", "namespace_key", breakable),
            column("Given by", "granted_by", breakable),
            age_of("Withdrawn", "revoked_at"),
            age_of("Age", "created_at"),
        ),
        (
            column("Purpose", "purpose"),
            column("Owner", "owner", breakable),
            column("Policy", "policy_revision", breakable),
            time_of("From", "valid_from"),
            time_of("Until", "valid_until"),
            time_of("Withdrawn at", "revoked_at"),
            time_of("Given", "created_at"),
        ),
        ("-id",),
        ("subject", "action"),
    ),
    Table(
        Principal,
        "Principals",
        "Who acts, under which subject",
        Action.GRANT,
        _principals,
        (column("Subject", "subject", breakable), column("Active", "active", yes), age_of("Age", "created_at")),
        (column("User", "user_id"), time_of("First linked", "linked_at"), time_of("Made", "created_at")),
        ("subject",),
        ("subject",),
    ),
    Table(
        Token,
        "Tokens",
        "By prefix; the secret is kept nowhere and its digest shown nowhere",
        Action.GRANT,
        _tokens,
        (
            column("Prefix", "prefix"),
            column("Subject", "principal.subject", breakable),
            _opens,
            column("Name", "name", breakable),
            age_of("Last used", "last_used_at"),
            time_of("Ends", "expires_at"),
        ),
        (
            column("Made by", "created_by", breakable),
            time_of("Revoked", "revoked_at"),
            time_of("Last used at", "last_used_at"),
            time_of("Made", "created_at"),
        ),
        ("-id",),
        ("prefix", "principal__subject"),
    ),
    Table(
        Role,
        "Roles",
        "Names for sets of actions that are granted together",
        Action.GRANT,
        _roles,
        (column("Role", "name"), column("Actions", "actions", words)),
        (),
        ("name",),
        ("name",),
    ),
)
