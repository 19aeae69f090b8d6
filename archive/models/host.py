"""The host's own tables: who acts, what they were granted, which namespaces are served.

They hold authority, not archive material, so an authorizer may read them where an operation does no storage access.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, TypeAlias

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.db.models import Exists, OuterRef, Q

from archive import limits, triggers
from archive.models.columns import CLOCK

GrantKey: TypeAlias = tuple[str, str, str, str, str, str]

_HELD: Final = """
SELECT wanted.subject, wanted.namespace_key, wanted.owner, wanted.purpose, wanted.policy_revision, wanted.action
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
     AS wanted (subject, namespace_key, owner, purpose, policy_revision, action)
WHERE EXISTS (
    SELECT FROM lychd_grant AS held
    WHERE held.subject = wanted.subject AND held.namespace_key = wanted.namespace_key AND held.owner = wanted.owner
      AND held.purpose = wanted.purpose AND held.policy_revision = wanted.policy_revision
      AND held.action = wanted.action
      AND held.revoked_at IS NULL AND held.valid_from <= clock_timestamp()
      AND (held.valid_until IS NULL OR held.valid_until > clock_timestamp()))
  AND EXISTS (SELECT FROM lychd_principal AS acting WHERE acting.subject = wanted.subject AND acting.active)
"""
# One question is what an operation asks, at each of its points; planning the join of many costs twice as much.
_HELD_ONE: Final = """
SELECT EXISTS (
    SELECT FROM lychd_grant AS held
    WHERE held.subject = %s AND held.namespace_key = %s AND held.owner = %s
      AND held.purpose = %s AND held.policy_revision = %s
      AND held.action = %s
      AND held.revoked_at IS NULL AND held.valid_from <= clock_timestamp()
      AND (held.valid_until IS NULL OR held.valid_until > clock_timestamp()))
  AND EXISTS (SELECT FROM lychd_principal AS acting WHERE acting.subject = %s AND acting.active)
"""

_SERVED: Final = """
SELECT owner, policy_revision, text_configuration, second_person, generation
FROM lychd_binding WHERE namespace_key = %s AND disabled_at IS NULL
"""


class Principal(models.Model):
    """Somebody who acts, under a stable subject that is never given to another."""

    id = models.BigAutoField(primary_key=True)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    subject = models.TextField()
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=CLOCK)
    # Set by the database with the first user, and never again: a user may go, and nobody takes its place.
    linked_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "lychd_principal"
        constraints: ClassVar = [models.UniqueConstraint(fields=["subject"], name="principal_subject")]
        triggers: ClassVar = [triggers.PrincipalFence(name="principal"), triggers.NoDelete(name="nodelete")]

    def __str__(self) -> str:
        return self.subject


class Grant(models.Model):
    """One action allowed to one subject in one namespace, for one purpose, under one owner and policy revision."""

    id = models.BigAutoField(primary_key=True)
    subject = models.TextField()
    namespace_key = models.TextField()
    owner = models.TextField()
    purpose = models.TextField()
    policy_revision = models.TextField()
    action = models.TextField()
    valid_from = models.DateTimeField(db_default=CLOCK)
    valid_until = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    granted_by = models.TextField()
    created_at = models.DateTimeField(db_default=CLOCK)

    class Meta:
        db_table = "lychd_grant"
        indexes: ClassVar = [
            models.Index(
                fields=["subject", "namespace_key", "action"],
                condition=Q(revoked_at__isnull=True),
                name="grant_current",
            )
        ]
        triggers: ClassVar = [triggers.GrantFence(name="grant"), triggers.NoDelete(name="nodelete")]

    def __str__(self) -> str:
        return f"{self.subject} may {self.action} in {self.namespace_key}"

    @classmethod
    def held(cls, wanted: "Collection[GrantKey]") -> "set[GrantKey]":
        """Which of these (subject, namespace, owner, purpose, policy revision, action) a current grant allows now.

        Every operation asks it three times, so the statements are fixed; what is current is said in `current` too.
        """
        with connection.cursor() as cursor:
            if len(wanted) == 1:
                (key,) = wanted
                cursor.execute(_HELD_ONE, [*key, key[0]])
                return set(wanted) if cursor.fetchone() == (True,) else set()
            cursor.execute(_HELD, [list(values) for values in zip(*wanted, strict=True)])
            return set(cursor.fetchall())

    @classmethod
    def current(cls) -> "models.QuerySet[Grant]":
        """Grants that hold at this moment by the database's clock, of principals that are active."""
        return cls._default_manager.filter(
            Q(valid_until__isnull=True) | Q(valid_until__gt=CLOCK),
            Exists(Principal.objects.filter(subject=OuterRef("subject"), active=True)),
            revoked_at__isnull=True,
            valid_from__lte=CLOCK,
        )


