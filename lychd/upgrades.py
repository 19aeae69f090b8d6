"""Bring the tables from one release to another: ask before anything changes, and say what to do if it cannot be."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
from typing import Any, Final

from django.core.management import CommandError, call_command
from django.db import Error, ProgrammingError, connections, transaction
from django.db.migrations import RunSQL
from django.db.migrations.exceptions import MigrationSchemaMissing
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from archive.lifecycle import LexicalState
from archive.models import Namespace
from lychd.commands.telling import Unready, UsageError

OWN: Final = ("archive", "semantic")
Name = tuple[str, str]

# Dependencies that a migration got after archives had been made by it. Where it is applied and they are not, they are
# applied first: each is known to work on the tables of the later one.
ADDED_DEPENDENCIES: Final[dict[Name, Name]] = {("semantic", "0001_derived"): ("archive", "0005_note_identity")}

_REFUSAL: Final = "ERRCODE = 'LY004'"


def pending(alias: str) -> list[str]:
    """Name the migrations that a connection's database does not have yet."""
    executor = MigrationExecutor(connections[alias])
    return [str(migration) for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]


def unknown(alias: str) -> list[str]:
    """Name the migrations that a connection's database has and this release does not: a newer one made them."""
    loader = MigrationLoader(connections[alias])
    known = {*loader.disk_migrations, *loader.replacements}
    return [".".join(name) for name in sorted(loader.applied_migrations) if name[0] in OWN and name not in known]


def uncut(alias: str) -> list[str]:
    """Name the namespaces in which recall waits for their words to be cut anew."""
    waiting = Namespace.objects.using(alias).exclude(lexical_state=LexicalState.READY)
    return list(waiting.order_by("key").values_list("key", flat=True))


def migrate(alias: str, *words: str) -> None:
    """Migrate, and apply the grants that follow every migration; of two at once the second finds it done.

    A way back is asked whole before anything is dropped, and then goes in one transaction: all of it or nothing.
    """
    try:
        with _alone(alias), redirect_stdout(StringIO()):
            _require_known(alias)
            _make_up(alias)
            with _whole(alias, words):
                call_command("migrate", *words, database=alias, verbosity=0, interactive=False)
    except CommandError as error:
        raise UsageError(str(error)) from None
    except (Error, MigrationSchemaMissing) as error:
        sqlstate = getattr(error.__cause__, "sqlstate", None) or ""
        if isinstance(error, MigrationSchemaMissing) or (isinstance(error, ProgrammingError) and sqlstate == "42501"):
            raise Unready(
                "This login may not change the tables: set DATABASE_OWNER_URL to the login of the role that owns them."
            ) from None
        if sqlstate.startswith("LY"):
            raise Unready(f"Nothing was changed by the migration that refused: {_said(error)}.") from None
        raise


def _require_known(alias: str) -> None:
    if strangers := unknown(alias):
        raise Unready(
            f"This database was migrated by a newer release: it has {', '.join(strangers)}. Run that release's"
            " `lychd migrate`, backwards if you want this one; see Upgrades in docs/operations.md."
        )


def _make_up(alias: str) -> None:
    """Apply what an applied migration came to depend on later; any other disorder of the history is refused."""
    executor = MigrationExecutor(connections[alias])
    applied = executor.loader.applied_migrations
    graph = executor.loader.graph
    for name in sorted(applied):
        if name not in graph.nodes:
            continue
        for parent in sorted(graph.node_map[name].parents):
            before = (parent.key[0], parent.key[1])
            if before in applied:
                continue
            if ADDED_DEPENDENCIES.get(name) != before:
                raise Unready(
                    f"The database has migration {'.'.join(name)} and not {'.'.join(before)}, which comes before it;"
                    " no release makes that. Restore a backup, then run `lychd migrate`."
                )
            executor.migrate([before])
            executor = MigrationExecutor(connections[alias])


@contextmanager
def _whole(alias: str, words: Sequence[str]) -> Iterator[None]:
    """Around a way back: refuse before it begins, then keep all of its steps in one transaction."""
    with ExitStack() as stack:
        backwards = _backwards(alias, words)
        if backwards:
            _ask(alias, backwards)
            if all(migration.atomic for migration in backwards):
                stack.enter_context(transaction.atomic(using=alias))
        yield


def _backwards(alias: str, words: Sequence[str]) -> list[Any]:
    """The migrations that a command line would undo, in order; what cannot be understood is left to the framework."""
    if len(words) != 2:
        return []
    app, target = words
    executor = MigrationExecutor(connections[alias])
    try:
        name = None if target == "zero" else executor.loader.get_migration_by_prefix(app, target).name
    except (KeyError, ValueError, LookupError):
        return []
    return [migration for migration, undone in executor.migration_plan([(app, name)]) if undone]


def _ask(alias: str, backwards: Sequence[Any]) -> None:
    """Let every step say whether rows exist that it would make unreadable, reading alone."""
    for migration in backwards:
        for operation in migration.operations:
            if isinstance(operation, RunSQL) and _REFUSAL in str(operation.reverse_sql or ""):
                try:
                    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
                        cursor.execute("SET TRANSACTION READ ONLY")
                        cursor.execute(str(operation.reverse_sql))
                except Error as error:
                    if getattr(error.__cause__, "sqlstate", None) != "LY004":
                        raise
                    raise Unready(
                        f"Nothing was undone: {migration} cannot be, because {_said(error)}."
                        " docs/operations.md, Upgrades, says how to go back to an older release."
                    ) from None


def _said(error: Error) -> str:
    # One of our own sentences; only a rule of ours has such a SQLSTATE, and it quotes no row.
    return str(getattr(getattr(error.__cause__, "diag", None), "message_primary", None) or error)


@contextmanager
def _alone(alias: str) -> Iterator[None]:
    """Hold a lock of the session, which goes with it however it ends."""
    key = "hashtextextended('lychd migrations', 0)"
    with connections[alias].cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_lock({key})")
        try:
            yield
        finally:
            # A migration that failed may have taken the connection along, and the lock with it.
            if connections[alias].is_usable():
                cursor.execute(f"SELECT pg_advisory_unlock({key})")
