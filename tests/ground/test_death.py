"""Servers that die come back for whoever uses them, and nobody else's process is touched on the way."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
import redis

from lychd import broker, condition, embedded, postmaster, watch
from tests.commands.conftest import PATIENCE, until
from tests.ground.test_embedded import pid_of, state
from tests.ground.test_embedded import postmaster as begun

__all__ = ["state"]

USER = """
import logging, sys
from pathlib import Path
from lychd import embedded, watch
logging.basicConfig(level=logging.WARNING, format="%(message)s")
if "tells" in sys.argv:
    watch.cut_log = lambda _: print("looked", flush=True)
with embedded.sharing(Path(sys.argv[1]), durable=False, broker="broker" in sys.argv) as server:
    print(server.url("postgres", embedded.SUPERUSER), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def use(state):
    started = []

    def begin(*more: str) -> "subprocess.Popen[str]":
        words = [sys.executable, "-c", USER, str(state), *more]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(words, text=True, stdin=pipe, stdout=pipe, stderr=pipe))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def left(process: "subprocess.Popen[str]") -> str:
    """Let a user leave; what it said."""
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    return said


def reachable(url: str) -> float | None:
    try:
        return begun(url)
    except psycopg.OperationalError:
        return None


def kill_server(state: Path) -> int:
    pid = pid_of(state)
    os.kill(pid, signal.SIGKILL)
    return pid


# --- it comes back ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_server_that_dies_comes_back_for_all_who_use_it_and_each_says_so(state, use):
    users = [use(), use()]
    url, _ = [process.stdout.readline().strip() for process in users]
    before = begun(url)

    for _ in range(2):
        killed = kill_server(state)
        until(lambda killed=killed: (postmaster.standing(embedded.data_dir(state)) or killed) != killed, "no new one")
        assert until(lambda: reachable(url), "it does not answer again") > before

    # The second one to notice finds it there.
    until(lambda: (state / "deaths").read_text().count(condition.POSTGRES) == 2, "a death was not written down")
    for process in users:
        said = process.stderr.readline()
        assert said == "The embedded PostgreSQL died; it is started again.\n"
        while "The embedded PostgreSQL is back after " not in said:
            said = process.stderr.readline()
            assert said
        left(process)
    assert postmaster.named(embedded.data_dir(state)) is None


def test_a_broker_that_dies_comes_back_with_its_queue(state, use):
    process = use("broker")
    process.stdout.readline()
    with redis.Redis.from_url(embedded.broker_url(state)) as client:
        client.lpush("embedding", "one")
        client.execute_command("WAITAOF", 1, 0, 1000)
        os.kill(client.info("server")["process_id"], signal.SIGKILL)

    until(lambda: (state / "deaths").exists() and broker.answers(embedded.broker_socket(state)), "no broker again")
    with redis.Redis.from_url(embedded.broker_url(state)) as client:
        assert client.llen("embedding") == 1
    until(lambda: condition.deaths(state), "nothing was written down")
    assert condition.BROKER in condition.deaths(state)[0]
    assert "The embedded broker died; it is started again." in left(process)


@pytest.mark.slow
def test_a_start_that_fails_is_said_and_tried_again(state, use):
    process = use()
    url = process.stdout.readline().strip()
    data = embedded.data_dir(state)
    data.chmod(0o777)
    kill_server(state)

    assert process.stderr.readline().startswith("The embedded PostgreSQL died")
    while "does not start" not in (said := process.stderr.readline()):
        assert said
    assert f"`chmod 0700 {data}`" in said
    assert "It is tried again in 1 s." in said
    data.chmod(0o700)
    assert until(lambda: reachable(url), "it does not answer again")


def test_an_instance_that_is_removed_is_not_made_again(state, use, monkeypatch):
    process = use("tells")
    process.stdout.readline()

    embedded.remove(state)

    # Its watcher may have been looking meanwhile; the second time it looked afterwards.
    assert [process.stdout.readline() for _ in range(2)] == ["looked\n"] * 2
    assert not state.exists()
    assert not embedded.data_dir(state).exists()
    process.kill()


def test_after_many_deaths_a_pause_comes_first(caplog):
    begins: list[str] = []
    one = watch.Watched("It", lambda: True, lambda: begins.append("begun"), Path("/nowhere"))
    looking = watch.Watch([one], lambda: True)
    for _ in range(5):
        looking._revive(one)
    looking._leaving.set()
    looking._revive(one)

    assert len(begins) == 5
    assert "It died 5 times in 10 minutes; it is started again in 60 s." in caplog.text


