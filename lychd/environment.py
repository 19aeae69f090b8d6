"""What the process is told from outside: one table of variables, read once, loud on nonsense."""

import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import environ
from django.core.exceptions import ImproperlyConfigured

CHECKOUT: Final = Path(__file__).resolve().parent.parent

# Every variable that the service reads, and what it may be. `.env.example` shows the same list with defaults.
VARIABLES: Final[Mapping[str, str]] = {
    "DATABASE_URL": "a PostgreSQL address for the serving role",
    "DATABASE_OWNER_URL": "a PostgreSQL address for the role that owns the tables",
    "REDIS_URL": "a Redis address: redis://, rediss:// or unix://",
    "LYCHD_ADMISSION_DEFAULT": "a dotted path, or nothing",
    "LYCHD_ALLOWED_HOSTS": "host names separated by commas",
    "LYCHD_ARCHIVE_PROFILE": "off or local-public-notes@1",
    "LYCHD_AS": "the subject of a principal, for commands",
    "LYCHD_AUTHORIZER": "a dotted path",
    "LYCHD_BINDINGS": "a dotted path",
    "LYCHD_BINDINGS_FILE": "the path of a JSON file with a list of bindings",
    "LYCHD_COORDINATION": "redis or process",
    "LYCHD_CSRF_TRUSTED_ORIGINS": "origins separated by commas, each with its scheme",
    "LYCHD_DATABASE_KEEP_SECONDS": "a whole number of seconds",
    "LYCHD_DATABASE_POOLER": "true or false",
    "LYCHD_DERIVATION_EMBEDDER": "stand-in, minilm, or the path of a file that `lychd generation describe` wrote",
    "LYCHD_DERIVATION_GENERATION": "a reference of letters, digits, . _ : / and -",
    "LYCHD_DERIVATION_LEASES": "a whole number above zero",
    "LYCHD_DERIVATION_MODEL_PATH": "the folder of a model",
    "LYCHD_ENV": "development or production",
    "LYCHD_HSTS_SECONDS": "a whole number of seconds",
    "LYCHD_IDLE_TIMEOUT_MS": "a whole number of milliseconds above zero",
    "LYCHD_INSTANCE": "a short name of letters, digits, - and _",
    "LYCHD_LOCK_TIMEOUT_MS": "a whole number of milliseconds above zero",
    "LYCHD_LOG_LEVEL": "DEBUG, INFO, WARNING or ERROR",
    "LYCHD_NAMESPACE": "the key of a namespace, for commands",
    "LYCHD_PATH_PREFIX": "a path such as /archive, or nothing",
    "LYCHD_READS_PER_MINUTE": "a whole number above zero",
    "LYCHD_RECALLS_PER_MINUTE": "a whole number above zero",
    "LYCHD_SECRET_KEY": "at least 50 characters",
    "LYCHD_SECRET_KEY_FALLBACKS": "keys of before separated by commas, each at least 50 characters",
    "LYCHD_SEMANTIC": "true or false",
    "LYCHD_SERVING_ROLE": "the name of a PostgreSQL role",
    "LYCHD_SSL_REDIRECT": "true or false",
    "LYCHD_STATEMENT_TIMEOUT_MS": "a whole number of milliseconds above zero",
    "LYCHD_STATE_DIR": "a folder",
    "LYCHD_STATIC_ROOT": "a folder",
    "LYCHD_TEST_EMBEDDER": "true or false",
    "LYCHD_TEST_STATE_DIR": "a folder",
    "LYCHD_TIME_ZONE": "a time zone such as Europe/Vienna",
    "LYCHD_TRANSACTION_TIMEOUT_MS": "a whole number of milliseconds above zero",
    "LYCHD_WAITING_CANDIDATES_MAX": "a whole number above zero",
    "LYCHD_TRUSTED_PROXIES": "addresses or networks such as 10.0.0.7 or 172.18.0.0/16, separated by commas",
    "LYCHD_WEB_PROCESSES": "a whole number above zero",
    "LYCHD_WORKER_PROCESSES": "a whole number above zero",
    "LYCHD_WRITES_PER_MINUTE": "a whole number above zero",
}

