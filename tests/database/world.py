"""Two namespaces with rows in every table, reached through the operations, and transactions that leave no trace."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from django.contrib.auth.models import User
from psycopg import sql

from archive import canonical
from archive.lifecycle import Reason, State
from archive.operations import host
from archive.operations.flag import flag
from archive.operations.migration import migrate
from archive.operations.transition import promote
from tests import cast, flushing
from tests.operations.forgeries import forged

Connection = psycopg.Connection[Any]

SHARED_SPACE = "6c796368-642d-4172-8368-697665000001"
NOWHERE = "00000000-0000-4000-8000-000000000000"
FRESH = "00000000-0000-4000-8000-00000000000f"


@dataclass(frozen=True, slots=True)
class World:
    """The identities of what was planted, as parameters for raw SQL."""

    names: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.names[name]


def plant() -> World:
    """The garden with a note in every state, and a meadow beside it."""
    garden, meadow = cast.plant("garden"), cast.plant("meadow")
    alice, bob = garden.caller("alice"), garden.caller("bob")
    roses = cast.promoted(alice, "Roses want morning sun.", source="roses", asserted_origin="letters/roses")
    later = cast.admitted(alice, "Roses want evening sun.", source="roses", revision="2")
    oaks = cast.promoted(alice, "Oaks take their time.", source="oaks", asserted_origin="letters/roses")
    elms = promote(
        alice, cast.step(cast.admitted(alice, "Oaks grow old.", source="oaks", revision="2"), State.PROMOTED)
    )
    ash = cast.revoked(alice, "Ash trees are ailing.", source="ash")
    flag(bob, roses.id, Reason.OUTDATED)
    cast.asked(bob, "roses", request_id="asked-once")
    clover = cast.promoted(meadow.caller("alice"), "Clover feeds bees.", source="clover")
    cast.admitted(meadow.caller("alice"), "Clover again.", source="clover", revision="2")
    moved = host.configure_namespace("meadow", owner=cast.OWNER, policy_revision="policy-2", by="host:tests")
    host.grant("otto", moved, host.actions_of(["operator"]), by="host:tests")
    migrate(cast.Garden(moved).caller("otto"), reason="the policy has a second edition")
    host.map_principal("rosa", user_id=User.objects.create_user("rosa").pk)
    host.map_principal("rolf", user_id=User.objects.create_user("rolf").pk)
    host.issue_token("rosa", by="host:tests", namespaces=["garden", "meadow"])
    host.issue_token("bob", by="host:tests", namespaces=None)
    with flushing.as_owner() as owner:
        spaces = dict(owner.execute("SELECT key, id FROM archive_namespace").fetchall())
        sources = dict(owner.execute("SELECT source_key, id FROM archive_source").fetchall())
        tokens = dict(
            owner.execute(
                "SELECT p.subject, t.id FROM lychd_token t JOIN lychd_principal p ON p.id = t.principal_id"
            ).fetchall()
        )
        principals = dict(owner.execute("SELECT subject, id FROM lychd_principal").fetchall())
    return World(
        {
            "garden": spaces["garden"],
            "meadow": spaces["meadow"],
            "roses": sources["roses"],
            "ash_source": sources["ash"],
            "clover_source": sources["clover"],
            "promoted": roses.id,
            "candidate": later.id,
            "archived": oaks.id,
            "successor": elms.note.id,
            "tombstone": ash.id,
            "clover": clover.id,
            "token": tokens["rosa"],
            "principal": principals["rosa"],
            "unlinked": principals["bob"],
            "rolf": User.objects.get(username="rolf").pk,
            "nowhere": NOWHERE,
            "fresh": FRESH,
            "shared_space": SHARED_SPACE,
        }
    )


@contextmanager
def no_trace(connection: Connection) -> Iterator[Connection]:
    """One transaction that is always rolled back."""
    with connection.transaction(force_rollback=True):
        yield connection


def hold(connection: Connection, world: World, *keys: str, kind: str = "exclusive") -> None:
    """Take namespace rows the way an operation does."""
    for key in keys or ("garden",):
        mode = "FOR UPDATE" if kind == "exclusive" else "FOR SHARE"
        connection.execute(f"SELECT 1 FROM archive_namespace WHERE id = %s {mode}".encode(), [world[key]])
    connection.execute("SELECT set_config('lychd.hold', %s, true)", [kind])


def without_triggers(owner: Connection, *tables: str) -> None:
    """Switch the rules of these tables off, for the owner's transaction: what a constraint does by itself is seen."""
    for table in tables:
        # Foreign keys stay: they are the database's own.
        owner.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(sql.Identifier(table)))


