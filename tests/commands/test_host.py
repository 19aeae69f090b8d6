"""The first day and every other: init, migrate, serve until Ctrl-C, doctor, metrics - with real processes."""

import json
import re
import signal
import socket
import urllib.request
from pathlib import Path

import pytest
from django.conf import settings

from archive.models import Recall
from lychd import embedded
from tests import cast
from tests.cast import GARDEN
from tests.commands.conftest import PATIENCE, on_test_database, until
from tests.commands.test_killed import runs_on


@pytest.fixture
def state(tmp_path: Path):
    folder = tmp_path / "state"
    yield folder
    embedded.remove(folder / "main")


# --- init, migrate, serve: an installation from nothing --------------------------------------------------------------


def test_from_nothing_to_an_address_and_back(start, outside, state, tmp_path):
    made = outside("init", "--json", state=state)
    assert made.code == 0, made.err
    first = made.document
    assert {one["step"]: one["outcome"] for one in first["steps"]} == dict.fromkeys(
        ("tables", "profile", "namespace", "curator", "grants", "token"), "done"
    )
    assert first["password"]
    assert first["token"].startswith("lychd_")
    written = (state / "main" / "environment").read_text()
    assert written == "LYCHD_ARCHIVE_PROFILE=local-public-notes@1\n"
    assert not runs_on(state / "main")

    again = outside("init", "--json", state=state).document
    assert {one["outcome"] for one in again["steps"]} == {"exists"}
    assert (again["password"], again["token"]) == (None, None)

    migrated = outside("migrate", "--json", state=state)
    assert (migrated.code, migrated.document) == (0, {"applied": [], "left": [], "differs": [], "uncut": []})

    # One server for a process that serves and another that takes notes in beside it.
    serving = start("serve", "--port", 0, "--json", state=state)
    assert serving.stdout is not None
    told = "".join(iter(serving.stdout.readline, "}\n")) + "}"
    address = json.loads(told)["address"]
    with urllib.request.urlopen(f"{address}/healthz", timeout=PATIENCE) as answer:
        assert answer.status == 200
    (tmp_path / "a.md").write_text("Roses want morning sun.")
    taken = outside("ingest", tmp_path / "a.md", "--as", "agent", "--json", state=state)
    assert taken.code == 0, taken.err
    assert runs_on(state / "main")
    asked = urllib.request.Request(
        f"{address}/api/v1/ns/notes/recalls",
        data=json.dumps({"request_id": "q-1", "query": "roses"}).encode(),
        headers={"Authorization": f"Bearer {first['token']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        assert json.load(answer)["receipt"]["outcome"] == "miss"

    serving.send_signal(signal.SIGINT)
    _, err = serving.communicate(timeout=PATIENCE)
    assert serving.returncode == 0
    assert "Traceback" not in err
    assert not runs_on(state / "main")


def test_a_stop_from_outside_leaves_no_process_either(start, outside, state):
    assert outside("migrate", state=state).code == 0
    serving = start("serve", "--port", 0, "--workers", 2, state=state)
    assert serving.stdout is not None
    address = re.search(r"http://\S+", serving.stdout.readline())
    assert address is not None
    with urllib.request.urlopen(f"{address[0]}/healthz", timeout=PATIENCE) as answer:
        assert answer.status == 200
    serving.send_signal(signal.SIGTERM)
    serving.communicate(timeout=PATIENCE)
    assert serving.returncode == 0
    assert not runs_on(state / "main")
    until(lambda: _refused(address[0]), "nobody answers at the address any more")


def test_workers_end_when_the_process_that_started_them_is_killed(start, transactional_db):
    serving = start("serve", "--port", 0, "--workers", 2, **on_test_database())
    assert serving.stdout is not None
    address = re.search(r"http://(127\.0\.0\.1):(\d+)", serving.stdout.readline())
    assert address is not None
    with urllib.request.urlopen(f"{address[0]}/healthz", timeout=PATIENCE) as answer:
        assert answer.status == 200
    serving.kill()
    assert serving.wait(timeout=PATIENCE) == -signal.SIGKILL

    def nobody_listens() -> bool:
        try:
            socket.create_connection((address[1], int(address[2])), timeout=PATIENCE).close()
        except ConnectionRefusedError:
            return True
        return False

    until(nobody_listens, "the last worker lets go of the address")


def _refused(address: str) -> bool:
    try:
        urllib.request.urlopen(f"{address}/healthz", timeout=5).close()
    except OSError:
        return True
    return False


def test_tables_that_are_not_there_are_not_served(outside, state):
    ran = outside("serve", "--port", 0, "--json", state=state)
    assert (ran.code, ran.document["code"]) == (4, "not_ready")
    assert "lychd migrate" in ran.err


def test_a_login_that_owns_nothing_cannot_migrate_and_is_told_what_can(outside, transactional_db):
    name = "cli_empty"
    server = on_test_database()["DATABASE_URL"]
    embedded.drop_database(settings.LYCHD_STATE_DIR, name)
    embedded.create_database(settings.LYCHD_STATE_DIR, name)
    try:
        ran = outside("migrate", "--json", DATABASE_URL=re.sub(r"/test_lychd\w*", f"/{name}", server))
    finally:
        embedded.drop_database(settings.LYCHD_STATE_DIR, name)
    assert (ran.code, ran.document["code"]) == (4, "not_ready")
    assert "DATABASE_OWNER_URL" in ran.document["detail"]


def test_a_taken_port_is_said_and_the_usual_one_gives_way(start, outside, transactional_db):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = outside("serve", "--port", taken.getsockname()[1], **on_test_database())
        assert ran.code == 4
        assert "is taken" in ran.err

    with socket.socket() as usual:
        usual.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            usual.bind(("127.0.0.1", 8000))
            usual.listen()
        except OSError:
            # Somebody else on this machine has it, which is as good.
            usual.close()
        serving = start("serve", **on_test_database())
        assert serving.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:(\d+)", serving.stdout.readline())
        assert address is not None
        assert int(address[1]) > 8000
        serving.send_signal(signal.SIGINT)
        _, err = serving.communicate(timeout=PATIENCE)
        assert f"Port 8000 is taken, so this is port {address[1]}." in err


# --- doctor ----------------------------------------------------------------------------------------------------------


def findings(ran):
    return {one["check"]: one for one in ran.document["findings"]}


@pytest.fixture
def examined(outside, transactional_db):
    """Examine the test database as the serving role, from a process of its own."""
    return lambda *more: outside("doctor", "--json", *more, **on_test_database())


def test_a_sound_installation_passes(examined, outside, alice, bob):
    cast.promoted(alice)
    cast.asked(bob)
    for more in ((), ("--deep",)):
        ran = examined(*more)
        assert ran.code == 0, ran.out
        assert ran.document["passed"] is True
        assert {one["verdict"] for one in findings(ran).values()} == {"ok"}
    assert "checks passed" in outside("doctor", **on_test_database()).out


def test_a_trigger_that_is_off_is_found(examined, owner):
    owner.execute("ALTER TABLE archive_note DISABLE TRIGGER postings")
    try:
        ran = examined()
    finally:
        owner.execute("ALTER TABLE archive_note ENABLE TRIGGER postings")
    assert ran.code == 4
    finding = findings(ran)["trigger archive_note.postings"]
    assert finding["seen"] == "has on None, not True"
    assert finding["fix"] == "As the owner: ALTER TABLE archive_note ENABLE TRIGGER postings."


def test_a_privilege_too_many_is_found(examined, owner):
    owner.execute("GRANT DELETE ON archive_note TO lychd_serving")
    try:
        ran = examined()
    finally:
        owner.execute("REVOKE DELETE ON archive_note FROM lychd_serving")
    assert ran.code == 4
    assert "archive_note" in findings(ran)["privileges"]["seen"]


def test_figures_and_words_that_drifted_are_found(examined, owner, alice):
    cast.promoted(alice, "Roses want morning sun.")
    owner.execute("UPDATE archive_corpus SET notes = notes + 1")
    owner.execute("UPDATE archive_posting SET tf = tf + 1 WHERE lexeme = 'roses'")
    ran = examined()
    wrong = [one for one in ran.document["findings"] if one["check"] == f"index of {GARDEN}"]
    assert ran.code == 4
    assert len(wrong) == 2
    assert "the figures say 2 notes" in wrong[0]["seen"]
    assert "1 of 1 notes have other words" in wrong[1]["seen"]
    assert "lexical rebuild" in wrong[0]["fix"]


def test_a_lexer_that_moved_is_found(examined, superuser, alice):
    cast.promoted(alice)
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE archive_namespace SET lexer_fingerprint = 'another'")
    ran = examined()
    assert ran.code == 4
    assert "another lexer" in findings(ran)[f"words of {GARDEN}"]["seen"]


def test_a_receipt_that_was_changed_is_found(examined, superuser, alice, bob):
    cast.promoted(alice)
    cast.asked(bob)
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE archive_recall SET receipt = jsonb_set(receipt, '{subject}', '\"eve\"')")
    ran = examined()
    assert ran.code == 4
    assert str(Recall.objects.get().id) in findings(ran)["receipts"]["seen"]


def test_a_tombstone_that_kept_its_origin_is_found(lychd, owner, alice):
    """As one would that was made before origins were cleared, had the tables not been brought up to date."""
    gone = cast.revoked(alice, asserted_origin="letters/1")
    fence = "archive_note.note_text_until_revoked"
    ((definition,),) = owner.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [fence.partition(".")[2]]
    ).fetchall()
    owner.execute("ALTER TABLE archive_note DISABLE TRIGGER USER")
    owner.execute("ALTER TABLE archive_note DROP CONSTRAINT note_text_until_revoked")
    try:
        owner.execute("UPDATE archive_note SET asserted_origin = 'letters/1' WHERE id = %s", [gone.id])
        ran = lychd("doctor", "--deep", "--json")
        owner.execute("UPDATE archive_note SET asserted_origin = NULL WHERE id = %s", [gone.id])
    finally:
        owner.execute(f"ALTER TABLE archive_note ADD CONSTRAINT note_text_until_revoked {definition}")
        owner.execute("ALTER TABLE archive_note ENABLE TRIGGER USER")
    assert ran.code == 4
    assert findings(ran)[f"tombstones of {GARDEN}"]["seen"] == "1 of 1 keep a text or an origin"


def test_a_disabled_namespace_and_a_changed_binding_are_noted(examined, lychd, alice):
    cast.promoted(alice)
    cast.plant("orchard")
    lychd("namespace", "disable", "orchard")
    lychd("namespace", "configure", GARDEN, "--owner", "another", "--policy", "p-2")
    ran = examined()
    assert ran.code == 0
    found = findings(ran)
    assert (found["namespace orchard"]["verdict"], found[f"namespace {GARDEN}"]["verdict"]) == ("notice", "notice")


def test_an_examination_changes_nothing(lychd, alice):
    cast.promoted(alice)
    # In this process, so that what the connection is left as can be seen.
    lychd("doctor", "--deep")
    assert cast.promoted(alice, source="tulips").state == "promoted"


# --- metrics ---------------------------------------------------------------------------------------------------------


def test_metrics_count_what_is_there(lychd, alice, bob):
    cast.promoted(alice)
    cast.admitted(alice, source="tulips")
    cast.asked(bob)
    said = lychd("metrics").out
    assert f'lychd_notes{{namespace="{GARDEN}",state="promoted"}} 1.0' in said
    assert f'lychd_receipts{{namespace="{GARDEN}",outcome="selected"}} 1.0' in said
    assert "# TYPE lychd_oldest_candidate_seconds gauge" in said

    values = {
        (one["name"], one["labels"].get("state")): one["value"]
        for one in lychd("metrics", "--json").document["metrics"]
    }
    assert values["lychd_notes", "candidate"] == 1
    assert values["lychd_notes", "revoked"] == 0
    assert values["lychd_oldest_candidate_seconds", None] > 0
    assert values["lychd_lexical_ready", None] == 1


def test_metrics_of_nothing_are_empty(lychd):
    ran = lychd("metrics", "--json")
    assert (ran.code, ran.document) == (0, {"metrics": []})