_PREFIX: Final = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]+)+")
_INSTANCE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


def refuse(name: str) -> ImproperlyConfigured:
    """The sentence that names a variable and says what it may be; never its value, which may be a secret."""
    return ImproperlyConfigured(f"{name} must be {VARIABLES[name]}.")


class Environment:
    """The process environment, filled up from the instance's own file; the environment wins."""

    def __init__(self, values: Mapping[str, str]) -> None:
        unknown = sorted(name for name in values if name.startswith("LYCHD_") and name not in VARIABLES)
        if unknown:
            raise ImproperlyConfigured(
                f"{unknown[0]} is not a variable of this service; .env.example lists every one there is."
            )
        self._reader = environ.Env()
        self._reader.ENVIRON = {name: value for name, value in values.items() if name in VARIABLES and value != ""}

    def __contains__(self, name: str) -> bool:
        return name in self._reader.ENVIRON

    def text(self, name: str, default: str = "") -> str:
        """The variable as it stands, or the default where it is unset or empty."""
        value: str = self._reader.str(name, default=default)
        return value

    def choice(self, name: str, default: str, allowed: frozenset[str]) -> str:
        """One of a closed list."""
        value = self.text(name, default)
        if value not in allowed:
            raise refuse(name)
        return value

    def switch(self, name: str, *, default: bool) -> bool:
        """True or false, in those words."""
        return self.choice(name, str(default).lower(), frozenset({"true", "false"})) == "true"

    def number(self, name: str, default: int, least: int = 1) -> int:
        """A whole number not below `least`."""
        try:
            value: int = self._reader.int(name, default=default)
        except ValueError:
            raise refuse(name) from None
        if not least <= value < 2**31:
            raise refuse(name)
        return value

    def names(self, name: str) -> list[str]:
        """A list separated by commas; empty where the variable is unset."""
        return [item for item in (part.strip() for part in self.text(name).split(",")) if item]

    def networks(self, name: str) -> list[str]:
        """A list of addresses and networks; one that is none would silently be trusted never."""
        found = self.names(name)
        try:
            for one in found:
                ipaddress.ip_network(one)
        except ValueError:
            raise refuse(name) from None
        return found

    def prefix(self, name: str) -> str:
        """A path without its last slash; empty for the root."""
        value = self.text(name).rstrip("/")
        if value and not _PREFIX.fullmatch(value):
            raise refuse(name)
        return value

    def database(self, name: str) -> dict[str, object]:
        """A PostgreSQL address as Django wants it."""
        value = self.text(name)
        if not value.startswith(("postgres://", "postgresql://")):
            raise refuse(name)
        try:
            return dict(self._reader.db_url_config(value, engine="django.db.backends.postgresql"))
        except (ValueError, environ.ImproperlyConfigured):
            raise refuse(name) from None


def state_root(values: Mapping[str, str]) -> Path:
    """The folder that holds what this service keeps on disk, one folder an instance inside it."""
    if given := values.get("LYCHD_STATE_DIR"):
        return Path(given).expanduser().absolute()
    beside = CHECKOUT / ".lychd"
    if os.access(beside if beside.exists() else CHECKOUT, os.W_OK) and (CHECKOUT / "manage.py").exists():
        return beside
    home = values.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser().absolute() / "lychd"


def instance_name(values: Mapping[str, str]) -> str:
    """The instance that this process works on."""
    name = values.get("LYCHD_INSTANCE") or "main"
    if not _INSTANCE.fullmatch(name):
        raise refuse("LYCHD_INSTANCE")
    return name


def written(file: Path) -> dict[str, str]:
    """The KEY=value lines of an instance's own file; nothing where there is no file."""
    found: dict[str, str] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return found
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or name.strip() not in VARIABLES:
            raise ImproperlyConfigured(f"{file}, line {number}, is not KEY=value with a variable of this service.")
        found[name.strip()] = value.strip()
    return found


def gather(values: Mapping[str, str], state: Path) -> Environment:
    """The whole environment of one instance: its file first, the process over it."""
    return Environment({**written(state / "environment"), **values})
