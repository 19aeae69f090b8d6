"""The only place where a transaction begins: exclusive hold, shared hold, snapshot (specification 0.3, 5.9).

Every transaction is durable, bounded by its own time-outs (R-L-095..097), and ends before the answer leaves. A change
holds its namespace exclusively; recalls hold it shared, side by side with each other and never with a change.

# Note [Why a queue lock stands before the row lock]
Row share locks alone let a change starve behind a stream of recalls. The transaction-level advisory lock queues fairly,
so a change waits for the recalls that came before it and for no other. The row lock is what the triggers check.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, NoReturn

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connections, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import Connection, IsolationLevel

from archive import bindings, outages
from archive.bindings import Binding
from archive.gates import gate
from archive.models import Namespace
from archive.models.columns import columns
from archive.outages import Outage
from archive.refusals import (
    ArchiveTimeout,
    BindingMismatch,
    NamespaceAbsent,
    OutcomeUnknown,
    Refusal,
    StorageUnavailable,
)

_TIMED_OUT: Final = frozenset({"57014", "55P03", "40P01", "25P03", "25P04"})
_READ_ONLY: Final = "25006"


class DatabaseFault(Exception):
    """A database error nobody mapped, stripped of every detail that could quote a row (0.7). Always a defect."""

    def __init__(self, sqlstate: str | None, constraint: str | None) -> None:
        super().__init__(f"unmapped database error: sqlstate {sqlstate}, constraint {constraint}")
        self.sqlstate = sqlstate
        self.constraint = constraint


@contextmanager
def locked(binding: Binding, *, creating: bool = False) -> Iterator[Namespace]:
    """Hold the namespace exclusively in one durable transaction; `creating` retains it first if it is new."""
    with _durable("exclusive"):
        _queue(binding.namespace, shared=False)
        if creating:
            _retain(binding)
        yield _admitted(_row(binding.namespace, "FOR UPDATE"), binding)
        gate("commit")


@contextmanager
def shared(binding: Binding) -> Iterator[Namespace]:
    """Hold the namespace shared: recalls run beside each other, and never beside a change."""
    with _durable("shared"):
        _queue(binding.namespace, shared=True)
        yield _admitted(_row(binding.namespace, "FOR SHARE"), binding)
        gate("commit")


@contextmanager
def held(key: str) -> Iterator[Namespace]:
    """Hold a retained namespace exclusively whatever its binding: for binding migration and lexical rebuild alone."""
    with _durable("exclusive"):
        _queue(key, shared=False)
        namespace = _row(key, "FOR UPDATE")
        if namespace is None:
            raise NamespaceAbsent
        yield namespace
        gate("commit")


@contextmanager
def snapshot(binding: Binding) -> Iterator[Namespace | None]:
    """Read one moment, read only; yields None while nothing was ever taken in, refuses under another binding."""
    with _durable(None):
        namespace = Namespace.objects.filter(key=binding.namespace).first()
        if namespace is not None:
            _compare(namespace, binding)
        yield namespace


@contextmanager
def read_only() -> Iterator[None]:
    """Read one moment, read only, over several namespaces: for a list that compares each row's binding itself."""
    with _durable(None):
        yield


@contextmanager
def host_write() -> Iterator[None]:
    """One durable transaction over the host's own tables; no namespace is held."""
    with _durable("none"):
        yield


def moment() -> datetime:
    """Return the database's clock now; an act reads it once, after its last wait, and stamps all its rows with it."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    answer: datetime = now
    return answer


@contextmanager
def savepoint() -> Iterator[None]:
    """Let a unique violation inside be handled without losing the transaction (0.8)."""
    with transaction.atomic():
        yield


@contextmanager
def reading() -> Iterator[None]:
    """Name the failures of a look-up that stands outside any transaction (the door, A0): no answer is never a miss."""
    fault: Exception | None = None
    try:
        yield
    except Error as error:
        fault = _named(error, committing=False)
        hang_up_if_dead()
    if fault is not None:
        _raise_alone(fault)


def hang_up_if_dead() -> None:
    """Close a connection that has died between two transactions, so that the next act of this thread gets another.

    Between two HTTP requests Django does this; a command, a worker or a long batch has nobody else to do it.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.connection is not None and not connection.in_atomic_block and not connection.is_usable():
        connection.close()


@contextmanager
def _durable(hold: str | None) -> Iterator[None]:
    """Begin, bound and end a transaction; without a hold it reads one moment."""
    connection = connections[DEFAULT_DB_ALIAS]
    fault: Exception | None = None
    looking: Connection[Any] | None = None
    committing = False
    try:
        with transaction.atomic(durable=True):
            if hold is None:
                looking = connection.connection
                _look_only(looking)
            with connection.cursor() as cursor:
                _bound(cursor, hold)
            yield
            committing = hold is not None
    except Refusal:
        raise
    except Error as error:
        fault = _named(error, committing=committing, looking=hold is None)
        if not connection.is_usable():
            connection.close()
    finally:
        if looking is not None and not looking.closed:
            looking.isolation_level = looking.read_only = None
    if fault is not None:
        _raise_alone(fault)