def test_a_log_that_grew_large_is_begun_anew_beside_the_old_one(tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "_LOG_BYTES", 100)
    log = tmp_path / "postgres.log"
    with log.open("a") as writing:
        writing.write("old\n" * 50)
        writing.flush()
        watch.cut_log(log)
        writing.write("new\n")
    assert log.read_text() == "new\n"
    assert (tmp_path / "postgres.log.1").read_text() == "old\n" * 50


# --- whose process it is ---------------------------------------------------------------------------------------------


@pytest.fixture
def neighbour(tmp_path):
    """Another installation's server."""
    folder = tmp_path / "neighbour"
    yield embedded.start(folder, durable=False)
    embedded.remove(folder)


def test_a_stale_pid_file_ends_nobody_elses_server(state, neighbour, caplog, monkeypatch):
    monkeypatch.setattr(embedded, "_PATIENCE", 0.5)
    embedded.start(state, durable=False)
    embedded.stop(state)
    foreign = embedded.data_dir(neighbour.state) / "postmaster.pid"
    stale = embedded.data_dir(state) / "postmaster.pid"
    before = begun(neighbour.url("postgres", embedded.SUPERUSER))

    shutil.copyfile(foreign, stale)
    embedded.stop(state)
    assert begun(neighbour.url("postgres", embedded.SUPERUSER)) == before
    shutil.copyfile(foreign, stale)
    assert "it died" in condition.look(state).seen
    own = embedded.start(state, durable=False)

    assert begun(neighbour.url("postgres", embedded.SUPERUSER)) == before
    assert begun(own.url("postgres", embedded.SUPERUSER)) != before
    assert f"{stale} was left by a PostgreSQL that died" in caplog.text
    assert f"process {pid_of(neighbour.state)}, if there is one, is another's" in caplog.text


def test_a_process_that_only_stands_in_the_folder_is_not_the_server(state):
    embedded.start(state, durable=False)
    embedded.stop(state)
    data = embedded.data_dir(state)
    with subprocess.Popen(["sleep", "60"], cwd=data) as passer_by:
        (data / "postmaster.pid").write_text(f"{passer_by.pid}\n{data}\n{int(time.time())}\n")
        assert postmaster.standing(data) is None
        embedded.stop(state)
        assert passer_by.poll() is None
        passer_by.kill()


def test_where_a_folder_cannot_be_seen_the_command_and_the_start_decide(state, monkeypatch):
    embedded.start(state, durable=False)
    data = embedded.data_dir(state)
    monkeypatch.setattr(postmaster, "_same_folder", lambda pid, folder: None)
    assert postmaster.standing(data) == pid_of(state)

    lines = (data / "postmaster.pid").read_text().splitlines()
    original = lines[2]
    for wrong in (str(int(original) - 3600), "never"):
        lines[2] = wrong
        (data / "postmaster.pid").write_text("\n".join(lines))
        assert postmaster.standing(data) is None
    lines[2] = original
    (data / "postmaster.pid").write_text("\n".join(lines))


def test_what_still_computes_after_the_death_is_named_and_waited_for(state, monkeypatch):
    server = embedded.start(state, durable=False)
    url = server.url("postgres", embedded.SUPERUSER)
    monkeypatch.setattr(embedded, "_PATIENCE", 0.5)
    connection = psycopg.connect(url, autocommit=True)
    pid = connection.info.backend_pid
    connection.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 10000000000) a WHERE a % 7 = 8")
    until(lambda: _computes(url, pid), "it never began to compute")
    kill_server(state)
    until(lambda: postmaster.orphans(embedded.data_dir(state)) == [pid], "the others never left")

    with pytest.raises(embedded.EmbeddedError, match=f"1 of its processes still work in .*`kill {pid}`"):
        embedded.start(state, durable=False)

    os.kill(pid, signal.SIGKILL)
    assert begun(embedded.start(state, durable=False).url("postgres", embedded.SUPERUSER))
    connection.close()


def _computes(url: str, pid: int) -> bool:
    with psycopg.connect(url) as asking:
        found = asking.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
    return found == ("active",)