class Role(models.Model):
    """A name for a set of actions that are granted together; data, not code."""

    name = models.TextField(primary_key=True)
    actions = ArrayField(models.TextField())

    class Meta:
        db_table = "lychd_role"

    def __str__(self) -> str:
        return self.name


class ConfiguredBinding(models.Model):
    """A namespace that this deployment serves, as configured today."""

    id = models.BigAutoField(primary_key=True)
    namespace_key = models.TextField()
    owner = models.TextField()
    policy_revision = models.TextField()
    text_configuration = models.TextField(default="simple")
    generation = models.TextField(null=True)
    second_person = models.BooleanField(default=False)
    configured_by = models.TextField()
    configured_at = models.DateTimeField(db_default=CLOCK)
    disabled_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "lychd_binding"
        constraints: ClassVar = [models.UniqueConstraint(fields=["namespace_key"], name="binding_namespace")]
        triggers: ClassVar = [triggers.NoDelete(name="nodelete"), triggers.BindingHistory(name="history")]

    def __str__(self) -> str:
        return self.namespace_key

    @classmethod
    def served(cls, namespace: str) -> dict[str, Any] | None:
        """The values of a namespace's binding as it is served today; every operation asks twice."""
        with connection.cursor() as cursor:
            cursor.execute(_SERVED, [namespace])
            row = cursor.fetchone()
            return (
                None
                if row is None
                else {column.name: value for column, value in zip(cursor.description, row, strict=True)}
            )


class ConfiguredBindingHistory(models.Model):
    """Every form a configured binding has had; the database writes it."""

    id = models.BigAutoField(primary_key=True)
    namespace_key = models.TextField()
    owner = models.TextField()
    policy_revision = models.TextField()
    text_configuration = models.TextField()
    generation = models.TextField(null=True)
    second_person = models.BooleanField()
    configured_by = models.TextField()
    configured_at = models.DateTimeField()
    disabled_at = models.DateTimeField(null=True)
    recorded_at = models.DateTimeField(db_default=CLOCK)

    class Meta:
        db_table = "lychd_binding_history"
        indexes: ClassVar = [models.Index(fields=["namespace_key", "id"], name="binding_history_namespace")]
        triggers: ClassVar = [triggers.NoUpdate(name="append"), triggers.NoDelete(name="nodelete")]

    def __str__(self) -> str:
        return f"{self.namespace_key} at {self.recorded_at}"


class Token(models.Model):
    """A bearer token. Only its digest is kept; the secret is shown once (sha256 of 32 random bytes)."""

    id = models.BigAutoField(primary_key=True)
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="tokens")
    name = models.TextField(default="")
    digest = models.TextField()
    prefix = models.TextField()
    created_by = models.TextField()
    created_at = models.DateTimeField(db_default=CLOCK)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "lychd_token"
        constraints: ClassVar = [models.UniqueConstraint(fields=["digest"], name="token_digest")]
        triggers: ClassVar = [triggers.TokenFence(name="token"), triggers.NoDelete(name="nodelete")]

    def __str__(self) -> str:
        return self.prefix

    def ends_soon(self, now: datetime) -> bool:
        """Say whether its holder should see to a successor now."""
        return ends_soon(self.created_at, self.expires_at, now)


def ends_soon(created_at: datetime, expires_at: datetime, now: datetime) -> bool:
    """Two weeks before the end of a token, and in the last quarter of one that is short-lived."""
    notice = min(timedelta(days=limits.TOKEN_ENDS_SOON_DAYS), (expires_at - created_at) / limits.TOKEN_ENDS_SOON_SHARE)
    return expires_at - notice <= now
