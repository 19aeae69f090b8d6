"""The host's own tables: who acts, what they were granted, which namespaces are served.

They hold authority, not archive material, so an authorizer may read them where an operation does no storage access.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Final, TypeAlias, cast

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.db.models import Exists, OuterRef, Q

from archive import limits, triggers, truths
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

_BINDING: Final = (
    "id",
    "namespace_key",
    "owner",
    "policy_revision",
    "text_configuration",
    "generation",
    "second_person",
    "configured_by",
    "configured_at",
    "disabled_at",
)
# A scalar look-up with a limit stays one: turned into a join, it would be made for every key before the first is shown.
_WALKED: Final = f"""
WITH RECURSIVE held (key) AS (
    (SELECT namespace_key FROM lychd_grant
     WHERE subject = %(subject)s AND revoked_at IS NULL
       AND (%(within)s::text[] IS NULL OR namespace_key = ANY (%(within)s::text[]))
       AND namespace_key ~>~ %(after)s AND namespace_key ~>=~ %(starting)s
     ORDER BY namespace_key USING ~<~ LIMIT 1)
    UNION ALL
    SELECT further.namespace_key FROM held CROSS JOIN LATERAL (
        SELECT namespace_key FROM lychd_grant
        WHERE subject = %(subject)s AND revoked_at IS NULL AND namespace_key ~>~ held.key
          AND (%(within)s::text[] IS NULL OR namespace_key = ANY (%(within)s::text[]))
        ORDER BY namespace_key USING ~<~ LIMIT 1
    ) AS further
    WHERE starts_with(held.key, %(starting)s)
)
SELECT {", ".join(f"served.{name}" for name in _BINDING)}
FROM held CROSS JOIN LATERAL (
    SELECT {", ".join(_BINDING)} FROM lychd_binding
    WHERE namespace_key = held.key AND disabled_at IS NULL OFFSET 0
) AS served
WHERE starts_with(held.key, %(starting)s)
  AND (SELECT true FROM lychd_grant AS own
       WHERE own.subject = %(subject)s AND own.namespace_key = held.key
         AND (%(action)s::text IS NULL OR own.action = %(action)s::text
              AND own.owner = served.owner AND own.policy_revision = served.policy_revision)
         AND own.revoked_at IS NULL AND own.valid_from <= clock_timestamp()
         AND (own.valid_until IS NULL OR own.valid_until > clock_timestamp()) LIMIT 1)
  AND (SELECT active FROM lychd_principal WHERE subject = %(subject)s)
LIMIT %(limit)s
"""  # noqa: S608 - the names are of columns
_STANDING: Final = """
SELECT acting.subject, found.key FROM unnest(%(subjects)s::text[]) AS acting (subject)
CROSS JOIN LATERAL (
    WITH RECURSIVE held (key) AS (
        (SELECT namespace_key FROM lychd_grant
         WHERE subject = acting.subject AND revoked_at IS NULL ORDER BY namespace_key USING ~<~ LIMIT 1)
        UNION ALL
        SELECT further.namespace_key FROM held CROSS JOIN LATERAL (
            SELECT namespace_key FROM lychd_grant
            WHERE subject = acting.subject AND revoked_at IS NULL AND namespace_key ~>~ held.key
            ORDER BY namespace_key USING ~<~ LIMIT 1
        ) AS further
    )
    SELECT held.key FROM held
    WHERE (SELECT true FROM lychd_grant AS own
           WHERE own.subject = acting.subject AND own.namespace_key = held.key AND own.revoked_at IS NULL
             AND (own.valid_until IS NULL OR own.valid_until > clock_timestamp()) LIMIT 1)
    LIMIT %(limit)s
) AS found
"""
_FURTHER: Final = f"""
SELECT {", ".join(_BINDING)} FROM lychd_binding
WHERE disabled_at IS NULL AND namespace_key ~>~ %s AND namespace_key ~>=~ %s AND starts_with(namespace_key, %s)
ORDER BY namespace_key USING ~<~ LIMIT %s
"""  # noqa: S608 - the names are of columns

# Joined rather than asked binding by binding: a clock that is read in a subquery keeps it from becoming a join.
_UNDER: Final = """
FROM lychd_grant AS own JOIN lychd_binding AS served USING (namespace_key, owner, policy_revision)
WHERE own.subject = %(subject)s AND own.action = wanted.action AND own.revoked_at IS NULL
  AND own.valid_from <= clock_timestamp() AND (own.valid_until IS NULL OR own.valid_until > clock_timestamp())
  AND served.disabled_at IS NULL AND (%(chosen)s::text IS NULL OR namespace_key = %(chosen)s::text)
"""
_SOMEWHERE: Final = f"""
SELECT wanted.action, CASE WHEN wanted.action = ANY(%(whole)s::text[]) THEN (
    SELECT sum(hashtextextended(concat_ws(E'\\x1f', own.id, served.id, served.text_configuration), 0)) {_UNDER}) END
FROM unnest(%(actions)s::text[]) AS wanted (action)
WHERE EXISTS (SELECT {_UNDER}) AND (SELECT active FROM lychd_principal WHERE subject = %(subject)s)
"""  # noqa: S608 - put together of the constants above
# Asked at the beginning of every request with a token.
_LIVE: Final = """
SELECT acting.subject, token.principal_id, token.id, token.namespaces, token.created_at, token.expires_at,
       coalesce(token.last_used_at >= clock_timestamp() - make_interval(secs => %s), false), clock_timestamp()
