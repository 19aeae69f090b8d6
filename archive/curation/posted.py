"""What the form of a page may carry, and nothing else."""

from collections.abc import Set
from typing import Final

from django.http import HttpRequest

from archive import limits
from archive.refusals import Fault, InvalidRequest

_ALWAYS: Final = frozenset({"csrfmiddlewaretoken", "confirmed"})


def unknown(request: HttpRequest, known: Set[str]) -> list[Fault]:
    """Name every field that nobody asked for, whatever letters its name has."""
    return [stray(name, "no such field") for name in sorted(request.POST.keys() - known)]


def stray(name: str, why: str) -> Fault:
    """Point at a field by its name where a pointer can hold it, else at the form."""
    return Fault(f"/{name}" if name.isascii() else "", why)


def given(request: HttpRequest, fields: tuple[str, ...]) -> dict[str, str]:
    """Read the fields of a form that is confirmed by a second POST: each once, short, on one line; no other."""
    known = _ALWAYS | set(fields)
    faults = unknown(request, known)
    faults += [Fault(f"/{name}", "once") for name in known if len(request.POST.getlist(name)) > 1]
    read = {name: request.POST.get(name, "").strip() for name in fields}
    faults += [
        Fault(f"/{name}", f"at most {limits.IDENTIFIER_MAX} characters, without line breaks")
        for name, value in read.items()
        if len(value) > limits.IDENTIFIER_MAX or (value and not value.isprintable())
    ]
    if faults:
        raise InvalidRequest(faults)
    return {name: str(value) for name, value in read.items()}
