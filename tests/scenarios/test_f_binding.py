"""F. Binding and configuration."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from django.conf import settings as django_settings
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from archive.authority import Caller
from archive.checks import check_settings
from archive.models import BindingMigration, ConfiguredBinding, Namespace
from archive.operations import host
from archive.operations.intake import intake
from archive.operations.migration import migrate
from archive.operations.resolution import resolve
from archive.refusals import AuthorityRefused, NamespaceNotServed
from inspection import discovery, reads
from inspection.namespaces import choose
from lychd import broker, embedded
from tests import cast
from tests.scenarios.acts import ACTS, READS, Scene, scene
from tests.scenarios.counting import Counts, refused

ROOT = Path(__file__).resolve().parents[2]


def all_told(no) -> tuple[object, ...]:
    """Everything that an edge could show of a refusal."""
    return type(no), no.status, no.code, no.title, no.detail, no.faults, no.extra, no.args


def reconfigured(**changes: object) -> Caller:
    """Configure the garden anew, give everybody authority under the new binding, and return who may do all."""
    options = {"owner": cast.OWNER, "policy_revision": cast.POLICY, "by": "host:tests", **changes}
    binding = host.configure_namespace(cast.GARDEN, **options)  # type: ignore[arg-type]
    host.map_principal("omar")
    host.grant("omar", binding, list(cast.ALL_ACTIONS), by="host:tests")
    return Caller.in_namespace("omar", cast.GARDEN)


# --- the profile is off ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ACTS)
def test_s080_with_the_profile_off_nothing_answers_and_nothing_is_asked(alice, settings, counts: Counts, name):
    settings.LYCHD_ARCHIVE = None
    with CaptureQueriesContext(connection) as statements, counts.refused(503, "profile_off"):
        ACTS[name].call(alice, Scene.empty())
    assert statements.captured_queries == []


def test_s080_the_door_is_shut_too(garden, settings, counts: Counts):
    settings.LYCHD_ARCHIVE = None
    with CaptureQueriesContext(connection) as statements:
        for knock in (
            lambda: garden.caller("alice"),
            lambda: Caller.in_namespace(None, cast.GARDEN),
            lambda: discovery.configuration("ivy"),
            lambda: discovery.configuration("ivy", cast.GARDEN),
            lambda: choose("ivy"),
        ):
            with refused(503, "profile_off"):
                knock()
    assert statements.captured_queries == []
    counts.unchanged()


# --- a changed binding -----------------------------------------------------------------------------------------------

NEEDS_THE_RETAINED_BINDING = [name for name in ACTS if name != "migrate"]


@pytest.mark.parametrize("name", NEEDS_THE_RETAINED_BINDING)
def test_s081_under_another_owner_all_existing_material_refuses(alice, bob, counts: Counts, name):
    at = scene(alice, bob)
    omar = reconfigured(owner="heirs")
    before = Namespace.objects.values().get()

    with counts.refused(409, "binding_mismatch"):
        ACTS[name].call(omar, at)

    assert Namespace.objects.values().get() == before
    assert before["owner"] == cast.OWNER


@pytest.mark.parametrize("changes", [{"policy_revision": "policy-2"}, {"text_configuration": "english"}], ids=str)
def test_s082_so_it_does_under_another_policy_or_text_configuration(alice, bob, counts: Counts, changes):
    scene(alice, bob)
    omar = reconfigured(**changes)

    with counts.refused(409, "binding_mismatch"):
        cast.asked(omar)


def test_s082_a_second_person_rule_is_no_change_of_binding(alice, bob):
    scene(alice, bob)
    omar = reconfigured(second_person=True)
    assert cast.asked(omar).receipt["outcome"] == "selected"


def test_s081_nothing_adopts_the_new_owner_by_itself_even_for_the_old_callers(alice, bob, counts: Counts):
    at = scene(alice, bob)
    reconfigured(owner="heirs")
    with counts.refused(403, "authority_refused"):
        resolve(Caller.in_namespace("bob", cast.GARDEN), at.receipt)


def test_s083_after_its_migration_the_material_answers_under_the_new_owner(alice, bob, counts: Counts):
    at = scene(alice, bob)
    omar = reconfigured(owner="heirs")
    old = Namespace.objects.get()
    counts.mark()

    done = migrate(omar, reason="The estate was inherited.")

    counts.grew(archive_binding_migration=1)
    record = BindingMigration.objects.get()
    assert record.id == done.migration_id
    assert (record.old_owner, record.new_owner) == (cast.OWNER, "heirs")
    assert (record.old_policy_revision, record.new_policy_revision) == (cast.POLICY, cast.POLICY)
    assert (record.old_binding_digest, record.new_binding_digest) == (old.binding_digest, omar.binding.digest)
    assert (record.actor_subject, record.reason) == ("omar", "The estate was inherited.")
    namespace = Namespace.objects.get()
    assert (namespace.owner, namespace.binding_digest) == ("heirs", omar.binding.digest)
    assert namespace.row_version == old.row_version + 1
    for name in ("intake", "promote", "recall", "review", "list_notes", "note_record", "archive", "revoke"):
        ACTS[name].call(omar, at)
    with refused(409, "receipt_binding_mismatch"):
        # R-L-117: the receipt was omar's neither then nor under this owner.
        resolve(omar, at.receipt)


def test_s083_a_receipt_of_the_old_binding_does_not_resolve_even_for_its_subject(alice, bob):
    at = scene(alice, bob)
    omar = reconfigured(policy_revision="policy-2")
    migrate(omar, reason="New policy.", carry_grants=True)
    with refused(409, "receipt_binding_mismatch"):
        resolve(Caller.in_namespace("bob", cast.GARDEN), at.receipt)
    assert reads.receipt(omar, at.receipt)["policy_revision"] == cast.POLICY


def test_s083_without_authority_nothing_migrates(alice, bob, counts: Counts):
    scene(alice, bob)
    binding = host.configure_namespace(cast.GARDEN, owner="heirs", policy_revision=cast.POLICY, by="host:tests")
    with counts.refused(403, "authority_refused"):
        migrate(Caller("otto", binding), reason="Because.")


def test_s083_what_already_stands_under_its_binding_is_left_alone(alice, bob, counts: Counts):
    scene(alice, bob)
    omar = reconfigured()
    counts.mark()
    assert migrate(omar, reason="For nothing.").migration_id is None
    counts.unchanged()


# --- what the checks refuse ------------------------------------------------------------------------------------------


def managed(*arguments: str, state: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env=environment(state, variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("path", ["no.such.Authorizer", "archive.authority.NoSuchClass", "archive.authority.Purpose"])
def test_s086_an_authorizer_that_cannot_be_loaded_stops_the_start(tmp_path, path):
    ended = managed("check", state=tmp_path, LYCHD_AUTHORIZER=path)
    assert ended.returncode == 1
    assert "archive.E001" in ended.stderr
    assert "LYCHD_AUTHORIZER" in ended.stderr


def failing(check: str, settings, **changes) -> str:
    """Run the checks under changed settings; the one error there is has this id. Returns what it tells to do."""
    for name, value in changes.items():
        setattr(settings, name, value)
    with pytest.raises(SystemCheckError) as stopped:
        call_command("check")
    told = str(stopped.value)
    assert set(re.findall(r"archive\.E\d+", told)) == {check}
    assert "HINT" in told
    return told


def archive_with(settings, **changes) -> dict[str, object]:
    return {**settings.LYCHD_ARCHIVE, **changes}


DERIVATION = {"generation": "g-1", "embed_profile": "model.embed@1", "embed_binding": {}, "attempt_seconds": 60}


def test_s087_semantic_recall_without_derivation_stops_the_start(settings):
    told = failing("archive.E002", settings, LYCHD_ARCHIVE=archive_with(settings, semantic=True, derivation=None))
    assert "derivation" in told


def test_e001_without_an_authorizer_or_a_source_of_bindings(settings):
    failing("archive.E001", settings, LYCHD_ARCHIVE=archive_with(settings, authorizer=None))
    failing("archive.E001", settings, LYCHD_ARCHIVE=archive_with(settings, authorizer="archive.E"))


def test_e001_names_the_bindings_that_cannot_be_loaded(settings):
    told = failing("archive.E001", settings, LYCHD_ARCHIVE=archive_with(settings, bindings="no.such.Source"))
    assert "LYCHD_BINDINGS" in told


@pytest.mark.parametrize("seconds", [59, 61, "60", 60.0, None, True])
def test_e003_an_attempt_lives_exactly_a_minute(settings, seconds):
    derivation = {**DERIVATION, "attempt_seconds": seconds}
    failing("archive.E003", settings, LYCHD_ARCHIVE=archive_with(settings, derivation=derivation))


def test_the_whole_of_a_derivation_passes(settings):
    settings.LYCHD_ARCHIVE = archive_with(settings, derivation=DERIVATION, semantic=True)
    assert check_settings() == []


def test_the_profile_off_passes(settings):
    settings.LYCHD_ARCHIVE = None
    call_command("check")


@pytest.mark.filterwarnings("ignore:Overriding setting DATABASES")
@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("archive.E004", {"ATOMIC_REQUESTS": True}),
        ("archive.E005", {"OPTIONS": {"isolation_level": psycopg.IsolationLevel.SERIALIZABLE}}),
        ("archive.E005", {"OPTIONS": {"isolation_level": psycopg.IsolationLevel.REPEATABLE_READ}}),
        ("archive.E005", {"OPTIONS": {"options": "-c default_transaction_isolation=serializable"}}),
        ("archive.E005", {"OPTIONS": {"options": r"-c default_transaction_isolation=repeatable\ read"}}),
        (None, {"OPTIONS": {"isolation_level": psycopg.IsolationLevel.READ_COMMITTED}}),
        (None, {"OPTIONS": {"options": r"-c default_transaction_isolation='read\ committed' -c search_path=public"}}),
    ],
    ids=str,
)
def test_e004_and_e005_a_database_that_would_wrap_or_isolate_otherwise(settings, check, change):
    settings.DATABASES = {"default": {**django_settings.DATABASES["default"], **change}}
    assert [error.id for error in check_settings()] == ([] if check is None else [check])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CELERY_TASK_ACKS_LATE", True),
        ("CELERY_TASK_REJECT_ON_WORKER_LOST", True),
        ("CELERY_TASK_IGNORE_RESULT", False),
        ("CELERY_RESULT_BACKEND", "redis://localhost/1"),
        ("CELERY_BEAT_SCHEDULE", {"nightly": {"task": "x", "schedule": 60}}),
        ("CELERY_TASK_ANNOTATIONS", {"*": {"max_retries": 3}}),
        ("CELERY_TASK_ANNOTATIONS", [{"*": {"acks_late": True}}]),
        ("CELERY_TASK_ANNOTATIONS", {"*": {"autoretry_for": (Exception,)}}),
    ],
)
def test_e006_work_that_would_run_again_or_by_itself(settings, name, value):
    assert name in failing("archive.E006", settings, **{name: value})


@pytest.mark.parametrize(
    "change",
    [
        {"profile": "local-public-notes@2"},
        {"namespace": "with space", "owner": "o", "policy_revision": "p"},
        {"namespace": "with/slash", "owner": "o", "policy_revision": "p"},
        {"namespace": "n", "owner": "", "policy_revision": "p"},
        {"namespace": "n", "owner": "o"},
        {"namespace": "n", "owner": "o", "policy_revision": "p\n"},
        {"namespaces": "n"},
        {"namespaces": ["n"]},
        {"namespaces": [{"namespace": "n", "owner": "o", "policy_revision": "x" * 129}]},
        {"derivation": {**DERIVATION, "generation": "-g"}},
    ],
    ids=str,
)
def test_e008_a_name_out_of_its_pattern(settings, change):
    failing("archive.E008", settings, LYCHD_ARCHIVE=archive_with(settings, **change))


# --- start-up writes nothing -----------------------------------------------------------------------------------------


@pytest.fixture
def fresh_database(owner):
    """A database of its own, migrated; its address for the service and for the owner."""
    if not django_settings.LYCHD_EMBEDDED:
        pytest.skip("the server of DATABASE_URL may not let the suite make a second database")
    name, state = f"fresh_start_{os.getpid()}", django_settings.LYCHD_STATE_DIR
    embedded.drop_database(state, name)
    embedded.create_database(state, name)
    server = embedded.Server(state, embedded.socket_dir(state))
    addresses = {
        "DATABASE_URL": server.url(name, embedded.SERVING_ROLE),
        "DATABASE_OWNER_URL": server.url(name, embedded.OWNER_ROLE),
    }
    yield addresses
    embedded.drop_database(state, name)


ALL_ON = {
    "LYCHD_DERIVATION_GENERATION": "notes-1",
    "LYCHD_DERIVATION_EMBEDDER": "stand-in",
    "LYCHD_TEST_EMBEDDER": "true",
    "LYCHD_SEMANTIC": "true",
    # A database of one's own and no broker: one process at a time embeds here.
    "LYCHD_COORDINATION": "process",
}


@pytest.mark.parametrize("features", [{}, ALL_ON], ids=["words alone", "all features"])
def test_s088_starting_and_reading_write_nothing(fresh_database, tmp_path, features):
    fresh_database = {**fresh_database, **features}
    migrated = managed("migrate", "--database", "owner", "--no-input", state=tmp_path, **fresh_database)
    assert migrated.returncode == 0, migrated.stderr
    with psycopg.connect(fresh_database["DATABASE_OWNER_URL"], autocommit=True) as owner:
        before = rows(owner)
        with served(tmp_path, fresh_database) as port:
            assert answered(port, "/healthz") == 200
            answered(port, "/readyz")
            answered(port, "/api/v1/configuration")
            answered(port, "/")
        if features:
            with worked(tmp_path, fresh_database) as worker:
                assert worker.poll() is None
        for command in (("check", "--database", "default"), ("showmigrations",), ("migrate", "--check")):
            ended = managed(*command, state=tmp_path, **fresh_database)
            assert ended.returncode == 0, ended.stderr
        read = subprocess.run(
            [sys.executable, "-c", READING],
            env=environment(tmp_path, fresh_database),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert read.returncode == 0, read.stderr
        assert read.stdout.split() == ["read"] * (len(READS) + len(features and DERIVED_READS))
        after = rows(owner)

    filled = {name: count for name, count in after.items() if name.startswith(("archive_", "semantic_")) and count}
    assert filled == {"archive_memory_space": 1}
    assert {name for name in after if after[name] != before[name]} <= {
        "lychd_binding",
        "lychd_binding_history",
        "lychd_principal",
        "lychd_grant",
        "django_session",
    }


DERIVED_READS = ("discover", "generations", "generation", "derivation", "derivations")
READING = """
import django, os
os.environ["DJANGO_SETTINGS_MODULE"] = "lychd.settings"
django.setup()
from django.conf import settings
from archive.authority import Action, Caller
from archive.operations import host
from archive.refusals import Absent
from tests.scenarios.acts import ACTS, READS, Scene
binding = host.configure_namespace("garden", owner="estate", policy_revision="1", by="host:tests")
host.map_principal("omar")
host.grant("omar", binding, list(Action), by="host:tests")
for name in READS:
    try:
        ACTS[name].call(Caller.in_namespace("omar", "garden"), Scene.empty())
    except Absent:
        pass
    print("read")