FROM lychd_token AS token JOIN lychd_principal AS acting ON acting.id = token.principal_id
WHERE token.digest = %s AND token.revoked_at IS NULL AND token.expires_at > clock_timestamp() AND acting.active
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
                # In the order of bytes, so that keys that begin alike stand together under any collation.
                opclasses=["text_ops", "text_pattern_ops", "text_ops"],
                condition=Q(revoked_at__isnull=True),
                name="grant_current",
            ),
            models.Index(
                fields=["subject", "action", "namespace_key"],
                condition=Q(revoked_at__isnull=True),
                name="grant_of_action",
            ),
            models.Index(fields=["namespace_key", "subject"], name="grant_of_namespace"),
        ]
        triggers: ClassVar = [triggers.GrantFence(name="grant"), triggers.NoDelete(name="nodelete")]

    def __str__(self) -> str:
        return f"{self.subject} may {self.action} in {self.namespace_key}"

    @classmethod
    def walked(
        cls,
        subject: str,
        *,
        action: str | None,
        within: "Collection[str] | None",
        after: str,
        starting: str,
        limit: int,
    ) -> "list[ConfiguredBinding]":
        """The served namespaces in which a current grant allows an action under their binding, or anything, by key.

        From one key to the next by the index: neither how many grants nor how many namespaces there are costs anything.
        """
        values: dict[str, Any] = {"subject": subject, "action": action, "after": after, "starting": starting}
        values |= {"within": None if within is None else list(within), "limit": limit}
        with connection.cursor() as cursor:
            cursor.execute(_WALKED, values)
            return [ConfiguredBinding.from_db(cls._default_manager.db, _BINDING, row) for row in cursor.fetchall()]

    @classmethod
    def standing(cls, subjects: "list[str]", *, limit: int) -> "list[tuple[str, str]]":
        """The namespaces in which each of these subjects holds a grant, or will once it begins; so many of each."""
        with connection.cursor() as cursor:
            cursor.execute(_STANDING, {"subjects": subjects, "limit": limit})
            return list(cursor.fetchall())

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
        # In the order of bytes, as grants are.
        indexes: ClassVar = [
            models.Index(
                fields=["namespace_key"],
                opclasses=["text_pattern_ops"],
                condition=Q(disabled_at__isnull=True),
                name="binding_served",
            )
        ]
        triggers: ClassVar = [triggers.NoDelete(name="nodelete"), triggers.BindingHistory(name="history")]

    def __str__(self) -> str:
        return self.namespace_key

    @classmethod
    def further(cls, namespace: str, starting: str, limit: int) -> "list[ConfiguredBinding]":
        """The served ones under the next keys that begin so, in the order of their bytes."""
        return list(cls._default_manager.raw(_FURTHER, [namespace, starting, starting, limit]))

    @classmethod
    def granted(cls, subject: str, action: str) -> "models.QuerySet[ConfiguredBinding]":
        """Those in which a current grant of a subject allows an action: what `Grant.held` says, for all at once."""
        under = {name: OuterRef(name) for name in ("namespace_key", "owner", "policy_revision")}
        return cls._default_manager.filter(
            Exists(Grant.current().filter(subject=subject, action=action, **under)), disabled_at__isnull=True
        )

    @classmethod
    def granted_somewhere(
        cls, subject: str, actions: "list[str]", *, whole: "list[str]", chosen: str | None
    ) -> "dict[str, Decimal | None]":
        """Which of these actions `granted` gives any binding for, or the chosen one.

        With each of `whole` comes a digest of all its bindings and grants: with one less, or another, it is another.
        """
        values = {"subject": subject, "actions": actions, "whole": whole, "chosen": chosen}
        with connection.cursor() as cursor:
            cursor.execute(_SOMEWHERE, values)
            return dict(cursor.fetchall())

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
        triggers: ClassVar = [
            triggers.NoUpdate(name="append"),
            triggers.NoDelete(name="nodelete"),
            truths.HistoryTruth(),
        ]

    def __str__(self) -> str:
        return f"{self.namespace_key} at {self.recorded_at}"


class Token(models.Model):
    """A bearer token. Only its digest is kept; the secret is shown once (sha256 of 32 random bytes)."""

    id = models.BigAutoField(primary_key=True)
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="tokens")
    name = models.TextField(default="")
    digest = models.TextField()
    prefix = models.TextField()
    # What its subject is granted elsewhere, now or later, it does not open. None: every namespace, by the host alone.
    namespaces = ArrayField(models.TextField(), null=True)
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

    @classmethod
    def live(cls, digest: str) -> tuple[Any, ...] | None:
        """Look a good token up by its digest, and return what `archive.api.authentication` makes a bearer of."""
        with connection.cursor() as cursor:
            cursor.execute(_LIVE, [limits.TOKEN_LAST_USE_SECONDS, digest])
            return cast("tuple[Any, ...] | None", cursor.fetchone())

    def ends_soon(self, now: datetime) -> bool:
        """Say whether its holder should see to a successor now."""
        return ends_soon(self.created_at, self.expires_at, now)


def ends_soon(created_at: datetime, expires_at: datetime, now: datetime) -> bool:
    """Two weeks before the end of a token, and in the last quarter of one that is short-lived."""
    notice = min(timedelta(days=limits.TOKEN_ENDS_SOON_DAYS), (expires_at - created_at) / limits.TOKEN_ENDS_SOON_SHARE)
    return expires_at - notice <= now
