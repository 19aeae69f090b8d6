"""What is searched is written again from the vectors that are there, equal to what the trigger would have written."""

import json
import re
import shlex

import psycopg
import pytest

from archive.operations.transition import revoke
from archive.refusals import ArchiveTimeout, CapabilityNotReady, NamespaceAbsent
from lychd import console
from semantic.models import Generation
from semantic.operations import rebuild
from semantic.operations.generations import register, retire
from semantic.operations.rebuild import rebuild_scan
from semantic.refusals import GenerationAbsent
from tests import cast
from tests.database.world import no_trace
from tests.semantic import acts
from tests.semantic.conftest import GENERATION, derivation

pytestmark = pytest.mark.django_db(transaction=True)

COPY = "SELECT derivation_id, generation_id, half::text FROM semantic_scan ORDER BY 1"
COUNT = "SELECT generation_id, complete, rebuilding FROM semantic_coverage ORDER BY 1"


@pytest.fixture
def notes(meaning, alice, otto, dora):
    """Seven embedded notes, one that waits, and one whose vector is gone with it."""
    found = [cast.promoted(alice, f"Oaks grow for {n} years.", source=f"oak-{n}") for n in range(9)]
    register(otto)
    for note in found[:8]:
        acts.derived(dora, note)
    revoke(alice, cast.step(found[7], cast.State.REVOKED))
    acts.prepared(dora, found[8])
    return found


@pytest.fixture
def derived(owner):
    return lambda: (owner.execute(COPY).fetchall(), owner.execute(COUNT).fetchall())


# What a hand, a broken trigger or half a restore may leave behind.
DRIFTS = {
    "all gone": "DELETE FROM semantic_scan",
    "some gone": "DELETE FROM semantic_scan WHERE derivation_id IN (SELECT id FROM semantic_derivation"
    " WHERE source_key IN ('oak-0', 'oak-5'))",
    "of no derivation": "UPDATE semantic_scan SET derivation_id = gen_random_uuid()",
    "of no generation": "UPDATE semantic_scan SET generation_id = gen_random_uuid()",
    "another vector": "UPDATE semantic_scan SET half = (SELECT half FROM semantic_scan LIMIT 1)",
    "another length": "UPDATE semantic_scan SET half = subvector(half, 1, 3)",
    "of one that is not complete": "INSERT INTO semantic_scan SELECT d.id, d.generation_id, s.half"
    " FROM semantic_derivation d, (SELECT half FROM semantic_scan LIMIT 1) s WHERE d.state <> 'complete'",
    "counted otherwise": "UPDATE semantic_coverage SET complete = 2",
    "not counted": "DELETE FROM semantic_coverage",
}


@pytest.mark.parametrize("drift", DRIFTS)
def test_whatever_drifted_is_what_the_trigger_wrote_again(notes, owner, derived, drift):
    before = derived()
    assert len(before[0]) == 7
    owner.execute(DRIFTS[drift])
    assert derived() != before
    told = []

    rebuilt = rebuild_scan("garden", GENERATION, slice_size=3, progress=lambda done, of: told.append((done, of)))

    assert derived() == before
    assert rebuilt.complete == 7
    assert told == [(3, 7), (6, 7), (7, 7)]


def test_a_rebuild_without_need_writes_nothing(notes, owner, derived):
    before = derived(), owner.execute("SELECT xmin::text, ctid::text FROM semantic_scan ORDER BY 2").fetchall()
    rebuilt = rebuild_scan("garden", GENERATION)
    assert (rebuilt.complete, rebuilt.written, rebuilt.strays, rebuilt.counted_before) == (7, 0, 0, 7)
    assert (
        derived(),
        owner.execute("SELECT xmin::text, ctid::text FROM semantic_scan ORDER BY 2").fetchall(),
    ) == before


def test_another_generation_is_left_alone(notes, owner, otto, dora, settings):
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(generation="notes-2", model="other")}
    register(otto)
    acts.derived(dora, notes[0])
    owner.execute("DELETE FROM semantic_scan")
    assert rebuild_scan("garden", GENERATION).written == 7
    assert rebuild_scan("garden", "notes-2").written == 1
    retire(otto, "notes-2")
    assert rebuild_scan("garden", "notes-2").complete == 0


def test_a_padded_vector_is_copied_without_its_padding(notes, owner, derived):
    """As the trigger does; the fences of a manifest are down for it."""
    with no_trace(owner):
        owner.execute("ALTER TABLE semantic_generation DISABLE TRIGGER USER")
        owner.execute(
            "UPDATE semantic_generation SET manifest = jsonb_set(manifest, '{embed_binding,padding}',"
            ' \'{"from": 384, "to": 1024, "by": "zeros-after-normalize"}\')'
        )
        owner.execute("SELECT set_config('lychd.hold', 'exclusive', true)")
        generation = Generation.objects.values_list("id", flat=True).get()
        owner.execute("SELECT semantic_rebuild_slice(%s, %s, 100)", [generation, rebuild._START])
        dims = owner.execute("SELECT DISTINCT vector_dims(half) FROM semantic_scan").fetchall()
    assert dims == [(384,)]