if settings.LYCHD_ARCHIVE["derivation"]:
    from uuid import uuid4
    from inspection import derivations
    from inspection.cursors import PageRequest
    from semantic.operations.generations import discover
    caller = Caller.in_namespace("omar", "garden")
    for read in (
        lambda: discover(caller),
        lambda: derivations.generations(caller),
        lambda: derivations.generation(caller, "notes-1"),
        lambda: derivations.derivation(caller, uuid4()),
        lambda: derivations.list_derivations(caller, PageRequest()),
    ):
        try:
            read()
        except Absent:
            pass
        print("read")
"""


def environment(state: Path, variables: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    return {**kept, "LYCHD_STATE_DIR": str(state), "LYCHD_ARCHIVE_PROFILE": "local-public-notes@1", **variables}


@contextmanager
def worked(state: Path, variables: dict[str, str]) -> "Iterator[subprocess.Popen[bytes]]":
    """A worker with a broker of its own, which waits for its first message; ended at the end."""
    embedded.make_state(state / "broker-of-its-own")
    address = broker.start_broker(state / "broker-of-its-own")
    process = subprocess.Popen(
        [sys.executable, "-m", "lychd.console", "worker"],
        env=environment(state, {**variables, "REDIS_URL": address}),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with redis.Redis.from_url(address) as client:
            while not any(one["cmd"] == "brpop" for one in client.client_list()):
                assert process.poll() is None, "the worker ended before it listened"
                time.sleep(0.1)  # nothing is raced: the loop ends with the process or with its first wait
        yield process
    finally:
        process.terminate()
        process.wait(30)
        broker.stop_broker(state / "broker-of-its-own")


@contextmanager
def served(state: Path, variables: dict[str, str]) -> Iterator[int]:
    """A web process on a free port, ended at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "lychd.asgi:application", "--port", str(port)],
        env=environment(state, variables),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not _listens(port):
            assert process.poll() is None, "the web process ended before it listened"
            time.sleep(0.1)  # nothing is raced: the loop ends with the process or with its answer
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as knocking:
        return knocking.connect_ex(("127.0.0.1", port)) == 0


