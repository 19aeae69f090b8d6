"""The embedded PostgreSQL killed, stopped, shut out: nothing is lost, and what is said stands in the table."""

import signal
import socket

import psycopg
import pytest

from lychd import embedded
from tests.commands.conftest import until

pytestmark = pytest.mark.slow


def notes_of(house) -> set[str]:
    server = embedded.Server(house.instance, embedded.socket_dir(house.instance))
    with psycopg.connect(server.url(role=embedded.SUPERUSER)) as connection:
        return {key for (key,) in connection.execute("SELECT request_id FROM archive_intake_request")}


def test_a_killed_server_comes_back_under_load_and_no_acknowledged_note_is_lost(house):
    happened = "the embedded PostgreSQL is killed"
    serving = house.serve()
    with house.load() as load:
        until(lambda: len(load.acknowledged) > 20, "nobody writes")
        for _ in range(2):
            before = len(load.acknowledged)
            house.kill_server()
            # No other command runs meanwhile.
            until(lambda before=before: len(load.acknowledged) > before + 20, serving.said())
    house.says(happened, serving)
    assert set(load.acknowledged) <= notes_of(house)
    assert set(load.refused) <= {(503, "storage_unavailable"), (503, "authority_unavailable")}
    assert load.refused
    assert load.dropped == 0
    house.require(happened, "callers", "storage_unavailable")
    house.require(happened, "doctor", house.run("doctor").out)
    assert house.ask("/readyz")[0] == 200
    assert serving.end() == 0
    assert "Traceback" not in serving.said()


def test_a_stop_under_load_loses_no_acknowledged_note(house):
    serving = house.serve()
    with house.load() as load:
        until(lambda: len(load.acknowledged) > 20, "nobody writes")
        assert serving.end(signal.SIGTERM) == 0
    embedded.start(house.instance)
    assert set(load.acknowledged) <= notes_of(house)
    embedded.stop(house.instance)


def test_a_doctor_starts_nothing_and_says_what_it_finds(house):
    happened = "the embedded PostgreSQL was stopped"
    house.require(happened, "doctor", house.run("doctor", code=4).out)
    assert not (house.data / "postmaster.pid").exists()

    happened = "the embedded PostgreSQL was killed and nobody uses it"
    embedded.start(house.instance)
    house.kill_server()
    until(lambda: "it died" in house.run("doctor", code=4).out, "it is thought to run")
    house.require(happened, "doctor", house.run("doctor", code=4).out)
    assert (house.data / "postmaster.pid").exists()
    house.require(happened, "log", house.run("principal", "list").err)


def test_a_data_folder_that_is_open_to_others_is_named_until_it_is_closed(house):
    happened = "its data folder is open to other users"
    serving = house.serve()
    house.data.chmod(0o777)
    house.kill_server()
    house.says(happened, serving)
    status, document = house.note("while-open")
    assert status == 503
    house.require(happened, "callers", document["code"])
    house.require(happened, "doctor", house.run("doctor", code=4).out)
    assert f"`chmod 0700 {house.data}`" in house.run("notes", "--as", "curator", code=4).err

    house.data.chmod(0o700)
    until(lambda: house.note("after-it")[0] == 201, serving.said())
    assert serving.end() == 0


def test_a_stale_pid_file_that_names_another_server_ends_nobody(house, tmp_path):
    happened = "a stale pid file names another server"
    neighbour = embedded.start(tmp_path / "neighbour", durable=False)
    try:
        foreign = embedded.data_dir(neighbour.state) / "postmaster.pid"
        (house.data / "postmaster.pid").write_text(foreign.read_text())
        house.require(happened, "doctor", house.run("doctor", code=4).out)
        house.require(happened, "log", house.run("principal", "list").err)
        with psycopg.connect(neighbour.url("postgres", embedded.SUPERUSER)) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        embedded.remove(neighbour.state)


def test_a_taken_port_is_named(house):
    happened = "the port of `lychd serve` is taken"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        house.require(happened, "log", house.run("serve", "--port", taken.getsockname()[1], code=4).err)
