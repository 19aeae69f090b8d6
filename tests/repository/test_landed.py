"""No migration that has landed is edited, renamed or taken away: archives have been made by it."""

import shutil
import subprocess

import pytest

from tests.repository import landed


def test_no_landed_migration_is_edited_or_gone():
    there = landed.there()
    changed = [path for path, digest in landed.listed().items() if there.get(path) != digest]
    assert changed == [], "put these back as they were, and write a new migration for what has to be otherwise"


def test_what_is_new_comes_after_what_has_landed():
    """By number within its application, so that no archive has a later one without it."""
    known = landed.listed()
    for application in landed.APPLICATIONS:
        mine = [path for path in landed.there() if path.startswith(f"{application}/")]
        assert [path in known for path in mine] == sorted((path in known for path in mine), reverse=True), mine
        numbers = [path.rpartition("/")[2][:4] for path in mine]
        assert len(numbers) == len(set(numbers)), "two migrations of one number: renumber the later one"


def test_the_list_begins_with_what_had_landed_when_it_was_made():
    assert list(landed.listed())[:11] == [
        *(f"archive/migrations/{name}.py" for name in (
            *("0001_truth", "0002_lexical", "0003_same_namespace", "0004_derivation_roles", "0005_note_identity"),
            *("0006_receipt_schema", "0007_principal_link", "0008_waiting"),
        )),
        *(f"semantic/migrations/{name}.py" for name in ("0001_derived", "0002_scan", "0003_scan_order")),
    ]  # fmt: skip


def test_lines_are_only_ever_added():
    """By the history, where there is one: a line that left or changed would let an edit through."""
    git = shutil.which("git")
    if git is None or not (landed.ROOT / ".git").exists():
        pytest.skip("a copy without its history")
    name = landed.LIST.relative_to(landed.ROOT).as_posix()
    told = subprocess.run(
        [git, "log", "--format=", "-p", "--", name], cwd=landed.ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert [line for line in told.splitlines() if line.startswith("-") and not line.startswith("---")] == []


def test_a_release_adds_what_is_new(tmp_path, monkeypatch):
    copy = tmp_path / "list.txt"
    lines = landed.LIST.read_text(encoding="utf-8").splitlines()
    copy.write_text("\n".join(lines[:3]) + "\n", encoding="utf-8")
    monkeypatch.setattr(landed, "LIST", copy)
    landed.main()
    assert copy.read_text(encoding="utf-8").splitlines()[:3] == lines[:3]
    assert landed.listed() == landed.there()
