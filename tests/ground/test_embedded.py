"""The servers that come with the project start once, survive their own death and leave when nobody needs them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from lychd import broker, embedded

USER = """
import sys
from pathlib import Path
from lychd import embedded
with embedded.sharing(Path(sys.argv[1]), durable=False) as server:
    print(server.url("postgres", embedded.SUPERUSER), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "instance"
    yield folder
    embedded.remove(folder)


@pytest.fixture
def use(state: Path) -> Iterator[Callable[[], "subprocess.Popen[str]"]]:
    """Another process that uses the instance until its input ends."""
    started: list[subprocess.Popen[str]] = []

    def begin() -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", USER, str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def url_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def leave(process: "subprocess.Popen[str]") -> None:
    process.communicate()
    assert process.returncode == 0


def postmaster(url: str) -> float:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT extract(epoch FROM pg_postmaster_start_time())").fetchone()
    assert row is not None
    return float(row[0])


def pid_of(state: Path) -> int:
    return int((embedded.data_dir(state) / "postmaster.pid").read_text().split()[0])


def runs(state: Path) -> bool:
    return (embedded.data_dir(state) / "postmaster.pid").exists()


def test_four_cold_starts_at_once_give_one_server(state, use):
    users = [use() for _ in range(4)]
    assert len({postmaster(url_of(user)) for user in users}) == 1


def test_the_last_user_to_leave_stops_the_server(state, use):
    first, second = use(), use()
    url_of(first), url_of(second)
    leave(first)
    assert runs(state)
    leave(second)
    assert not runs(state)


def test_a_killed_user_is_not_waited_for(state, use):
    killed, other = use(), use()
    url_of(killed), url_of(other)
    killed.kill()
    killed.wait()
    assert runs(state)
    leave(other)
    assert not runs(state)


def test_committed_rows_survive_the_death_of_the_server(state):
    server = embedded.start(state)
    with psycopg.connect(server.url(role=embedded.OWNER_ROLE)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS number")
    os.kill(pid_of(state), signal.SIGKILL)

    server = embedded.start(state)

    with psycopg.connect(server.url(role=embedded.OWNER_ROLE)) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1000,)


def test_a_server_whose_socket_was_swept_away_is_replaced(state, monkeypatch):
    monkeypatch.setattr(embedded, "_PATIENCE", 0.5)
    server = embedded.start(state, durable=False)
    for leftover in server.socket_dir.iterdir():
        leftover.unlink()

    assert postmaster(embedded.start(state, durable=False).url("postgres", embedded.SUPERUSER)) > 0


def test_a_killed_initdb_leaves_nothing_that_looks_like_a_database(state):
    embedded.make_state(state)
    draft = embedded.data_dir(state).with_name("postgres.draft")
    embedded.make_state(draft)
    (draft / "PG_VERSION").write_text("18\n")

    assert postmaster(embedded.start(state, durable=False).url("postgres", embedded.SUPERUSER)) > 0


def test_a_folder_with_a_long_name_gets_a_short_socket(tmp_path):
    deep = tmp_path / ("long" * 20) / "instance"
    try:
        with embedded.sharing(deep, durable=False, broker=True) as server:
            assert len(os.fsencode(server.socket_dir)) < 100
            assert postmaster(server.url("postgres", embedded.SUPERUSER)) > 0
    finally:
        embedded.remove(deep)


def test_an_instance_of_another_release_is_refused_in_one_sentence(state):
    data = embedded.data_dir(state)
    embedded.make_state(state)
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("16\n")

    with pytest.raises(embedded.EmbeddedError, match="was made by PostgreSQL 16"):
        embedded.start(state)


def test_a_processor_that_pgvector_cannot_use_is_refused_with_the_way_out(state, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(Path, "read_text", lambda self, **kwargs: "flags : sse2 fma")

    with pytest.raises(embedded.EmbeddedError, match="DATABASE_URL"):
        embedded.start(state)


def test_a_platform_without_the_wheel_is_refused_with_the_way_out(state, monkeypatch):
    monkeypatch.setattr(embedded, "find_spec", lambda name: None)
    monkeypatch.setattr(broker, "find_spec", lambda name: None)

    with pytest.raises(embedded.EmbeddedError, match="DATABASE_URL"):
        embedded.start(state)
    with pytest.raises(embedded.EmbeddedError, match="REDIS_URL"):
        embedded.start_broker(state)


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs the server as somebody else")
def test_root_keeps_the_data_elsewhere_when_the_server_cannot_enter_the_folder(tmp_path):
    tmp_path.chmod(0o700)
    private, public = tmp_path / "instance", Path("/srv/instance")

    assert embedded.data_dir(public).is_relative_to(public)
    assert not embedded.data_dir(private).is_relative_to(tmp_path)


def test_a_strict_umask_shuts_nobody_out(state):
    folder = state / "deeper"
    before = os.umask(0o077)
    try:
        planned = embedded.socket_dir(folder)
        assert embedded.start(folder, durable=False).socket_dir == planned
        assert embedded.socket_dir(folder) == planned
    finally:
        os.umask(before)
        embedded.remove(folder)


def test_the_roles_can_do_no_more_than_they_need(state):
    server = embedded.start(state, durable=False)
    with psycopg.connect(server.url("postgres", embedded.SUPERUSER)) as connection:
        found = connection.execute(
            "SELECT rolname, rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname LIKE 'lychd%' ORDER BY 1"
        ).fetchall()
    assert found == [("lychd_owner", False, True, False), ("lychd_serving", False, False, False)]


def test_databases_come_and_go_with_the_extensions_in_them(state):
    server = embedded.start(state, durable=False)
    embedded.create_database(state, "bench-1")
    connection = psycopg.connect(server.url("bench-1", embedded.OWNER_ROLE))
    assert set(embedded.EXTENSIONS) <= {name for (name,) in connection.execute("SELECT extname FROM pg_extension")}

    # Dropped under whoever is still connected.
    embedded.drop_database(state, "bench-1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(server.url("bench-1", embedded.OWNER_ROLE))


def test_the_log_quotes_neither_statement_nor_value(state):
    server = embedded.start(state, durable=False)
    with psycopg.connect(server.url(role=embedded.OWNER_ROLE), autocommit=True) as connection:
        connection.execute("CREATE TABLE held (word text UNIQUE, CHECK (word <> 'canary-bird'))")
        connection.execute("INSERT INTO held VALUES ('canary-fish')")
        for statement, values in (
            ("INSERT INTO held VALUES ('canary-fish')", None),
            ("INSERT INTO held VALUES (%s)", ["canary-bird"]),
            ("SELECT 'canary-cat' FROM nowhere", None),
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(statement, values)
    embedded.stop(state)
    said = embedded.log_path(state).read_text()
    assert "duplicate key" in said
    assert "canary" not in said


def test_the_broker_keeps_its_queue_across_its_death(state):
    import redis

    embedded.start_broker(state)
    with redis.Redis.from_url(embedded.broker_url(state)) as client:
        client.lpush("embedding", "one")
        client.execute_command("WAITAOF", 1, 0, 1000)
        os.kill(client.info("server")["process_id"], signal.SIGKILL)
    until = time.monotonic() + 10
    while broker.answers(embedded.broker_socket(state)) and time.monotonic() < until:
        pass
    embedded.start_broker(state)
    with redis.Redis.from_url(embedded.broker_url(state)) as client:
        assert client.llen("embedding") == 1
