"""N. Restart and crash: what was committed is there afterwards, and nothing else is."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from archive.lifecycle import State
from archive.operations.transition import promote
from inspection import reads
from lychd import embedded
from tests import cast
from tests.scenarios.counting import refused

ROOT = Path(__file__).resolve().parents[2]

BEFORE = """
import json
from archive.operations.intake import intake
from archive.operations.recall import recall
from archive.requests import Intake, LexicalRecall
from tests import cast
alice = cast.plant().caller("alice")
note = cast.promoted(alice, "Roses want morning sun.", source="roses", request_id="r1")
gone = cast.revoked(alice, "Ivy wants a wall.", source="ivy", request_id="r2")
answer = recall(alice, LexicalRecall("q1", "roses"))
print(json.dumps({"note": str(note.id), "gone": str(gone.id), "receipt": answer.receipt}))
"""
AFTER = """
import json
from archive.authority import Caller
from archive.operations.intake import intake
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.requests import Intake, LexicalRecall
from inspection import reads
from inspection.cursors import PageRequest
from tests import cast
alice, ivy = Caller.in_namespace("alice", "garden"), Caller.in_namespace("ivy", "garden")
first = intake(alice, Intake("r1", "roses", "1", "Roses want morning sun."))
second = intake(alice, Intake("r2", "ivy", "1", "Ivy wants a wall."))
again = recall(alice, LexicalRecall("q1", "roses"))
fresh = recall(alice, LexicalRecall("q2", "roses"))
print(json.dumps({
    "first": [first.outcome, str(first.note.id), first.note.state, first.note.lifecycle_version],
    "second": [second.outcome, str(second.note.id), second.note.state, second.note.lifecycle_version],
    "again": [again.outcome, again.receipt],
    "fresh": [one["note_id"] for one in fresh.receipt["selected"]],
    "texts": [source.text for source in resolve(alice, "q1").sources],
    "states": [note.state for note in reads.list_notes(ivy, PageRequest()).items],
    "events": len(reads.namespace_events(ivy, PageRequest()).items),
}))
"""


def run(*arguments: str, state: Path, code: str = "") -> str:
    prelude = "import django; django.setup()\n"
    command = ["-c", prelude + code] if code else [str(ROOT / "manage.py"), *arguments]
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    ended = subprocess.run(
        [sys.executable, *command],
        env={
            **kept,
            "DJANGO_SETTINGS_MODULE": "lychd.settings",
            "LYCHD_STATE_DIR": str(state),
            "LYCHD_ARCHIVE_PROFILE": "local-public-notes@1",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_s240_after_a_restart_of_everything_replays_and_resolutions_answer_as_before(tmp_path):
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("only an embedded PostgreSQL is the suite's own to stop and start")
    instance = tmp_path / "main"
    try:
        with embedded.sharing(instance):
            run("migrate", "--database", "owner", "--no-input", state=tmp_path)
            before = json.loads(run(state=tmp_path, code=BEFORE))
        # The server is down here and every process has ended.
        with embedded.sharing(instance):
            after = json.loads(run(state=tmp_path, code=AFTER))
    finally:
        embedded.remove(instance)

    assert after["first"] == ["replayed", before["note"], "promoted", 2]
    assert after["second"] == ["replayed", before["gone"], "revoked", 3]
    assert after["again"] == ["replayed", before["receipt"]]
    assert after["fresh"] == [before["note"]]
    assert after["texts"] == ["Roses want morning sun."]
    assert (after["states"], after["events"]) == (["promoted", "revoked"], 5)


# Stands at the named gate, says so, and waits for an end that it does not choose.
DOOMED = """
import os, sys
import django
django.setup()
from django.db import connections
connections["default"].settings_dict.update(NAME=sys.argv[1])
connections["default"].settings_dict["OPTIONS"]["assume_role"] = sys.argv[2]
from uuid import UUID
from archive import gates
from archive.authority import Caller
from archive.lifecycle import State
from archive.operations.transition import promote
from archive.requests import Transition

def stand(name):
    if name == sys.argv[4]:
        print("here", flush=True)
        sys.stdin.read()

gates.occupy(stand)
promote(Caller.in_namespace("alice", "garden"), Transition(UUID(sys.argv[3]), State.PROMOTED, 1))
print("answered", flush=True)
"""


def killed_at(gate: str, note_id: object) -> str:
    """Promote in a process of its own and kill it at a gate; return what it had said by then."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            DOOMED,
            str(connection.settings_dict["NAME"]),
            settings.LYCHD_SERVING_ROLE,
            str(note_id),
            gate,
        ],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "lychd.settings_test"},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    return said + rest


def test_s241_killed_after_the_commit_the_record_tells_and_the_retry_conflicts(alice, ivy):
    note = cast.admitted(alice)

    assert killed_at("promote.A2", note.id) == "here\n"

    record = reads.note_record(ivy, note.id)
    assert (record.state, record.lifecycle_version) == ("promoted", 2)
    with refused(409, "lifecycle_version_conflict"):
        promote(alice, cast.step(note, State.PROMOTED))


def test_s241_killed_before_the_commit_nothing_happened_and_the_retry_succeeds(alice, ivy):
    note = cast.admitted(alice)

    assert killed_at("promote.A1", note.id) == "here\n"

    record = reads.note_record(ivy, note.id)
    assert (record.state, record.lifecycle_version) == ("candidate", 1)
    assert promote(alice, cast.step(note, State.PROMOTED)).note.lifecycle_version == 2
