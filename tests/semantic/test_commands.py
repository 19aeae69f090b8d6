"""Generations, derivations and recall by meaning on the command line."""

import json

import pytest

from archive.operations import host
from archive.refusals import Internal
from lychd import console
from semantic.models import Derivation
from semantic.operations.generations import register, retire
from semantic.refusals import DerivationNotClaimable, GenerationRetired
from tests import cast
from tests.semantic.conftest import GENERATION


@pytest.fixture
def line(meaning, capsys):
    """Run one command line as somebody, and return its exit code and its document."""

    def run(subject: str, *words: str):
        code = console.run([*words, "--as", subject, "--namespace", "garden", "--json"])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else None

    return run


@pytest.fixture
def notes(meaning, alice):
    return [cast.promoted(alice, f"Oaks grow for {n} years.", source=f"oak-{n}") for n in range(5)]


def test_a_generation_from_discovery_to_retirement(line, notes):
    code, found = line("otto", "generation", "discover")
    assert (code, found["reference"]) == (0, GENERATION)
    code, made = line("otto", "generation", "register")
    assert (code, made["created"], made["generation"]["manifest_digest"]) == (0, True, found["manifest_digest"])
    assert line("otto", "generation", "register")[1]["created"] is False
    code, shown = line("ivy", "generation", "status")
    assert shown["items"][0]["coverage"] == {"promoted": 5, "complete": 0}
    assert line("otto", "generation", "retire", GENERATION)[0] == 0
    # S-154: a retired generation stays retired, and the exit code says conflict.
    code, problem = line("otto", "generation", "register")
    assert (code, problem["code"]) == (3, "generation_retired")


def test_s151_a_generation_makes_no_namespace(line):
    code, problem = line("otto", "generation", "register")
    assert (code, problem["code"]) == (2, "namespace_absent")


def test_deriving_goes_on_where_it_stopped(line, notes, otto, script):
    register(otto)

    assert line("dora", "derive", "--all", "--limit", "2", "--batch", "1")[1]["outcomes"] == {"complete": 2}
    assert script.calls == 2
    assert line("dora", "derive", "--all")[1]["outcomes"] == {"complete": 3}
    assert script.calls == 3
    code, told = line("dora", "derive", "--all")
    assert (code, told["outcomes"], script.calls) == (0, {}, 3)
    assert line("dora", "derive", str(notes[0].id))[1]["outcomes"] == {"complete": 1}
    assert script.calls == 3


def test_a_failed_attempt_is_taken_up_again_only_when_asked(line, notes, otto, script):
    register(otto)

    def broken():
        raise RuntimeError

    script.before = broken
    code, told = line("dora", "derive", "--all")
    assert (code, told["outcomes"]) == (Internal.exit_code, {"internal": 5})
    script.before = None
    code, told = line("dora", "derive", "--all")
    assert (code, told["outcomes"]) == (DerivationNotClaimable.exit_code, {"derivation_not_claimable": 5})
    assert [(one["code"], one["detail"]) for one in told["refused"]] == [
        ("derivation_not_claimable", DerivationNotClaimable.detail)
    ]
    assert line("dora", "derive", "--all", "--retry")[1]["outcomes"] == {"complete": 5}
    one = Derivation.objects.first()
    assert line("dora", "derivation", "show", str(one.id))[1]["derivation"]["attempt"] == 2


def test_a_refusal_on_the_way_leaves_what_was_done_and_tells_it(line, notes, otto, script):
    register(otto)
    words = iter(range(2))

    def soon_gone():
        if next(words, None) is None:
            retire(otto, GENERATION)

    script.before = soon_gone
    code, told = line("dora", "derive", "--all", "--batch", "1")

    assert (code, told["stopped"]) == (GenerationRetired.exit_code, "generation_retired")
    assert told["outcomes"] == {"complete": 2, "attempt_fenced": 1}
    assert [one["code"] for one in told["refused"]] == ["attempt_fenced", "generation_retired"]


def test_asking_by_meaning(line, notes, otto, script):
    register(otto)
    line("dora", "derive", "--all")

    code, told = line("bob", "semantic", "recall", "how old do oaks grow", "--min-cosine", "0", "--text")

    assert (code, told["outcome"], len(told["sources"])) == (0, "published", 5)
    identity = told["receipt"]["request_id"]
    assert line("bob", "semantic", "resolve", identity)[1]["sources"] == told["sources"]
    assert line("bob", "resolve", identity)[1]["code"] == "receipt_schema_mismatch"


def test_words_for_people_say_how_much_was_searched(meaning, notes, otto, dora, capsys):
    register(otto)
    acting = ["--as", "bob", "--namespace", "garden"]
    assert console.run(["semantic", "recall", "oaks", "--min-cosine", "0.1", *acting]) == 0
    assert "searched 0 of 5 promoted notes in generation notes-1" in capsys.readouterr().out
    assert console.run(["generation", "status", "--as", "ivy", "--namespace", "garden"]) == 0
    assert "scripted word-hashing" in capsys.readouterr().out
    assert host.host_actor()


def test_naming_nothing_is_wrong_usage(meaning, capsys):
    assert console.run(["derive", "--as", "dora", "--namespace", "garden"]) == 64
    assert "name notes, or say --all" in capsys.readouterr().err