# What the database fills in where nothing is said; of a copy it would be another row's.
MADE = {
    "archive_source": ("created_at",),
    "archive_note": ("created_at", "state_changed_at", "material_digest"),
    "archive_lifecycle_event": ("created_at",),
    "archive_flag": ("created_at", "lifecycle_version"),
    "archive_intake_request": ("created_at", "request_digest", "created_note"),
    "archive_namespace": ("created_at", "binding_digest"),
    "archive_binding_migration": (
        *("created_at", "old_owner", "old_policy_revision", "old_text_configuration"),
        *("old_binding_digest", "new_binding_digest"),
    ),
}

Deed = str | sql.Composed | sql.SQL | Callable[[Connection], object]


def tried(connection: Connection, world: World, *deeds: Deed) -> psycopg.Error | None:
    """What the database said to these deeds and to the commit after them; nothing of them stays. None is no objection.

    In SQL `%(promoted)s` stands for a planted identity.
    """
    try:
        with connection.transaction(force_rollback=True):
            for deed in deeds:
                if callable(deed):
                    deed(connection)
                else:
                    connection.execute(deed.encode() if isinstance(deed, str) else deed, world.names)
            settle(connection)
    except psycopg.Error as error:
        return error
    return None


def settle(connection: Connection) -> None:
    """Look at everything that waits for the commit."""
    connection.execute("SET CONSTRAINTS ALL IMMEDIATE")


def write_again(
    connection: Connection, table: str, where: str, world: World, changes: dict[str, Any], *, fenced: bool = True
) -> int:
    """Insert a copy of one row that differs in some columns; counters count on, a UUID key gets a fresh one.

    Behind the fences, what the database makes is left to it.
    """
    columns = [
        sql.Identifier(name)
        for (name,) in connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
            " AND (attidentity = '' OR attname = ANY (%s)) ORDER BY attnum",
            [table, list(changes)],
        )
    ]
    if table == "archive_recall":
        changes = {**receipt_again(connection, changes), **changes}
    if fenced:
        changes = {**dict.fromkeys(MADE.get(table, ())), **changes}
    kept = {name: world.names.get(value[1:], value) if _refers(value) else value for name, value in changes.items()}
    statement = sql.SQL(
        "INSERT INTO {0} ({3}) SELECT {3} FROM (SELECT (jsonb_populate_record(old, {1}::jsonb)).* FROM {0} AS old"
        " WHERE {2} LIMIT 1) AS copy"
    ).format(
        sql.Identifier(table),
        sql.Literal(json.dumps(kept, default=str)),
        sql.SQL(where),
        sql.SQL(", ").join(columns),
    )
    return connection.execute(statement, world.names).rowcount


def receipt_again(connection: Connection, changes: dict[str, Any]) -> dict[str, Any]:
    """What the row of a receipt repeats, once the receipt has this identity and the clock of this transaction."""
    found = connection.execute("SELECT receipt, clock_timestamp() FROM archive_recall LIMIT 1").fetchone()
    assert found
    receipt, moment = found
    said = {"receipt_id": changes.get("id", receipt["receipt_id"]), "created_at": canonical.instant(moment)}
    said |= {name: changes[name] for name in ("request_id", "subject") if name in changes}
    made = forged(receipt, lambda one: one.update(said))
    return {"receipt": made, **{name: made[name] for name in ("request_digest", "receipt_digest", "created_at")}}


def _refers(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("@")