def _look_only(session: "Connection[Any]") -> None:
    """Let the BEGIN that the driver is about to send say that one moment is read, and nothing written."""
    session.isolation_level = IsolationLevel.REPEATABLE_READ
    session.read_only = True


def _raise_alone(fault: Exception) -> NoReturn:
    """Raise without the error it stands for, whose details may quote a row (0.7).

    Leaving the handler is not enough: the error still is the one being handled in whoever entered the transaction, so
    Python would hang it on the new one as its context.
    """
    try:
        raise fault
    finally:
        fault.__context__ = None


# transaction_timeout twice: a limit that the session has armed already is not re-armed otherwise. Posting columns carry
# no statistics (0.4), so the planner's guesses would start the compiler on every recall.
_BOUNDS: Final = """
SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true),
       set_config('idle_in_transaction_session_timeout', %s, true),
       set_config('transaction_timeout', '0', true), set_config('transaction_timeout', %s, true),
       set_config('jit', 'off', true), set_config('lychd.hold', %s, true)"""


def _bound(cursor: CursorWrapper, hold: str | None) -> None:
    """Set the four limits and the kind of hold for this transaction alone.

    A statement of its own: a limit binds only what is begun after it was set.
    """
    limits = settings.LYCHD_TIMEOUTS
    bounds = [
        str(limits["statement"]),
        str(limits["lock"]),
        str(limits["idle"]),
        str(limits["transaction"]),
        hold or "snapshot",
    ]
    cursor.execute(_BOUNDS, bounds)


def _queue(key: str, *, shared: bool) -> None:
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(f"SELECT {function}(hashtextextended('lychd:' || %s::text, 0))", [key])


_COLUMNS: Final = columns(Namespace)


def _row(key: str, lock: str) -> Namespace | None:
    # As plain SQL: every operation reads it, and the ORM knows no FOR SHARE.
    rows = Namespace.objects.raw(f"SELECT {_COLUMNS} FROM archive_namespace WHERE key = %s {lock}", [key])  # noqa: S608
    return next(iter(rows), None)


def _retain(binding: Binding) -> None:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(
            # Asked first: the conflict alone would still cut the probe text of the fingerprint at every intake.
            "INSERT INTO archive_namespace"
            " (key, profile, owner, policy_revision, binding_digest, classification, text_configuration,"
            "  lexical_state, lexer_fingerprint, row_version, created_at)"
            " SELECT %s::text, %s::text, %s::text, %s::text, %s::text, 'public', %s::text, 'ready',"
            "  archive_lexer_fingerprint(%s::text::regconfig), 1, clock_timestamp()"
            " WHERE NOT EXISTS (SELECT FROM archive_namespace WHERE key = %s::text)"
            " ON CONFLICT (key) DO NOTHING",
            [
                binding.namespace,
                binding.profile,
                binding.owner,
                binding.policy_revision,
                binding.digest,
                binding.text_configuration,
                binding.text_configuration,
                binding.namespace,
            ],
        )


def _admitted(namespace: Namespace | None, binding: Binding) -> Namespace:
    if namespace is None:
        raise NamespaceAbsent
    _compare(namespace, binding)
    return namespace


def _compare(namespace: Namespace, binding: Binding) -> None:
    """Refuse unless the binding of A0 is still configured and is the one that the material is retained under."""
    if bindings.source().find(binding.namespace) != binding:
        raise BindingMismatch
    if (namespace.binding_digest, namespace.text_configuration) != (binding.digest, binding.text_configuration):
        raise BindingMismatch


def named(error: Error) -> Exception:
    """Return what a database error outside any transaction means to a caller; what is not known stays a defect."""
    return _named(error, committing=False)


def outage_of(error: Error) -> Outage | None:
    """Return why the database did not serve, if that is what an error says."""
    if (sqlstate := sqlstate_of(error)) is not None:
        return outages.by_sqlstate(sqlstate)
    # Without one there was no session, or the session ended.
    return outages.by_words(str(error)) if isinstance(error, OperationalError | InterfaceError) else None


def sqlstate_of(error: BaseException) -> str | None:
    """Return the SQLSTATE of the driver's error that Django hands on as its own."""
    found: str | None = getattr(error.__cause__, "sqlstate", None)
    return found


def _named(error: Error, *, committing: bool, looking: bool = False) -> Exception:
    """Turn a driver error into a refusal by SQLSTATE; what is not known here stays loud."""
    sqlstate = sqlstate_of(error)
    refusal: Refusal | None = None
    # A write where one moment is read is a mistake of ours, whatever the server is set to.
    outage = None if looking and sqlstate == _READ_ONLY else outage_of(error)
    if sqlstate in _TIMED_OUT:
        refusal = ArchiveTimeout()
    elif outage is not None:
        refusal = OutcomeUnknown() if committing else StorageUnavailable.by(outage)
        sqlstate = sqlstate or outage.sqlstate
    if refusal is not None:
        refusal.sqlstate = sqlstate
        return refusal
    diagnostics = getattr(error.__cause__, "diag", None)
    return DatabaseFault(sqlstate, getattr(diagnostics, "constraint_name", None))
