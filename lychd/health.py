"""Two probes: the process is alive; the service can do its work. Neither tells a stranger more than that."""

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from django.core import checks
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from archive import transactions
from archive.outages import Outage
from archive.refusals import MethodNotAllowed, StorageUnavailable
from lychd import dependencies, problems, roles

BESIDE_SECONDS: Final = 0.5
"""How long readiness waits for a look at the broker; a later one has its answer."""


# Nothing is written here, so a wrong method is told as one, whatever token it lacks.
@csrf_exempt
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive; says nothing about the database."""
    return _only_read(request) or JsonResponse({"status": "ok"})


@csrf_exempt
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer whether the database is there, migrated, can write, and serves through a role that its fences bind.

    A broker or a worker that is missing is a warning and no failure: intake, review and recall go on without either.
    """
    if (refused := _only_read(request)) is not None:
        return refused
    found: dict[str, str] = {}
    for name, holds in CONDITIONS.items():
        refusal = StorageUnavailable.by(_UNMET[name]) if name in _UNMET else StorageUnavailable()
        try:
            found[name] = "ok" if holds() else "failed"
        except Error as error:
            found[name] = "failed"
            named = transactions.named(error)
            refusal = named if isinstance(named, StorageUnavailable) else refusal
        if found[name] != "ok":
            refusal.extra["checks"] = found
            return problems.answer(request, refusal)
    return JsonResponse({"status": "ok", "checks": {**found, **_beside.known()}})


def _database_answers() -> bool:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT 1")
        return bool(cursor.fetchone())


def _is_migrated() -> bool:
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def _disk_takes_more() -> bool:
    dependencies.try_disk()
    return True


def _role_is_bound() -> bool:
    return not any(one.level >= checks.ERROR for one in roles.check_database(databases=[DEFAULT_DB_ALIAS]))


CONDITIONS: Final[dict[str, Callable[[], bool]]] = {
    "database": _database_answers,
    "migrations": _is_migrated,
    "roles": _role_is_bound,
    "disk": _disk_takes_more,
}


_UNMET: Final = {
    "migrations": Outage("", "The tables are not up to date", "An operator should run `lychd migrate`."),
    "roles": Outage("", "The fences of the database are not all up", "An operator should run `lychd doctor`."),
}


class _Beside:
    """What stands beside the database, looked at in a thread: however slow it is, readiness is not late for it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="beside")
        self._looking: Future[dict[str, str]] | None = None
        self._known: dict[str, str] = {}

    def known(self) -> dict[str, str]:
        """Return what is seen within a moment, else what was seen last."""
        if not dependencies.needs_broker():
            return {}
        if self._looking is None or self._looking.done():
            if self._looking is not None:
                self._known = self._looking.result()
            self._looking = self._thread.submit(_look_beside)
        with contextlib.suppress(TimeoutError):
            self._known = self._looking.result(BESIDE_SECONDS)
        return self._known


_beside: Final = _Beside()


def _look_beside() -> dict[str, str]:
    try:
        queue = dependencies.queue()
    except dependencies.BrokerAway:
        return {"broker": "warning"}
    if not dependencies.needs_worker():
        return {"broker": "ok"}
    return {"broker": "ok", "worker": "warning" if queue.worker is False else "ok"}


def _only_read(request: HttpRequest) -> HttpResponse | None:
    if request.method in {"GET", "HEAD"}:
        return None
    return problems.answer(request, MethodNotAllowed(), {"Allow": "GET, HEAD"})
