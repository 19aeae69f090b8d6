"""What the form of a page may carry, and nothing else."""

from collections.abc import Set

from django.http import HttpRequest

from archive.refusals import Fault


def unknown(request: HttpRequest, known: Set[str]) -> list[Fault]:
    """Name every field that nobody asked for, whatever letters its name has."""
    return [stray(name, "no such field") for name in sorted(request.POST.keys() - known)]


def stray(name: str, why: str) -> Fault:
    """Point at a field by its name where a pointer can hold it, else at the form."""
    return Fault(f"/{name}" if name.isascii() else "", why)
