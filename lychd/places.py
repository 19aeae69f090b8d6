"""Where an instance keeps things, and who may go there: computed from the folder and the user, never looked up.

Settings read these to know a socket's address with nothing running; the launchers read the same to put it there.
"""

import contextlib
import fcntl
import hashlib
import os
import pwd
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# A socket's address has room for 107 bytes, and PostgreSQL adds `/.s.PGSQL.5432` to the folder.
_LONGEST_FOLDER: Final = 100 - len("/.s.PGSQL.5432")
# Where a server that must not run as root keeps its data when it cannot reach the instance's own folder.
SHARED_ROOT: Final = Path("/var/lib/lychd-archive")
# The same for every process of one user, whatever its TMPDIR says: all must find the one socket.
_SHORT_ROOT: Final = Path("/tmp")  # noqa: S108
WAY_OUT: Final = "set DATABASE_URL to a PostgreSQL 17 or newer with pgvector instead"


class EmbeddedError(RuntimeError):
    """The servers cannot be had here; the message is one sentence for whoever started them."""


def socket_dir(state: Path) -> Path:
    """The folder of PostgreSQL's socket; computed, never looked up, and the same in every process."""
    return _short(base(state) / "run")


def data_dir(state: Path) -> Path:
    """The database files of an instance."""
    return base(state) / "postgres"


def log_path(state: Path) -> Path:
    """What the PostgreSQL server says; by its settings it never quotes a statement or a value."""
    return base(state) / "postgres.log"


def listens(state: Path) -> bool:
    """Whether somebody listens on PostgreSQL's socket; only the instance's own user can put one there."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(1)
        try:
            asking.connect(str(socket_dir(state) / ".s.PGSQL.5432"))
        except OSError:
            return False
        return True


def broker_socket(state: Path) -> Path:
    """The socket of the broker."""
    return _short(state / "broker") / "valkey.sock"


def broker_url(state: Path) -> str:
    """The broker's address as redis-py reads it."""
    return f"unix://{broker_socket(state)}"


def _short(folder: Path) -> Path:
    if len(os.fsencode(folder)) <= _LONGEST_FOLDER:
        return folder
    return _SHORT_ROOT / f"lychd-{os.getuid()}-{digest_of(folder)}"


def digest_of(folder: Path) -> str:
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]


def base(state: Path) -> Path:
    # Note [A server that is not root]
    # PostgreSQL refuses to run as root, so a root process runs it as somebody else, who may be unable to enter the
    # instance's folder: a checkout in a private home, a clone in a private temporary folder. The data then lies in a
    # folder of its own. Opening the home instead would be quicker and is nobody's to decide here.
    user = server_user()
    if user is None or enters(state, user):
        return state
    return SHARED_ROOT / digest_of(state)


def server_user() -> pwd.struct_passwd | None:
    """Whom a root process runs the server as; None where the process is not root and runs it itself."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise EmbeddedError(f"PostgreSQL does not run as root and there is no user to run it as; {WAY_OUT}.")


def enters(path: Path, user: pwd.struct_passwd) -> bool:
    """Whether a user could walk down to a path, as far as it exists."""
    for folder in (*reversed(path.parents), path):
        try:
            found = folder.stat()
        except FileNotFoundError:
            return True
        if stat.S_ISDIR(found.st_mode) and not may(found, user, stat.S_IXUSR):
            return False
    return True


def may(found: os.stat_result, user: pwd.struct_passwd, bit: int) -> bool:
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


def make_shared_root() -> None:
    try:
        SHARED_ROOT.mkdir(mode=0o755, parents=True, exist_ok=True)
        SHARED_ROOT.chmod(0o755)
    except OSError as error:
        raise EmbeddedError(
            f"PostgreSQL does not run as root, and its user reaches neither this folder nor {SHARED_ROOT}; {WAY_OUT}."
        ) from error


def private(folder: Path, user: pwd.struct_passwd | None) -> None:
    """A folder that only the server's user (and root) enters; one that somebody else put there is refused."""
    folder.mkdir(mode=0o700, exist_ok=True)
    give(folder, user)
    found = folder.lstat()
    owner = os.getuid() if user is None else user.pw_uid
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner:
        raise EmbeddedError(f"{folder} belongs to another user: set LYCHD_STATE_DIR to a folder of your own.")
    folder.chmod(0o700)


def give(path: Path, user: pwd.struct_passwd | None) -> None:
    if user is not None and path.lstat().st_uid in (0, user.pw_uid):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)


@contextlib.contextmanager
def locked(state: Path) -> Iterator[None]:
    """One process at a time starts or stops something here."""
    make_state(state)
    descriptor = os.open(state / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # By name: a process that was forked meanwhile has the lock's descriptor too, and would keep it.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def is_at(descriptor: int, file: Path) -> bool:
    """Whether a file is still where it was opened; that of an instance that was removed is not."""
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except OSError:
        return False
