"""Who acts and where: the same door that the API uses, with the principal named by the command line."""

import argparse
import os
from typing import Final

from django.conf import settings

from archive.authority import Caller, active_subject
from archive.bindings import Binding, require_profile, source
from archive.models import ConfiguredBinding
from archive.refusals import AuthorityRefused, NamespaceNotServed
from archive.transactions import reading
from inspection.namespaces import choose
from lychd.commands.telling import UsageError
from lychd.environment import gather

_NAMED: Final = 10
"""So many namespaces are named to whoever has to choose."""


def caller(options: argparse.Namespace) -> Caller:
    """Meet a namespace as the principal of the command line; every refusal is the API's own."""
    subject = options.subject or _given("LYCHD_AS")
    if not subject:
        raise UsageError("say who acts: --as SUBJECT, or set LYCHD_AS. `lychd principal list` shows who there is.")
    require_profile()
    if active_subject(subject) is None:
        raise AuthorityRefused
    namespace = options.namespace or _given("LYCHD_NAMESPACE")
    if not namespace:
        served = choose(subject, limit=_NAMED + 1).keys
        if len(served) != 1:
            raise UsageError(_choose(served))
        namespace = served[0]
    return Caller.in_namespace(subject, namespace)


def binding(options: argparse.Namespace) -> Binding:
    """Return the binding that a host command is about."""
    with reading():
        found = source().find(_one_namespace(options.namespace))
    if found is None:
        raise NamespaceNotServed
    return found


def _one_namespace(named: str | None) -> str:
    if namespace := named or _given("LYCHD_NAMESPACE"):
        return namespace
    with reading():
        served = tuple(
            ConfiguredBinding.objects.filter(disabled_at__isnull=True)
            .order_by("namespace_key")
            .values_list("namespace_key", flat=True)[: _NAMED + 1]
        )
    if len(served) != 1:
        raise UsageError(_choose(served))
    return served[0]


def namespaces(options: argparse.Namespace) -> list[str]:
    """Return the served namespaces that a host command names, each once; without any, the one it is about."""
    keys = list(dict.fromkeys(options.namespaces)) or [_one_namespace(None)]
    with reading():
        found = source().find_all(keys)
    if found.keys() != set(keys):
        raise NamespaceNotServed
    return keys


def _given(name: str) -> str:
    return gather(os.environ, settings.LYCHD_STATE_DIR).text(name)


def _choose(served: tuple[str, ...]) -> str:
    if not served:
        return "say where: --namespace KEY, or set LYCHD_NAMESPACE. `lychd namespace configure` serves one."
    more = " and more" if len(served) > _NAMED else ""
    return f"say where: --namespace KEY, or set LYCHD_NAMESPACE. There are: {', '.join(served[:_NAMED])}{more}."
