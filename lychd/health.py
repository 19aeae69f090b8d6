"""Two probes: the process is alive; the service can do its work. Neither tells a stranger more than that."""

from collections.abc import Callable
from typing import Final

from django.core import checks
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from archive.refusals import MethodNotAllowed, StorageUnavailable
from lychd import problems, roles


# Nothing is written here, so a wrong method is told as one, whatever token it lacks.
@csrf_exempt
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive; says nothing about the database."""
    return _only_read(request) or JsonResponse({"status": "ok"})


@csrf_exempt
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer whether the database is there, migrated, and serves through a role that its fences bind."""
    if (refused := _only_read(request)) is not None:
        return refused
    found: dict[str, str] = {}
    for name, holds in CONDITIONS.items():
        try:
            found[name] = "ok" if holds() else "failed"
        except Error:
            found[name] = "failed"
        if found[name] != "ok":
            return problems.answer(request, StorageUnavailable(extra={"checks": found}))
    return JsonResponse({"status": "ok", "checks": found})


def _database_answers() -> bool:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT 1")
        return bool(cursor.fetchone())


def _is_migrated() -> bool:
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def _role_is_bound() -> bool:
    return not any(one.level >= checks.ERROR for one in roles.check_database(databases=[DEFAULT_DB_ALIAS]))


CONDITIONS: Final[dict[str, Callable[[], bool]]] = {
    "database": _database_answers,
    "migrations": _is_migrated,
    "roles": _role_is_bound,
}


def _only_read(request: HttpRequest) -> HttpResponse | None:
    if request.method in {"GET", "HEAD"}:
        return None
    return problems.answer(request, MethodNotAllowed(), {"Allow": "GET, HEAD"})
