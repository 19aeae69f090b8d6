"""The demonstration, from nothing to nothing: it loads once, proves its point, serves, and leaves no trace."""

import json
import signal
import urllib.error
import urllib.request
from collections import Counter

import psycopg
import pytest
from django.conf import settings
from django.db import connections

from archive.authority import Caller
from archive.lifecycle import State
from archive.models import LifecycleEvent, Note
from archive.operations import host
from inspection import derivations
from inspection.cursors import PageRequest
from inspection.reads import list_receipts
from lychd import demo, demo_meaning, embedded, handbook
from lychd.commands.telling import Unready
from lychd.demo_instance import choose_instance
from semantic.operations import generations
from semantic.presets import MINILM, STAND_IN
from tests.commands.conftest import PATIENCE, on_test_database, outside, start
from tests.commands.test_killed import runs_on

__all__ = ["outside", "start"]


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    yield folder
    embedded.remove(folder / "demo")


def ask(told, token: str, request_id: str):
    request = urllib.request.Request(
        f"{told['address']}/api/v1/ns/{told['namespace']}/recalls",
        data=json.dumps({"request_id": request_id, "query": told["question"]}).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def test_two_starts_and_a_removal(start, outside, state, tmp_path):
    ran = outside("demo", "--no-serve", "--json", state=state)
    assert ran.code == 0, ran.err
    first = ran.document
    candidate = handbook.story().candidate.source_key
    assert candidate not in {one["source_key"] for one in first["before"]["selected"]}
    assert first["after"]["selected"][0]["source_key"] == candidate
    assert first["verified"] is True
    assert outside("receipt", "verify", first["receipt_file"]).code == 0
    whole, begun = first["by_meaning"]
    assert (whole["generation"], begun["generation"]) == ("stand-in-1", "stand-in-2")
    assert candidate == whole["receipt"]["selected"][0]["source_key"]
    assert candidate not in {one["source_key"] for one in begun["receipt"]["selected"]}
    promoted = whole["receipt"]["coverage"]["promoted"]
    assert whole["receipt"]["coverage"] == {"promoted": promoted, "complete": promoted}
    assert begun["receipt"]["coverage"] == {"promoted": promoted, "complete": -(-promoted * 3 // 5)}
    assert whole["verified"]
    assert begun["verified"]
    assert f"deriving stand-in-1: 10 of {promoted} notes" in ran.err
    assert "deriving stand-in-2" in ran.err
    assert not runs_on(state / "demo")

    serving = start("demo", "--json", state=state)
    assert serving.stdout is not None
    second = json.loads("".join(iter(serving.stdout.readline, "}\n")) + "}")
    # The first receipt is the retained one, and nothing was loaded again.
    assert second["before"] == first["before"]
    assert {first[name] for name in ("password", "recall_token", "write_token")}.isdisjoint(
        second[name] for name in ("password", "recall_token", "write_token")
    )
    assert [one["receipt"]["coverage"] for one in second["by_meaning"]] == [
        one["receipt"]["coverage"] for one in first["by_meaning"]
    ]
    for number, token in enumerate((first["recall_token"], second["recall_token"])):
        assert ask(second, token, f"hello-{number}")["receipt"]["selected"][0]["source_key"] == candidate
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(second, second["write_token"], "hello-2")
    assert refused.value.code == 403

    # The command line works beside it, and by meaning too.
    shown = outside("generation", "status", "--as", demo.LEAD, state=state, LYCHD_INSTANCE="demo").out
    assert shown.count("stand-in word-hashing") == 2
    asked = outside(
        *("semantic", "recall", second["question"], "--min-cosine", "0.2", "--as", demo.READER, "--json"),
        state=state,
        LYCHD_INSTANCE="demo",
    )
    assert asked.document["receipt"]["selected"][0]["source_key"] == candidate
    notes = outside(*("notes", "--as", demo.LEAD, "--state", "candidate", "--json"), state=state, LYCHD_INSTANCE="demo")
    assert len(notes.document["items"]) == Counter(note.end_state for note in handbook.notes())["candidate"] - 1

    removed = outside("demo", "--remove", "--json", state=state)
    assert removed.document["stopped"] is True
    _, err = serving.communicate(timeout=PATIENCE)
    assert "The handbook was loaded already." in err
    assert "deriving" not in err
    assert "Traceback" not in err
    assert not (state / "demo").exists()
    assert not embedded.data_dir(state / "demo").exists()

    assert "There is no demo" in outside("demo", "--remove", state=state).out


def test_two_first_starts_at_once_make_one_demonstration(start, state):
    both = [start("demo", "--no-serve", "--json", state=state) for _ in range(2)]
    for process in both:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        assert json.loads(out)["verified"] is True
    assert not runs_on(state / "demo")


def test_ctrl_c_leaves_no_process(start, outside, state):
    serving = start("demo", state=state)
    assert serving.stdout is not None
    said = []
    while not (said and said[-1].startswith("Ctrl-C ends it")):
        said.append(serving.stdout.readline())
        assert said[-1], serving.communicate()
    assert runs_on(state / "demo")
    # A second terminal that was told nothing looks into another instance, and is told now.
    assert "LYCHD_INSTANCE=demo before it" in outside("notes", "--as", demo.LEAD, state=state).err
    assert "LYCHD_INSTANCE=demo" not in outside("frobnicate", state=state).err
    embedded.remove(state / "main")
    serving.send_signal(signal.SIGINT)
    _, err = serving.communicate(timeout=PATIENCE)
    assert serving.returncode == 0
    assert "Traceback" not in err
    assert not runs_on(state / "demo")
    assert any("curl -s http://127.0.0.1:" in line for line in said)
    assert any(line.startswith("  password ") for line in said)
    assert "  export LYCHD_INSTANCE=demo\n" in said


def test_a_server_of_ones_own_gets_a_database_beside(outside, transactional_db, state):
    serving = on_test_database()["DATABASE_URL"]
    server = embedded.Server(settings.LYCHD_STATE_DIR, embedded.socket_dir(settings.LYCHD_STATE_DIR))
    name = str(connections["default"].settings_dict["NAME"])
    login = {"DATABASE_URL": serving, "DATABASE_OWNER_URL": server.url(name, embedded.OWNER_ROLE)}

    def databases() -> set[str]:
        with psycopg.connect(server.url("postgres", embedded.OWNER_ROLE)) as connection:
            return {found for (found,) in connection.execute("SELECT datname FROM pg_database")}

    try:
        ran = outside("demo", "--no-serve", "--json", state=state, **login)
        assert ran.code == 0, ran.err
        assert ran.document["verified"] is True
        assert f"{name}_demo" in databases()
        assert Note.objects.count() == 0, "nothing of it is in the database that was named"
    finally:
        assert outside("demo", "--remove", state=state, **login).code == 0
    assert f"{name}_demo" not in databases()

    alone = outside("demo", "--no-serve", state=state, DATABASE_URL=serving)
    assert alone.code == 64
    assert "DATABASE_OWNER_URL" in alone.err


# --- the load, in this process ---------------------------------------------------------------------------------------


@pytest.fixture
def office(transactional_db):
    binding = host.configure_namespace(demo.NAMESPACE, owner=demo.OWNER, policy_revision=demo.POLICY, by="host:tests")
    for subject, names in demo.ROLES.items():
        host.map_principal(subject)
        host.grant(subject, binding, host.actions_of(names), by="host:tests")


def ends() -> dict[tuple[str, str], str]:
    return {
        (key, revision): state
        for key, revision, state in Note.objects.values_list("source__source_key", "source_revision", "state")
    }


def test_the_load_leaves_every_note_where_the_handbook_says(office):
    demo.load()
    assert ends() == {(note.source_key, note.source_revision): note.end_state for note in handbook.notes()}
    for note in handbook.notes():
        last = LifecycleEvent.objects.filter(
            note__source__source_key=note.source_key, note__source_revision=note.source_revision
        ).latest("to_version")
        assert last.reason == note.reason
    assert demo.load() == 0, "a second load has nothing to do"


def test_a_load_that_was_interrupted_is_completed(office, monkeypatch):
    class Interrupted(Exception):
        pass

    wanted = demo._decide
    for calls in (0, 1, 3):
        left = iter(range(calls))

        def decide(notes, state, left=left):
            if notes and next(left, None) is None:
                raise Interrupted
            return wanted(notes, state)

        monkeypatch.setattr(demo, "_decide", decide)
        with pytest.raises(Interrupted):
            demo.load()
    monkeypatch.setattr(demo, "_decide", wanted)
    demo.load()
    assert ends() == {(note.source_key, note.source_revision): note.end_state for note in handbook.notes()}


def test_what_somebody_decided_since_is_left_alone(office):
    demo.load()
    lead = Caller.in_namespace(demo.LEAD, demo.NAMESPACE)
    story = demo.tell_story()
    assert story.verified
    note = Note.objects.get(source__source_key=story.source_key)
    demo.transition_many(lead, [demo.Transition(note.id, State.REVOKED, note.lifecycle_version)])

    assert demo.load() == 0
    again = demo.tell_story()
    assert again.before == story.before
    assert story.source_key not in {one["source_key"] for one in again.after["selected"]}
    assert "revoked" in again.decided
    assert len(list_receipts(lead, PageRequest()).items) == 3 + len(handbook.story().more_questions)


# --- recall by meaning, in this process ------------------------------------------------------------------------------


@pytest.fixture
def meaning(office, settings):
    """The office with the settings that the demonstration's instance has."""
    settings.LYCHD_TEST_EMBEDDER = True
    settings.LYCHD_ARCHIVE = {
        **settings.LYCHD_ARCHIVE,
        "semantic": True,
        "derivation": {
            "generation": "stand-in-1",
            "embed_profile": "model.embed@1",
            "embed_binding": STAND_IN,
            "attempt_seconds": 60,
        },
    }
    demo.load()


def coverage() -> dict[str, tuple[int, int]]:
    found = derivations.generations(Caller.in_namespace(demo.LEAD, demo.NAMESPACE))
    return {one.generation.reference: (one.promoted, one.states["complete"]) for one in found}


def derive(folder) -> int:
    return demo_meaning.derive(demo.NAMESPACE, folder)


def test_one_generation_is_complete_and_one_is_left_at_three_fifths(meaning, tmp_path):
    promoted = Note.objects.filter(state=State.PROMOTED).count()
    most = -(-promoted * 3 // 5)

    assert derive(tmp_path) == promoted + most

    assert coverage() == {"stand-in-1": (promoted, promoted), "stand-in-2": (promoted, most)}
    assert derive(tmp_path) == 0, "a second start has nothing to derive"


def test_deriving_that_was_interrupted_is_completed(meaning, tmp_path, monkeypatch):
    derived = demo_meaning._derived
    left = iter(range(2))

    def interrupted(operator, notes):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return derived(operator, notes)

    monkeypatch.setattr(demo_meaning, "_derived", interrupted)
    with pytest.raises(KeyboardInterrupt):
        derive(tmp_path)
    monkeypatch.setattr(demo_meaning, "_derived", derived)
    promoted, complete = coverage()["stand-in-1"]
    assert complete == 20

    derive(tmp_path)

    assert coverage()["stand-in-1"] == (promoted, promoted)


def test_a_generation_that_was_retired_since_stays_retired(meaning, tmp_path):
    derive(tmp_path)
    before = coverage()["stand-in-2"]
    generations.retire(Caller.in_namespace(demo_meaning.OPERATOR, demo.NAMESPACE), "stand-in-1")

    assert derive(tmp_path) == 0
    whole, begun = demo_meaning.ask(demo.NAMESPACE, demo.READER, "What unfreezes a barcode scanner?")

    assert (whole.receipt, whole.refused) == (None, "generation_retired")
    assert begun.receipt is not None
    assert begun.receipt["coverage"] == {"promoted": before[0], "complete": before[1]}
    assert "   refused: generation_retired" in demo_meaning.lines((whole, begun), demo.READER, "runbooks/disk-full")


def test_what_is_shown_says_that_it_is_a_stand_in(meaning, tmp_path):
    derive(tmp_path)
    said = "\n".join(demo_meaning.lines(demo_meaning.ask(demo.NAMESPACE, demo.READER, "roses"), demo.READER, "roses"))
    assert "Its embedder is a stand-in" in said
    assert "Generation stand-in-2 is left at three fifths" in said
    assert "a miss: nothing is near enough" in said


def test_a_model_that_is_not_installed_is_asked_for_before_anything_is_made(meaning, settings, monkeypatch):
    demo_meaning.require_embedder()
    settings.LYCHD_ARCHIVE["derivation"]["embed_binding"] = MINILM
    monkeypatch.setattr("lychd.evaluation.meaning.find_spec", lambda name: None)
    with pytest.raises(Unready, match="make models"):
        demo_meaning.require_embedder()


def test_a_note_that_is_too_long_for_the_model_is_not_tried_at_every_start(meaning, settings, tmp_path):
    """The small model's window, on the stand-in: the transcript does not fit, and coverage says so."""
    settings.LYCHD_ARCHIVE["derivation"]["embed_binding"] = {**STAND_IN, "max_tokens": 512}
    derive(tmp_path)
    promoted, complete = coverage()["stand-in-1"]
    assert complete == promoted - 1
    assert derive(tmp_path) == 0


# --- which instance it is --------------------------------------------------------------------------------------------


def test_the_demonstration_takes_over_no_real_installation(monkeypatch):
    monkeypatch.delitem(__import__("sys").modules, "lychd.settings")
    given = {
        "LYCHD_ENV": "production",
        "LYCHD_INSTANCE": "main",
        "LYCHD_SECRET_KEY": "k" * 60,
        "LYCHD_AUTHORIZER": "somebody.elses",
        "REDIS_URL": "redis://elsewhere",
        "LYCHD_DERIVATION_GENERATION": "real-7",
        "LYCHD_DERIVATION_EMBEDDER": "minilm",
        "LYCHD_DERIVATION_MODEL_PATH": "/models/large",
        "LYCHD_WEB_PROCESSES": "4",
        "DATABASE_URL": "postgresql://serving:secret@db:5432/lychd?sslmode=require",
        "DATABASE_OWNER_URL": "postgresql://owner@db/lychd",
        "LYCHD_TIME_ZONE": "Europe/Vienna",
    }
    choose_instance(given, "stand-in")
    assert given == {
        "LYCHD_ENV": "development",
        "LYCHD_INSTANCE": "demo",
        "LYCHD_ARCHIVE_PROFILE": "local-public-notes@1",
        "LYCHD_DERIVATION_GENERATION": "stand-in-1",
        "LYCHD_DERIVATION_EMBEDDER": "stand-in",
        "LYCHD_SEMANTIC": "true",
        "LYCHD_TEST_EMBEDDER": "true",
        "DATABASE_URL": "postgresql://serving:secret@db:5432/lychd_demo?sslmode=require",
        "DATABASE_OWNER_URL": "postgresql://owner@db/lychd_demo",
        "LYCHD_COORDINATION": "process",
        "LYCHD_TIME_ZONE": "Europe/Vienna",
    }
