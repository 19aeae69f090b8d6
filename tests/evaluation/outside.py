"""The measuring commands as people run them: processes of their own, on the suite's server."""

import subprocess
import sys

import psycopg
import pytest
from django.conf import settings

from lychd import embedded, scratch
from lychd.environment import CHECKOUT
from tests.commands.conftest import PATIENCE, Ran, environment


def started(*arguments: object) -> "subprocess.Popen[str]":
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("a server elsewhere lets nobody make databases")
    return subprocess.Popen(
        [sys.executable, "-m", "lychd.console", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        env=environment(settings.LYCHD_STATE_ROOT, LYCHD_INSTANCE=settings.LYCHD_INSTANCE),
    )


def ran(*arguments: object) -> Ran:
    process = started(*arguments)
    out, err = process.communicate(timeout=5 * PATIENCE)
    assert made_by(process.pid) == set(), "a measuring command leaves no database"
    return Ran(process.returncode, out, err)


def made_by(process: int) -> set[str]:
    """The databases that one measuring command has on the suite's server; other tests make theirs there meanwhile."""
    server = embedded.Server(settings.LYCHD_STATE_DIR, embedded.socket_dir(settings.LYCHD_STATE_DIR))
    with psycopg.connect(server.url("postgres", embedded.SUPERUSER)) as connection:
        rows = connection.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [scratch.PREFIX])
        return {name for (name,) in rows if name.split("_")[-2] == str(process)}
