"""The environment is read loudly, and no setting starts anything."""

import json
import os
import re
import secrets
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lychd.environment import CHECKOUT, VARIABLES

PRODUCTION = {
    "LYCHD_ENV": "production",
    "LYCHD_SECRET_KEY": secrets.token_urlsafe(64),
    "LYCHD_ALLOWED_HOSTS": "archive.example.org",
}


@pytest.fixture
def manage(tmp_path):
    """Run one management command in an environment of its own."""

    def run(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "LC_ALL")}
        return subprocess.run(
            [sys.executable, str(CHECKOUT / "manage.py"), *arguments],
            env={**kept, "LYCHD_STATE_DIR": str(tmp_path / "state"), **variables},
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )

    return run


def last_line(result: "subprocess.CompletedProcess[str]") -> str:
    assert result.returncode != 0
    return result.stderr.strip().splitlines()[-1]


def test_production_has_nothing_to_warn_of(manage):
    result = manage("check", "--deploy", "--fail-level", "WARNING", **PRODUCTION)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LYCHD_ENV", "staging"),
        ("LYCHD_ARCHIVE_PROFILE", "local-public-notes@2"),
        ("LYCHD_COORDINATION", "both"),
        ("LYCHD_STATEMENT_TIMEOUT_MS", "5s"),
        ("LYCHD_STATEMENT_TIMEOUT_MS", "0"),
        ("LYCHD_INSTANCE", "../other"),
        ("LYCHD_TIME_ZONE", "Mars/Olympus"),
        ("LYCHD_LOG_LEVEL", "loud"),
        ("LYCHD_SECRET_KEY", "short"),
        ("LYCHD_SECRET_KEY_FALLBACKS", f"{'k' * 50}abcde,short"),
        ("LYCHD_SERVING_ROLE", "a b"),
        ("DATABASE_URL", "mysql://elsewhere"),
        ("REDIS_URL", "http://elsewhere"),
    ],
)
def test_a_malformed_variable_is_refused_by_name_and_without_its_value(manage, variable, value):
    said = last_line(manage("check", **{variable: value}))
    assert f"{variable} must be {VARIABLES[variable]}." in said
    assert value not in said.removeprefix("django.core.exceptions.ImproperlyConfigured: ").replace(
        VARIABLES[variable], ""
    )


def test_an_unknown_variable_is_refused(manage):
    assert "LYCHD_ARCHIVE_PROFIL is not a variable" in last_line(manage("check", LYCHD_ARCHIVE_PROFIL="off"))


@pytest.mark.parametrize("missing", ["LYCHD_SECRET_KEY", "LYCHD_ALLOWED_HOSTS"])
def test_production_names_what_it_lacks(manage, missing):
    given = {name: value for name, value in PRODUCTION.items() if name != missing}
    assert f"{missing} must" in last_line(manage("check", **given))


SETTLED = {
    "LYCHD_ARCHIVE_PROFILE": "local-public-notes@1",
    "LYCHD_BINDINGS": "archive.bindings.SettingsBindings",
}
GARDEN = {"namespace": "garden", "owner": "estate", "policy_revision": "policy-1"}
FOUND = """
from archive.bindings import source
for key in ("garden", "orchard", "meadow"):
    print(source().find(key))
"""


def test_a_file_gives_the_fixed_few_bindings_of_the_settings(manage, tmp_path):
    file = tmp_path / "bindings.json"
    orchard = {**GARDEN, "namespace": "orchard", "text_configuration": "english", "second_person": True}
    file.write_text(json.dumps([GARDEN, {**orchard, "generation": "none"}]), encoding="utf-8")
    settled = {**SETTLED, "LYCHD_BINDINGS_FILE": str(file)}
    assert manage("check", **settled).returncode == 0
    garden, orchard_found, meadow = manage("shell", "--no-imports", "-c", FOUND, **settled).stdout.splitlines()
    assert garden.startswith("Binding(namespace='garden', owner='estate', policy_revision='policy-1'")
    assert "generation=None" in garden
    assert "text_configuration='english', second_person=True" in orchard_found
    assert "generation=''" in orchard_found
    assert meadow == "None"


@pytest.mark.parametrize(
    "listed",
    [
        [],
        [{**GARDEN, "owner": "a b"}],
        [{"namespace": "garden", "owner": "estate"}],
        [{**GARDEN, "policy": "p"}],
        [{**GARDEN, "second_person": "yes"}],
        ["garden"],
    ],
    ids=str,
)
def test_bindings_of_the_settings_that_serve_nothing_stop_the_start(manage, tmp_path, listed):
    file = tmp_path / "bindings.json"
    file.write_text(json.dumps(listed), encoding="utf-8")
    ended = manage("check", **SETTLED, LYCHD_BINDINGS_FILE=str(file))
    assert ended.returncode == 1
    assert "archive.E008" in ended.stderr


