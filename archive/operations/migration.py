"""Binding migration: the one way in which retained material comes under a changed binding (R-L-017..020)."""

from dataclasses import dataclass
from uuid import UUID, uuid4

from django.db import connection

from archive import bindings, limits
from archive.authority import Action, Caller, Point
from archive.bindings import Binding
from archive.models import BindingMigration, Grant, Namespace
from archive.refusals import BindingMismatch, Fault, InvalidRequest
from archive.requests import Checker
from archive.transactions import held, moment


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration did; `migration_id` is None when the namespace already stood under the configured binding."""

    migration_id: UUID | None
    binding: Binding
    carried_grants: int
    rebuild_needed: bool


def migrate(caller: Caller, *, reason: str, carry_grants: bool = False) -> Migrated:
    """Bring a retained namespace under the binding configured for it now; asked under that new binding.

    A change of text configuration leaves the namespace `rebuilding`: recall of it answers `capability_not_ready` until
    `lychd lexical rebuild` has ended. `carry_grants` writes every current grant again for the new policy revision.
    """
    check = Checker()
    check.whole_text("/reason", reason)
    if not 1 <= len(reason) <= limits.MIGRATION_REASON_MAX:
        check.fault("/reason", f"1 to {limits.MIGRATION_REASON_MAX} characters")
    check.settle()
    question = caller.asks(Action.MIGRATE_BINDING, about=caller.binding.digest)
    question.require(Point.A0)
    with held(caller.namespace) as namespace:
        if bindings.source().find(caller.namespace) != caller.binding:
            raise BindingMismatch
        question.require(Point.A1)
        if namespace.profile != caller.binding.profile:
            raise InvalidRequest([Fault("/namespace", "a namespace keeps its profile")])
        migrated = _migrate(namespace, caller, reason, carry_grants=carry_grants)
    question.require(Point.A2)
    return migrated


def _migrate(namespace: Namespace, caller: Caller, reason: str, *, carry_grants: bool) -> Migrated:
    new = caller.binding
    rewords = namespace.text_configuration != new.text_configuration
    if namespace.binding_digest == new.digest and not rewords:
        return Migrated(None, new, 0, rebuild_needed=namespace.lexical_state != "ready")
    old_owner, old_policy = namespace.owner, namespace.policy_revision
    now = moment()
    record = BindingMigration.objects.create(
        id=uuid4(),
        namespace=namespace,
        old_owner=old_owner,
        new_owner=new.owner,
        old_policy_revision=old_policy,
        new_policy_revision=new.policy_revision,
        old_text_configuration=namespace.text_configuration,
        new_text_configuration=new.text_configuration,
        old_binding_digest=namespace.binding_digest,
        new_binding_digest=new.digest,
        actor_subject=caller.subject,
        reason=reason,
        created_at=now,
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lychd.binding_migration', %s, true)", [str(namespace.id)])
    namespace.owner, namespace.policy_revision, namespace.binding_digest = new.owner, new.policy_revision, new.digest
    namespace.text_configuration = new.text_configuration
    namespace.row_version += 1
    if rewords:
        namespace.lexical_state = "rebuilding"
    namespace.save(
        update_fields=[
            "owner",
            "policy_revision",
            "binding_digest",
            "text_configuration",
            "row_version",
            "lexical_state",
        ]
    )
    carried = _carry(namespace.key, old_owner, old_policy, new, caller.subject) if carry_grants else 0
    return Migrated(record.id, new, carried, rebuild_needed=namespace.lexical_state != "ready")


def _carry(key: str, old_owner: str, old_policy: str, new: Binding, by: str) -> int:
    """Write each grant that holds now again, for the new owner and policy revision; the old rows stay as they are."""
    if (old_owner, old_policy) == (new.owner, new.policy_revision):
        return 0
    # Held, so that none of them is withdrawn and carried over at once: one of the two waits for the other.
    current = (
        Grant.current()
        .filter(namespace_key=key, owner=old_owner, policy_revision=old_policy)
        .order_by("id")
        .select_for_update(of=("self",))
    )
    rows = [
        Grant(
            subject=grant.subject,
            namespace_key=key,
            owner=new.owner,
            purpose=grant.purpose,
            policy_revision=new.policy_revision,
            action=grant.action,
            valid_until=grant.valid_until,
            granted_by=by,
        )
        for grant in current
    ]
    Grant.objects.bulk_create(rows)
    return len(rows)
