"""Import every module of some packages and say which of them changed what the process shares.

Each module's own doing is told apart from that of the modules that it imports: the state is looked at whenever the
execution of a module begins or ends, and what changed since the last look is put down to whoever was executed.
"""

import atexit
import copyreg
import decimal
import gc
import importlib
import importlib.abc
import json
import locale
import logging
import multiprocessing
import os
import pkgutil
import random
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import django.core.checks.registry
import django.core.signals
import django.db.backends.signals
import django.db.models.signals
import django.dispatch
import psycopg

_HANDLED = [one for one in signal.Signals if one not in (signal.SIGKILL, signal.SIGSTOP)]
_SIGNALS = [
    one
    for module in (django.core.signals, django.db.backends.signals, django.db.models.signals)
    for one in vars(module).values()
    if isinstance(one, django.dispatch.Signal)
]


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _loggers() -> Any:
    known = [logging.getLogger(), *(one for one in logging.Logger.manager.loggerDict.values())]
    return [
        (one.name, one.level, one.propagate, one.disabled, list(map(id, one.handlers)), list(map(id, one.filters)))
        for one in known
        # A logger that was only named is nobody's change.
        if isinstance(one, logging.Logger) and (one.level or one.handlers or one.filters or not one.propagate)
    ] + [logging.root.manager.disable, id(logging.getLoggerClass()), id(logging.getLogRecordFactory())]


def _adapters() -> Any:
    given = psycopg.adapters
    return [
        [[(key, id(one)) for key, one in of_format.items()] for of_format in given._dumpers.values()],
        [list(of_format.items()) for of_format in given._dumpers_by_oid],
        [list(of_format.items()) for of_format in given._loaders],
        sorted((one.name, one.oid) for one in given.types),
    ]


STATE: Mapping[str, Callable[[], Any]] = {
    "adapters of psycopg": _adapters,
    "environment": lambda: dict(os.environ),
    "warnings": lambda: list(warnings.filters),
    "signal handlers": lambda: [signal.getsignal(one) for one in _HANDLED],
    "logging": _loggers,
    "locale": lambda: locale.setlocale(locale.LC_ALL),
    "decimal": lambda: [repr(decimal.getcontext()), repr(decimal.DefaultContext)],
    "way to begin processes": lambda: multiprocessing.get_start_method(allow_none=True),
    "json": lambda: [json.JSONEncoder.default, json.JSONEncoder.encode, json.dumps, json.loads],
    "hooks": lambda: [sys.excepthook, threading.excepthook, sys.unraisablehook, sys.displayhook, sys.gettrace()],
    "limits of the interpreter": lambda: [
        sys.getrecursionlimit(),
        sys.getswitchinterval(),
        sys.get_int_max_str_digits(),
        gc.get_threshold(),
        gc.isenabled(),
    ],
    "path of imports": lambda: list(sys.path),
    "working directory": os.getcwd,
    "mask of rights": _mask,
    "socket timeout": socket.getdefaulttimeout,
    "chance": random.getstate,
    "at exit": atexit._ncallbacks,
    "threads": lambda: sorted(one.name for one in threading.enumerate()),
    "copies": lambda: dict(copyreg.dispatch_table),
    "signals of Django": lambda: [[lookup for lookup, *_ in one.receivers] for one in _SIGNALS],
    "checks of Django": lambda: [
        set(map(id, django.core.checks.registry.registry.registered_checks)),
        set(map(id, django.core.checks.registry.registry.deployment_checks)),
    ],
}


class Watch(importlib.abc.MetaPathFinder):
    """Stands before every other finder and looks at the state around each module's execution."""

    def __init__(self) -> None:
        self.changes: dict[str, set[str]] = {}
        self._executed = ["the process"]
        self._last: dict[str, Any] = {}

    def look(self) -> None:
        """Put what changed since the last look down to whoever is executed now."""
        now = {kind: read() for kind, read in STATE.items()}
        if self._last:
            changed = {kind for kind in STATE if now[kind] != self._last[kind]}
            if changed:
                self.changes.setdefault(self._executed[-1], set()).update(changed)
        self._last = now

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """What the others find, to be executed between two looks."""
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    executed = spec.loader.exec_module
                    # A loader of the interpreter's own takes nothing, and executes nothing of ours.
                    with suppress(AttributeError):
                        spec.loader.exec_module = partial(self._execute, executed)  # type: ignore[method-assign]
                return spec
        return None

    def _execute(self, executed: Callable[[ModuleType], None], module: ModuleType) -> None:
        self.look()
        self._executed.append(module.__name__)
        try:
            executed(module)
        finally:
            self.look()
            self._executed.pop()


def main(*packages: str) -> None:
    """Print what the modules of these packages changed, as one line of JSON."""
    watch = Watch()
    sys.meta_path.insert(0, watch)
    django.setup()
    for package in packages:
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if found.name.rpartition(".")[2] == "__main__":
                continue
            try:
                importlib.import_module(found.name)
            except ModuleNotFoundError as missing:
                # Of an extra that is not installed here.
                if (missing.name or "").partition(".")[0] in packages:
                    raise
    changed = {name: sorted(kinds) for name, kinds in watch.changes.items() if name.partition(".")[0] in packages}
    print(json.dumps(changed))


if __name__ == "__main__":
    main(*sys.argv[1:])
