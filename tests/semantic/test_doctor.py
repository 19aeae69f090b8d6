"""What `lychd doctor` says of derivations: what waits, which one command sends it again, what is not searched."""

import json
import re
import shlex

import pytest

from archive.operations.transition import revoke
from lychd import console
from semantic import tasks
from semantic.operations.attempts import Attempt, run_attempt
from semantic.operations.generations import register, retire
from tests import cast
from tests.semantic import acts
from tests.semantic.ageing import age
from tests.semantic.conftest import GENERATION, derivation


@pytest.fixture
def notes(meaning, alice, otto):
    found = [cast.promoted(alice, f"Oaks grow for {n} years.", source=f"oak-{n}") for n in range(3)]
    register(otto)
    return found


@pytest.fixture
def examined(capsys):
    """The findings about derivations, by name."""

    def run():
        capsys.readouterr()
        console.run(["doctor", "--json"])
        document = json.loads(capsys.readouterr().out)
        names = ("derivations", "attempts", "vectors")
        return {one["check"]: one for one in document["findings"] if one["check"].split()[0] in names}

    return run


def test_nothing_that_waits_is_no_finding(notes, dora, alice, examined):
    assert examined()["derivations"]["seen"].startswith("0 complete")
    acts.derived(dora, notes[0])
    record = acts.prepared(dora, notes[1])
    revoke(alice, cast.step(notes[1], cast.State.REVOKED))

    found = examined()

    assert record.state == "prepared"
    assert set(found) == {"derivations"}
    assert (found["derivations"]["verdict"], found["derivations"]["seen"][:10]) == ("ok", "1 complete")


def test_a_lost_message_is_counted_and_one_command_sends_it_again(notes, dora, examined, monkeypatch):
    """By the very command that the finding names."""
    for note in notes[:2]:
        acts.prepared(dora, note)

    finding = examined()["derivations of garden"]

    assert finding["verdict"] == "notice"
    assert finding["seen"] == f"2 of {GENERATION} prepared and not begun; a lost message leaves them so"
    (command,) = re.findall("`lychd ([^`]*)`", finding["fix"])
    sent = []
    monkeypatch.setattr(tasks, "send", lambda caller, attempt, correlation_id: sent.append(attempt))
    assert console.run(shlex.split(command.replace("DERIVER", "dora"))) == 0
    # The third note was never prepared; it is sent with the others.
    assert [one.expected_row_version for one in sent] == [1] * 3
    for one in sent:
        run_attempt(dora, one)
    assert set(examined()) == {"derivations"}


def test_what_failed_and_what_expired_is_counted_and_tried_again_only_when_asked(
    notes, dora, script, examined, superuser, monkeypatch
):
    class Gone(BaseException):
        pass

    for note, stop in zip(notes[:2], (Gone, RuntimeError), strict=True):
        record = acts.prepared(dora, note)

        def stopped(stop=stop):
            raise stop

        script.before = stopped
        with pytest.raises(BaseException):  # noqa: B017, PT011 - one of them is no Exception, as when a worker is gone
            run_attempt(dora, Attempt(record.id, 1))
        if stop is Gone:
            assert set(examined()) == {"derivations"}, "its minute is not over"
            age(superuser, record.id)
    script.before = None

    finding = examined()["attempts of garden"]

    assert finding["seen"] == f"1 attempts in {GENERATION} expired and 1 failed"
    (command,) = re.findall("`lychd ([^`]*)`", finding["fix"])
    assert "--retry" in command
    words = shlex.split(command.replace("DERIVER", "dora"))
    assert console.run([word for word in words if word != "--queue"]) == 0
    assert set(examined()) == {"derivations"}


def test_what_waits_in_a_generation_that_is_configured_no_more_is_ended_and_not_sent(
    notes, dora, otto, examined, settings
):
    acts.prepared(dora, notes[0])
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(generation="notes-2")}

    assert f"generation retire {GENERATION}" in examined()["derivations of garden"]["fix"]
    retire(otto, GENERATION)
    assert set(examined()) == {"derivations"}


@pytest.mark.parametrize(
    "drift",
    [
        "DELETE FROM semantic_scan",
        "UPDATE semantic_scan SET derivation_id = gen_random_uuid()",
        "UPDATE semantic_coverage SET complete = 2",
    ],
)
def test_what_is_complete_and_not_searched_is_found(notes, dora, examined, superuser, drift):
    acts.derived(dora, notes[0])
    superuser.execute(drift.encode())

    finding = examined()[f"vectors of garden in {GENERATION}"]

    assert finding["verdict"] == "failed"
    assert finding["seen"].startswith("1 complete")
