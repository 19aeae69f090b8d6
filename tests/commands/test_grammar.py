"""The command line itself: every command has an act, help and one exit code for being used wrongly."""

import io
import json

import pytest
from django.core.management import CommandError, call_command, get_commands

from archive.authority import Action
from archive.operations import host
from lychd import console
from lychd.commands import grammar
from lychd.commands.entry import AS
from tests import cast

LINES = sorted(grammar.COMMANDS)


@pytest.mark.parametrize("line", LINES)
def test_every_command_has_an_act(line, db):
    module, _, function = grammar.COMMANDS[line].act.partition(".")
    assert callable(getattr(__import__(f"lychd.commands.{module}", fromlist=[function]), function))


@pytest.mark.parametrize("line", LINES)
def test_every_command_explains_itself(line, capsys):
    assert console.run([*line.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: lychd {line}")
    assert "--json" in said


def test_whoever_acts_for_a_principal_is_told_the_rights_it_needs():
    acting = {line for line in LINES if AS in grammar.COMMANDS[line].options}
    assert acting == {line for line in LINES if grammar.COMMANDS[line].rights}
    assert {right for line in acting for right in grammar.COMMANDS[line].rights} <= set(Action)


@pytest.mark.parametrize("word", grammar.first_words())
def test_manage_py_knows_every_first_word(word):
    # `migrate` stays the framework's own there, since test databases are made with it.
    assert get_commands()[word] == ("django.core" if word == "migrate" else "lychd")


def test_help_lists_every_command(capsys):
    assert console.run(["help"]) == 0
    said = capsys.readouterr().out
    assert all(f"  {line} " in said for line in LINES)


def test_help_of_a_command_is_its_help(capsys):
    assert console.run(["help", "token", "create"]) == 0
    assert capsys.readouterr().out.startswith("usage: lychd token create")


def test_nothing_at_all_is_wrong_usage_and_shows_the_list(capsys):
    assert console.run([]) == 64
    said = capsys.readouterr()
    assert said.out == ""
    assert "lychd COMMAND" in said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["promote"],
        ["promote", "not-a-note", "--version", "1"],
        ["promote", "e58ed763-928c-4155-bee9-fdbaaadc15f3", "--version", "one"],
        ["notes", "--state", "lost"],
        ["notes", "--unknown"],
        ["token"],
        ["token", "steal"],
        ["grant", "give", "bob", "writer", "--until", "2031-05-01T12:00:00"],
        ["frobnicate"],
        ["notes", "--sta", "candidate"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_64_and_says_what_would_be_right(arguments, capsys):
    assert console.run(arguments) == 64
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("lychd: ")
    assert "help" in said.err

    assert console.run([*arguments, "--json"]) == 64
    problem = json.loads(capsys.readouterr().out)
    assert problem["code"] == "usage"
    assert problem["detail"]


def test_a_slip_of_the_finger_gets_a_hint(capsys):
    assert console.run(["ingset"]) == 64
    assert "did you mean `lychd ingest`?" in capsys.readouterr().err


def test_the_framework_s_commands_are_handed_over(lychd):
    assert lychd("check").code == 0


def test_call_command_shares_the_act(garden, bob):
    said = io.StringIO()
    call_command("principal", "list", "--json", stdout=said)
    assert {"alice", "bob"} <= {one["subject"] for one in json.loads(said.getvalue())["items"]}


def test_call_command_raises_a_refusal_with_its_exit_code(garden):
    with pytest.raises(CommandError) as refused:
        call_command("notes", "--as", "charlie", "--namespace", cast.GARDEN)
    assert refused.value.returncode == 2
    assert "authority_refused" in str(refused.value)


def test_a_fault_is_1_and_quotes_nothing(lychd, garden, monkeypatch):
    def break_down(**_: object) -> None:
        raise RuntimeError("the text of a note")

    monkeypatch.setattr(host, "issue_token", lambda *args, **how: break_down())
    ran = lychd("token", "create", "bob", "--json")
    assert ran.code == 1
    assert ran.document["code"] == "internal"
    assert ran.document["error"] == "RuntimeError"
    assert "text of a note" not in ran.out + ran.err


def test_ctrl_c_is_130_without_a_traceback(lychd, garden, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(host, "issue_token", interrupted)
    ran = lychd("token", "create", "bob")
    assert ran.code == 130
    assert "Traceback" not in ran.err


def test_an_interrupt_that_the_clean_up_hides_is_an_interrupt(monkeypatch, capsys):
    def interrupted(*_, **__):
        try:
            raise KeyboardInterrupt
        finally:
            raise OSError("another command is in progress")

    monkeypatch.setattr(console, "_run", interrupted)
    assert console.run(["notes"]) == 130
    assert capsys.readouterr().err == "\n"