def answered(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def rows(owner: psycopg.Connection) -> dict[str, int]:
    tables = [name for (name,) in owner.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    return {name: len(owner.execute(f'SELECT FROM "{name}"').fetchall()) for name in tables}


# --- a namespace that is not configured ------------------------------------------------------------------------------


def met_at(subject: str, key: str):
    with pytest.raises(AuthorityRefused) as no:
        Caller.in_namespace(subject, key)
    return all_told(no.value)


def test_s089_a_namespace_that_is_not_configured_refuses_like_one_that_is(garden, alice, counts: Counts):
    charlie = garden.caller("charlie")
    with pytest.raises(AuthorityRefused) as no:
        intake(charlie, cast.wanted())
    known = all_told(no.value)
    cast.plant("meadow")
    cast.admitted(Caller.in_namespace("alice", "meadow"))
    host.disable_namespace("meadow", by="host:tests")
    assert Namespace.objects.filter(key="meadow").exists()

    assert met_at("charlie", "nowhere") == known
    assert met_at("charlie", "meadow") == known
    assert met_at("nobody-at-all", "meadow") == known
    assert met_at("alice", "nowhere") == known


def test_s089_who_holds_a_grant_there_learns_that_it_is_not_served(garden, alice, counts: Counts):
    cast.admitted(alice)
    host.disable_namespace(cast.GARDEN, by="host:tests")

    with pytest.raises(NamespaceNotServed) as no:
        garden.caller("bob")
    assert (no.value.status, no.value.code) == (404, "namespace_not_served")
    host.withdraw("bob", cast.GARDEN, list(cast.ALL_ACTIONS))
    with pytest.raises(AuthorityRefused):
        garden.caller("bob")
    assert ConfiguredBinding.objects.get().disabled_at is not None


def test_s089_configured_again_it_serves_the_same_material(garden, alice):
    note = cast.admitted(alice)
    host.disable_namespace(cast.GARDEN, by="host:tests")
    host.configure_namespace(cast.GARDEN, owner=cast.OWNER, policy_revision=cast.POLICY, by="host:tests")
    assert reads.note_record(garden.caller("ivy"), note.id).id == note.id


def test_s089_an_act_that_began_before_the_disabling_ends_in_a_mismatch(alice, counts: Counts):
    cast.admitted(alice)
    host.disable_namespace(cast.GARDEN, by="host:tests")
    with counts.refused(409, "binding_mismatch"):
        cast.admitted(alice, "late", source="late")


@pytest.mark.parametrize("key", ["", "a/b", "-a", "a" * 129, "\x00", "\ud800", "a\n", "ä"], ids=repr)
def test_s089_what_no_namespace_can_be_called_is_refused_like_any_other(garden, key, counts: Counts):
    with counts.refused(403, "authority_refused"):
        Caller.in_namespace("alice", key)
