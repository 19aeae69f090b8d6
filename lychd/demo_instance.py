"""Which instance the demonstration is: chosen before any settings are read, so this imports nothing that reads them."""

import fcntl
import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from archive import limits
from lychd.commands.telling import UsageError
from lychd.environment import instance_name, state_root

INSTANCE: Final = "demo"
SUFFIX: Final = "_demo"
# Settings of a real installation that a demonstration must not take over.
_NOT_TAKEN_OVER: Final = (
    "REDIS_URL",
    "LYCHD_ADMISSION_DEFAULT",
    "LYCHD_ALLOWED_HOSTS",
    "LYCHD_AUTHORIZER",
    "LYCHD_BINDINGS",
    "LYCHD_BINDINGS_FILE",
    "LYCHD_COORDINATION",
    "LYCHD_DATABASE_KEEP_SECONDS",
    "LYCHD_DATABASE_POOLER",
    "LYCHD_DERIVATION_LEASES",
    "LYCHD_DERIVATION_MODEL_PATH",
    "LYCHD_PATH_PREFIX",
    "LYCHD_SECRET_KEY",
    "LYCHD_TRUSTED_PROXIES",
    "LYCHD_WEB_PROCESSES",
    "LYCHD_WORKER_PROCESSES",
)
# Recall by meaning: without a model, or with the small one. The reference says which, since it stands wherever a
# generation is shown.
MEANING: Final = {
    "stand-in": {
        "LYCHD_DERIVATION_EMBEDDER": "stand-in",
        "LYCHD_DERIVATION_GENERATION": "stand-in-1",
        "LYCHD_SEMANTIC": "true",
        "LYCHD_TEST_EMBEDDER": "true",
    },
    "minilm": {
        "LYCHD_DERIVATION_EMBEDDER": "minilm",
        "LYCHD_DERIVATION_GENERATION": "minilm-1",
        "LYCHD_SEMANTIC": "true",
        "LYCHD_TEST_EMBEDDER": "false",
    },
}


def choose_instance(environment: MutableMapping[str, str], model: str) -> None:
    """Point this process at the instance of the demonstration, before any settings are read."""
    if "lychd.settings" in sys.modules:
        # `manage.py` has read the settings of another instance; one process has one.
        os.execv(sys.executable, [sys.executable, "-m", "lychd.console", *sys.argv[1:]])  # noqa: S606
    for name in _NOT_TAKEN_OVER:
        environment.pop(name, None)
    environment.update(LYCHD_INSTANCE=INSTANCE, LYCHD_ENV="development", LYCHD_ARCHIVE_PROFILE=limits.PROFILE)
    environment.update(MEANING[model])
    if environment.get("DATABASE_URL"):
        if not environment.get("DATABASE_OWNER_URL"):
            raise UsageError(
                "the demo makes a database of its own: set DATABASE_OWNER_URL to a login that may,"
                " or unset DATABASE_URL to use the embedded server"
            )
        for name in ("DATABASE_URL", "DATABASE_OWNER_URL"):
            environment[name] = _beside(environment[name])
        # No broker comes with a database of somebody's own, and this one process alone embeds.
        environment["LYCHD_COORDINATION"] = "process"


def runs_beside(environment: Mapping[str, str]) -> bool:
    """Whether a demonstration serves while this process looks into an installation that nobody has begun."""
    if environment.get("LYCHD_INSTANCE") or environment.get("DATABASE_URL"):
        return False
    root = state_root(environment)
    if (root / instance_name(environment) / "environment").exists():
        return False
    try:
        with (root / INSTANCE / "serving").open("rb") as word:
            fcntl.flock(word, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _beside(address: str) -> str:
    """The address of the demonstration's database on the same server."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=f"/{parts.path.lstrip('/') or 'lychd'}{SUFFIX}"))