def test_bindings_of_the_settings_need_their_file(manage, tmp_path):
    ended = manage("check", **SETTLED)
    assert ended.returncode == 1
    assert "LYCHD_BINDINGS_FILE" in ended.stderr
    for text in ("{", "{}"):
        (tmp_path / "wrong.json").write_text(text, encoding="utf-8")
        said = last_line(manage("check", **SETTLED, LYCHD_BINDINGS_FILE=str(tmp_path / "wrong.json")))
        assert "LYCHD_BINDINGS_FILE must be" in said


def test_leases_are_counted_over_the_deployment_unless_one_process_is_asked_for(manage):
    deriving = {
        "LYCHD_ARCHIVE_PROFILE": "local-public-notes@1",
        "LYCHD_DERIVATION_GENERATION": "g-1",
        "LYCHD_DERIVATION_EMBEDDER": "stand-in",
        "LYCHD_TEST_EMBEDDER": "true",
    }
    elsewhere = {"DATABASE_URL": "postgres://somebody@nowhere/archive"}
    assert manage("check", **deriving).returncode == 0
    assert manage("check", **deriving, LYCHD_COORDINATION="process").returncode == 0
    assert manage("check", **deriving, **elsewhere, REDIS_URL="redis://nowhere").returncode == 0
    for wrong in (
        elsewhere,
        {"LYCHD_COORDINATION": "process", "LYCHD_WEB_PROCESSES": "2"},
        {"LYCHD_COORDINATION": "process", "LYCHD_WORKER_PROCESSES": "2"},
    ):
        ended = manage("check", **deriving, **wrong)
        assert ended.returncode == 1
        assert "semantic.E004" in ended.stderr


def test_an_owner_without_a_server_is_half_a_database(manage):
    assert "DATABASE_URL must be set" in last_line(manage("check", DATABASE_OWNER_URL="postgresql://owner@db/lychd"))


def show(manage, expression: str, **variables: str) -> str:
    program = f"from django.conf import settings; print({expression})"
    result = manage("shell", "-v", "0", "-c", program, **variables)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_archive_is_off_until_somebody_switches_it_on(manage):
    assert show(manage, "settings.LYCHD_ARCHIVE") == "None"
    assert "local-public-notes@1" in show(
        manage, "settings.LYCHD_ARCHIVE", LYCHD_ARCHIVE_PROFILE="local-public-notes@1"
    )


def test_the_instance_file_is_read_and_the_environment_wins(manage, tmp_path):
    instance = tmp_path / "state" / "demo"
    instance.mkdir(parents=True)
    (instance / "environment").write_text("# written by hand\nLYCHD_TIME_ZONE=Europe/Vienna\n\nLYCHD_LOG_LEVEL=ERROR\n")

    shown = show(manage, "settings.TIME_ZONE", LYCHD_INSTANCE="demo")
    assert shown == "Europe/Vienna"
    assert show(manage, "settings.TIME_ZONE", LYCHD_INSTANCE="demo", LYCHD_TIME_ZONE="UTC") == "UTC"


def test_a_stray_line_in_the_instance_file_is_refused_by_number(manage, tmp_path):
    instance = tmp_path / "state" / "main"
    instance.mkdir(parents=True)
    (instance / "environment").write_text("LYCHD_TIME_ZONE=UTC\nPATH=/nowhere\n")
    assert "line 2" in last_line(manage("check"))


def test_settings_start_nothing(manage, tmp_path):
    assert manage("check").returncode == 0
    left = {path.name for path in (tmp_path / "state").rglob("*")}
    assert left == {"main", "secret-key"}


def test_the_key_is_made_once_and_is_nobody_elses(manage, tmp_path):
    first, second = show(manage, "settings.SECRET_KEY"), show(manage, "settings.SECRET_KEY")
    assert first == second
    assert (tmp_path / "state" / "main" / "secret-key").stat().st_mode & 0o777 == 0o600


def test_the_owner_never_serves(manage):
    shown = show(manage, "[settings.DATABASES[a]['USER'] for a in ('default', 'owner')]")
    assert shown == "['lychd_serving', 'lychd_owner']"


def test_parameters_are_bound_by_the_server_and_no_request_is_one_transaction(settings):
    for database in settings.DATABASES.values():
        assert database["OPTIONS"]["server_side_binding"] is True
        assert database["ATOMIC_REQUESTS"] is False


def test_statements_are_prepared_unless_a_pooler_gives_each_transaction_another_session(manage):
    asked = (
        "[(d['OPTIONS']['prepare_threshold'], d['DISABLE_SERVER_SIDE_CURSORS']) for d in settings.DATABASES.values()]"
    )
    assert show(manage, asked) == "[(2, False), (2, False)]"
    assert show(manage, asked, LYCHD_DATABASE_POOLER="true") == "[(None, True), (None, True)]"