@pytest.mark.parametrize("drift", ["another vector", "another length"])
def test_a_deep_examination_finds_a_copy_of_another_vector(notes, owner, capsys, drift):
    owner.execute(DRIFTS[drift])
    capsys.readouterr()
    console.run(["doctor", "--deep", "--json"])
    findings = {one["check"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    found = findings[f"copies of garden in {GENERATION}"]
    assert found["seen"] == f"{6 if drift == 'another vector' else 7} are not those of their vectors"
    assert found["fix"].startswith(f"Run `lychd generation rebuild {GENERATION} --namespace garden`")


# --- while it runs ---------------------------------------------------------------------------------------------------


class Stopped(Exception):
    """Whoever rebuilds is gone."""


def stop(done, of):
    raise Stopped


def test_recall_refuses_from_the_first_hold_to_the_last_and_replays_stay(notes, bob, owner, derived):
    kept = acts.asked(bob, "oaks", request_id="earlier").receipt
    before = derived()
    owner.execute("DELETE FROM semantic_scan")
    with pytest.raises(Stopped):
        rebuild_scan("garden", GENERATION, slice_size=2, progress=stop)

    with pytest.raises(CapabilityNotReady):
        acts.asked(bob, "oaks")
    assert acts.asked(bob, "oaks", request_id="earlier").receipt == kept

    # Taken up again it writes what is missing, and no more.
    assert rebuild_scan("garden", GENERATION).written == 5
    assert derived() == before
    new = acts.asked(bob, "oaks").receipt
    assert [one["note_id"] for one in new["selected"]] == [one["note_id"] for one in kept["selected"]]


def test_what_is_derived_and_revoked_between_two_slices_is_right(notes, alice, dora, owner, derived):
    owner.execute("DELETE FROM semantic_scan")

    def meanwhile(done, of):
        if done == 2:
            note = cast.promoted(alice, "Elms come late.", source="elm")
            acts.derived(dora, note)
            revoke(alice, cast.step(notes[0], cast.State.REVOKED))

    assert rebuild_scan("garden", GENERATION, slice_size=2, progress=meanwhile).complete == 7
    complete = owner.execute("SELECT id FROM semantic_derivation WHERE state = 'complete' ORDER BY 1").fetchall()
    assert [row[:1] for row in derived()[0]] == complete
    assert [row[1:] for row in derived()[1]] == [(7, False)]


def test_a_slice_that_takes_too_long_is_halved(notes, owner, derived, monkeypatch):
    before = derived()
    owner.execute("DELETE FROM semantic_scan")
    called, through = [], rebuild._row

    def slow(question, *values):
        called.append(values[2:])
        if values[2:] > (2,):
            raise ArchiveTimeout
        return through(question, *values)

    monkeypatch.setattr(rebuild, "_row", slow)
    rebuild_scan("garden", GENERATION, slice_size=8)
    assert derived() == before
    assert [size for (size,) in filter(None, called)] == [8, 4, 2, 2, 2, 2]


def test_what_is_not_there_is_absent(notes):
    with pytest.raises(NamespaceAbsent):
        rebuild_scan("nowhere", GENERATION)
    with pytest.raises(GenerationAbsent):
        rebuild_scan("garden", "nothing")


@pytest.mark.parametrize("call", ["begin(%s)", "slice(%s, gen_random_uuid(), 5)", "finish(%s)"])
def test_what_runs_with_the_owners_rights_asks_for_the_hold(notes, serving, call):
    generation = Generation.objects.values_list("id", flat=True).get()
    for hold in ("none", "shared"):
        serving.execute("SELECT set_config('lychd.hold', %s, false)", [hold])
        with pytest.raises(psycopg.Error) as refusal:
            serving.execute(f"SELECT semantic_rebuild_{call}", [generation])
        assert refusal.value.sqlstate == "LY005"


# --- the command and doctor ------------------------------------------------------------------------------------------


def test_doctor_names_the_command_that_mends_it(notes, owner, derived, capsys):
    before = derived()
    owner.execute("DELETE FROM semantic_scan")

    def finding():
        capsys.readouterr()
        console.run(["doctor", "--json"])
        findings = json.loads(capsys.readouterr().out)["findings"]
        return {one["check"]: one for one in findings}.get(f"vectors of garden in {GENERATION}")

    found = finding()
    assert found["verdict"] == "failed"
    with pytest.raises(Stopped):
        rebuild_scan("garden", GENERATION, slice_size=2, progress=stop)
    halfway = finding()
    assert (halfway["verdict"], halfway["seen"]) == ("notice", "being rebuilt; recall by meaning waits")
    for fix in (halfway["fix"], found["fix"]):
        (command,) = re.findall("`lychd ([^`]*)`", fix)
        assert console.run(shlex.split(command)) == 0
        assert derived() == before
    assert finding() is None
