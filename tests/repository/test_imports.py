"""No module of the product changes what the whole process shares by being imported.

Who imports a module decides neither when nor whether others do. What an import changes is there for some processes and
not for others, and too late for whoever took a copy before.
"""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("archive", "inspection", "lychd", "semantic")

# What a process is begun with makes it what it is: it names its settings and sets Django and Celery up. Settings are
# read first, by Django alone.
BEGINNINGS = {
    "lychd.asgi": {"environment", "logging"},
    "lychd.bench.plain": {"environment", "logging"},
    "lychd.wsgi": {"environment", "logging"},
    "lychd.celery": {"environment", "path of imports"},
    "lychd.settings": {"logging"},
    "lychd.settings_test": {"environment"},
}


def changes(*packages: str, path: Path = ROOT) -> dict[str, set[str]]:
    """Import every module of the packages in a process of its own; what each changed itself, by its name."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.repository.importing", *packages],
        cwd=ROOT,
        env={"PYTHONPATH": f"{path}:{ROOT}", "DJANGO_SETTINGS_MODULE": "lychd.settings_test", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return {module: set(kinds) for module, kinds in json.loads(run.stdout.splitlines()[-1]).items()}


def test_no_module_of_the_product_changes_what_the_process_shares():
    found = changes(*PACKAGES)
    assert {module: kinds for module, kinds in found.items() if kinds - BEGINNINGS.get(module, set())} == {}
    assert found.keys() >= {"lychd.celery", "lychd.settings_test"}


PLANTED = {
    "adapters of psycopg": "import psycopg\nfrom psycopg.types.string import StrDumper\n"
    "psycopg.adapters.register_dumper(bytearray, StrDumper)",
    "environment": "import os\nos.environ['A_NAME'] = 'a value'",
    "warnings": "import warnings\nwarnings.simplefilter('ignore')",
    "signal handlers": "import signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)",
    "logging": "import logging\nlogging.getLogger('planted').addHandler(logging.NullHandler())",
    "locale": "import locale\nlocale.setlocale(locale.LC_ALL, 'C.UTF-8')",
    "decimal": "import decimal\ndecimal.getcontext().prec = 50",
    "way to begin processes": "import multiprocessing\nmultiprocessing.set_start_method('spawn')",
    "json": "import json\njson.JSONEncoder.default = lambda self, one: str(one)",
    "hooks": "import sys\nsys.excepthook = print",
    "limits of the interpreter": "import sys\nsys.setrecursionlimit(5_000)",
    "path of imports": "import sys\nsys.path.append('/nowhere')",
    "working directory": "import os\nos.chdir('/')",
    "mask of rights": "import os\nos.umask(0o007)",
    "socket timeout": "import socket\nsocket.setdefaulttimeout(3)",
    "chance": "import random\nrandom.seed(3)",
    "at exit": "import atexit\natexit.register(str)",
    "threads": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "copies": "import copyreg\ncopyreg.pickle(type(iter('')), print)",
    "signals of Django": "from django.core.signals import request_started\nrequest_started.connect(print, weak=False)",
    "checks of Django": "from django.core import checks\nchecks.register(lambda **_: [])",
}


@pytest.mark.longest
def test_each_kind_of_change_is_seen(tmp_path):
    package = tmp_path / "planted"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for number, change in enumerate(PLANTED.values()):
        (package / f"m{number}.py").write_text(textwrap.dedent(change))
    (package / "innocent.py").write_text("import planted.m0, argparse, html.parser")

    assert changes("planted", path=tmp_path) == {f"planted.m{number}": {kind} for number, kind in enumerate(PLANTED)}