def test_a_server_that_recovers_is_waited_for_and_never_stopped(state, monkeypatch):
    server = embedded.start(state, durable=False)
    before = begun(server.url("postgres", embedded.SUPERUSER))
    monkeypatch.setattr(embedded, "_answer", lambda binaries, state: embedded._REJECTS)
    monkeypatch.setattr(embedded, "_PATIENCE", 0.1)
    monkeypatch.setattr(embedded, "_RECOVERY", 0.5)

    with pytest.raises(embedded.EmbeddedError, match="still reads its own log"):
        embedded.start(state, durable=False)

    assert begun(server.url("postgres", embedded.SUPERUSER)) == before


def test_no_second_broker_begins_beside_one_that_hangs(state):
    embedded.start_broker(state)
    with redis.Redis.from_url(embedded.broker_url(state)) as client:
        pid = client.info("server")["process_id"]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(embedded.EmbeddedError, match="lives and does not answer"):
            embedded.start_broker(state)
        assert not broker.broker_died(state)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert broker.answers(embedded.broker_socket(state))


# --- why it does not start -------------------------------------------------------------------------------------------


@pytest.fixture
def stopped(state) -> Path:
    embedded.start(state, durable=False)
    embedded.stop(state)
    return embedded.data_dir(state)


def refused(state: Path) -> str:
    with pytest.raises(embedded.EmbeddedError) as caught:
        embedded.start(state, durable=False)
    said = str(caught.value)
    assert "Examine the log output" not in said
    assert said.endswith(f"{embedded.log_path(state)} has all that it said.")
    return said


def test_open_rights_are_named_with_the_command_that_mends_them(state, stopped):
    stopped.chmod(0o777)
    assert f"`chmod 0700 {stopped}`" in refused(state)
    assert f"{stopped} is open to other users" in condition.look(state).seen
    stopped.chmod(0o700)
    embedded.start(state, durable=False)


def test_a_wrong_line_of_the_configuration_is_named(state, stopped):
    with (stopped / "postgresql.auto.conf").open("a") as file:
        file.write("frobnicate = on\n")
    assert "postgresql.auto.conf is wrong" in refused(state)


def test_a_socket_that_is_taken_is_named(state, stopped, neighbour):
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(str(embedded.socket_dir(state) / ".s.PGSQL.5432"))
        taken.listen()
        (embedded.socket_dir(state) / ".s.PGSQL.5432.lock").write_text(f"{pid_of(neighbour.state)}\n/elsewhere\n")
        assert "Another PostgreSQL listens on the socket" in refused(state)
        taken.close()
        (embedded.socket_dir(state) / ".s.PGSQL.5432").unlink()


def test_lost_files_are_named(state, stopped):
    (stopped / "global" / "pg_control").unlink()
    assert "damaged" in refused(state)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("FATAL:  could not write lock file: No space left on device", "The disk is full"),
        ('FATAL:  data directory "/d" has wrong ownership', "belongs to another user"),
        ("FATAL:  pre-existing shared memory block (key 1, ID 2) is still in use", "died still hold"),
        ("FATAL:  could not map anonymous shared memory: Cannot allocate memory", "not enough (shared) memory"),
        ("FATAL:  database files are incompatible with server", "made by another PostgreSQL"),
        ('FATAL:  could not open file "pg_wal/0": Permission denied', "may not read all of"),
        ("LOG:  starting\nFATAL:  something new", "PostgreSQL says: something new."),
    ],
)
def test_the_cause_is_read_from_what_it_said(said, meant):
    assert meant in str(postmaster.cause(said, Path("/d")))


def test_what_said_nothing_grave_has_no_cause():
    assert postmaster.cause("LOG:  database system was shut down", Path("/d")) is None


# --- what the doctor is told -----------------------------------------------------------------------------------------


def test_the_condition_is_looked_at_and_left_as_it_is(state):
    assert condition.look(state).seen == "The embedded PostgreSQL was never made here."
    embedded.start(state, durable=False)
    assert condition.look(state).seen.startswith("runs since ")
    pid = kill_server(state)
    until(lambda: condition.look(state).fix, "it is still thought to run")
    assert "it died" in condition.look(state).seen
    assert pid_of(state) == pid
    assert condition.deaths(state) == []
    embedded.start(state, durable=False)
    assert "PostgreSQL died 1 time in the last 7 days" in condition.deaths(state)[0]
    embedded.stop(state)
    assert condition.look(state).seen == "The embedded PostgreSQL is not running: it was stopped."