def test_a_cache_that_hangs_is_given_up_soon(manage):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        program = (
            "import time, redis; from django.core.cache import cache; begun = time.monotonic()\n"
            "try: cache.add('one', 1)\n"
            "except Exception as error: print(type(error).__name__, time.monotonic() - begun < 3)"
        )
        result = manage("shell", "-v", "0", "-c", program, REDIS_URL=f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
    assert result.stdout.split() == ["TimeoutError", "True"], result.stderr


def test_the_worker_neither_retries_nor_keeps_results_nor_has_a_schedule():
    from lychd.celery import app

    conf = app.conf
    assert (conf.task_default_queue, conf.task_ignore_result, conf.task_acks_late) == ("embedding", True, False)
    assert (conf.task_soft_time_limit, conf.task_time_limit, conf.worker_prefetch_multiplier) == (60, 75, 1)
    assert (list(conf.accept_content), conf.beat_schedule, conf.result_backend) == (["json"], {}, None)


def test_no_line_is_written_for_a_request_whose_address_may_quote_a_text(manage):
    """The server asks exactly this before it writes its access lines, query strings in full."""
    assert show(manage, "__import__('logging').getLogger('uvicorn.access').hasHandlers()") == "False"


@pytest.mark.parametrize("variables", [{}, {"LYCHD_ENV": "development"}])
def test_no_page_shows_the_inside_of_an_error_in_development_either(manage, variables):
    """The framework's debug pages quote settings and local values, and its debug cursor keeps every statement."""
    assert show(manage, "settings.DEBUG", **variables) == "False"
    assert show(manage, "settings.ALLOWED_HOSTS") == "['localhost', '.localhost', '127.0.0.1', '[::1]']"


def test_nothing_heavy_is_imported_at_start(manage):
    assert show(manage, "[name for name in ('torch', 'numpy') if name in __import__('sys').modules]") == "[]"


def example() -> list[str]:
    return re.findall(r"^([A-Z_]+)=", (CHECKOUT / ".env.example").read_text(), re.MULTILINE)


def test_the_example_lists_every_variable_once():
    assert sorted(example()) == sorted(VARIABLES)


def test_the_example_loads_as_it_stands(manage):
    lines = (CHECKOUT / ".env.example").read_text().splitlines()
    values = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    values.pop("LYCHD_STATE_DIR")
    assert manage("check", **values).returncode == 0


def test_the_containers_are_told_only_what_exists():
    services = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())["services"]
    for name in ("web", "worker", "migrate"):
        told = {
            variable for variable in services[name]["environment"] if variable.startswith(("LYCHD_", "DATA", "RED"))
        }
        assert told <= set(VARIABLES)
    assert "DATABASE_OWNER_URL" not in services["web"]["environment"]
    assert "DATABASE_OWNER_URL" in services["migrate"]["environment"]


def test_the_broker_of_the_containers_and_of_every_example_has_a_password():
    services = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())["services"]
    command = services["redis"]["command"]
    password = command[command.index("--requirepass") + 1]
    # Without one nothing starts.
    assert password == "${LYCHD_REDIS_PASSWORD:?}"
    assert "ports" not in services["redis"]
    for name in ("web", "worker", "migrate"):
        assert services[name]["environment"]["REDIS_URL"] == f"redis://:{password}@redis/0"
    examples = [CHECKOUT / ".env.example", CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md")]
    addresses = {
        one for path in examples for one in re.findall(r"rediss?://[^\s`)]+", path.read_text()) if "@" not in one
    }
    assert addresses <= {"rediss://"}


def test_the_containers_embed_migrate_and_wait_as_they_have_to():
    compose = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())
    services = compose["services"]
    for name in ("web", "worker"):
        told = services[name]["environment"]
        assert {"LYCHD_SEMANTIC", "LYCHD_DERIVATION_GENERATION", "LYCHD_DERIVATION_EMBEDDER"} <= told.keys()
    # The server that the image starts to make the roles listens on no address, so only this one waits for the real one.
    asked = services["postgres"]["healthcheck"]["test"]
    assert asked[asked.index("--host") + 1] == "127.0.0.1"
    # What the file asks of its reader stands in the example.
    asked_for = set(re.findall(r"\$\{([A-Z_]+)", (CHECKOUT / "docker-compose.yml").read_text()))
    named = set(re.findall(r"^#?([A-Z_]+)=", (CHECKOUT / ".env.example").read_text(), re.MULTILINE))
    assert asked_for <= named


def test_no_lock_file_names_a_host_or_a_folder():
    for lock in (CHECKOUT / "requirements").glob("*.txt"):
        said = lock.read_text()
        assert "://" not in said, lock
        assert str(Path.home()) not in said, lock
        assert lock.name == "torch.txt" or all(
            line.startswith("    --hash=") or re.match(r"[a-z0-9.-]+==", line) for line in said.splitlines()
        )
