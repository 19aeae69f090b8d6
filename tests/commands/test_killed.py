"""Commands as processes: killed in the middle, interrupted, left by their reader; nothing is lost, nothing is left."""

import signal
from pathlib import Path

from django.db import connection

from archive.models import IntakeRequest, LifecycleEvent, Note
from lychd import embedded
from tests.cast import GARDEN
from tests.commands.conftest import PATIENCE, kill_group, on_test_database, until

NOTES = 1_000
AS_WANDA = ("--as", "wanda", "--namespace", GARDEN)


def shelf_of(tmp_path: Path, count: int) -> Path:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    for number in range(count):
        (shelf / f"note-{number:04}.md").write_text(f"The bed number {number} holds {number * 7 % 13} kinds of roses.")
    return shelf


def nobody_is_writing() -> bool:
    with connection.cursor() as cursor:
        # The suite's own connections are logged in as the owner.
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = %s",
            [embedded.SERVING_ROLE],
        )
        return cursor.fetchone() == (0,)


def test_an_ingest_killed_in_the_middle_loses_nothing_and_a_repeat_completes_it(start, outside, garden, tmp_path):
    shelf = shelf_of(tmp_path, NOTES)
    ingest = ("ingest", shelf, "--batch", 20, *AS_WANDA)
    process = start(*ingest, **on_test_database())
    assert process.stderr is not None
    # Its own word that a batch is in is what the kill waits for.
    said = process.stderr.readline()
    assert said.startswith("ingest: 20 of 1000"), said
    kill_group(process)
    assert process.returncode == -signal.SIGKILL
    # The server may still be finishing a statement of the dead.
    until(nobody_is_writing, "the server lets go of the killed process")
    survived = Note.objects.count()
    assert 20 <= survived < NOTES

    repeat = outside(*ingest, "--json", **on_test_database())
    assert repeat.code == 0, repeat.err
    assert repeat.document["totals"] == {"unchanged": survived, "created": NOTES - survived}
    assert Note.objects.count() == IntakeRequest.objects.count() == LifecycleEvent.objects.count() == NOTES
    assert Note.objects.values("source").distinct().count() == NOTES

    third = outside(*ingest, "--json", **on_test_database())
    assert third.document["totals"] == {"unchanged": NOTES}


def test_an_interrupted_ingest_says_nothing_untrue(start, garden, tmp_path):
    process = start("ingest", shelf_of(tmp_path, NOTES), "--batch", 20, *AS_WANDA, **on_test_database())
    assert process.stderr is not None
    assert process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err


def test_a_reader_that_leaves_is_no_fault(start, garden, alice):
    process = start("notes", "--as", "alice", "--namespace", GARDEN, **on_test_database())
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=PATIENCE) in (0, 128 + signal.SIGPIPE)
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_a_database_that_is_not_there_is_unavailable(outside, tmp_path):
    nowhere = f"postgresql://nobody@/nothing?host={tmp_path}"
    ran = outside(
        "notes", "--as", "alice", "--json", DATABASE_URL=nowhere, LYCHD_ARCHIVE_PROFILE="local-public-notes@1"
    )
    assert (ran.code, ran.document["code"]) == (4, "storage_unavailable")
    assert outside("doctor", DATABASE_URL=nowhere).code == 4


def test_wrong_settings_are_wrong_usage(outside):
    ran = outside("notes", LYCHD_TIME_ZONE="Mars/Olympus", LYCHD_INSTANCE="x")
    assert ran.code == 64
    assert "LYCHD_TIME_ZONE must be" in ran.err
    assert "Traceback" not in ran.err


def runs_on(state: Path) -> bool:
    """Whether the instance's server is there; it takes its pid file along when it is told to end."""
    return (embedded.data_dir(state) / "postmaster.pid").exists()


def test_a_command_that_needs_no_database_starts_none(outside, tmp_path):
    assert outside("help").code == 0
    assert outside("token", "create", "--help").code == 0
    assert outside("frobnicate").code == 64
    assert not embedded.data_dir(tmp_path / "state" / "main").exists()
