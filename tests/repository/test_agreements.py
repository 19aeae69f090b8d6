"""What is said in two places is said alike: pages, tables of the database, contracts of imports, and the code."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps

from archive import limits, refusals
from archive.authority import PURPOSE_OF, Action, Purpose
from archive.lifecycle import NOTE_EDGES, Cause, LexicalState, Reason, State
from archive.models import Note

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def modules(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


# --- the lifecycle ---------------------------------------------------------------------------------------------------


def test_the_page_of_the_lifecycle_has_the_edges_of_the_code():
    table = re.search(r"<!-- edges -->(.*?)<!-- /edges -->", page("architecture.md"), re.DOTALL)
    assert table is not None
    told = re.findall(r"^\| (\w+) \| (\w+) \|$", table[1], re.MULTILINE)
    assert told[0] == ("from", "to")
    assert sorted(told[1:]) == sorted((start.value, end.value) for start, end in NOTE_EDGES)


def test_the_database_has_the_edges_of_the_code(owner):
    (source,) = owner.execute(
        "SELECT prosrc FROM pg_proc WHERE oid ="
        " (SELECT tgfoid FROM pg_trigger WHERE tgrelid = 'archive_note'::regclass AND tgname LIKE '%note_edge%')"
    ).fetchone()
    listed = re.search(r"\(OLD\.state, NEW\.state\) NOT IN \((.*?)\) THEN", source, re.DOTALL)
    assert listed is not None
    found = set(re.findall(r"\('(\w+)', '(\w+)'\)", listed[1]))
    assert found == {(start.value, end.value) for start, end in NOTE_EDGES}


def rule(owner, constraint: str) -> str:
    """A constraint as the database tells it."""
    (told,) = owner.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [constraint]
    ).fetchone()
    return str(told)


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ("note_state", State),
        ("event_cause", Cause),
        ("event_reason", Reason),
        ("flag_reason", Reason),
        ("namespace_lexical_state", LexicalState),
    ],
)
def test_the_database_knows_the_words_of_the_code(owner, constraint, words):
    assert set(re.findall(r"'(\w+)'", rule(owner, constraint))) == {word.value for word in words}


def test_the_database_knows_the_sizes_of_the_code(owner):
    assert {int(number) for number in re.findall(r"\d+", rule(owner, "note_size"))} == {
        1,
        limits.NOTE_TEXT_MAX_CHARS,
        limits.NOTE_TEXT_MAX_BYTES,
    }


def test_every_state_but_the_first_has_its_time():
    columns = {field.name for field in Note._meta.get_fields()}
    assert {f"{state}_at" for state in State if state is not State.CANDIDATE} <= columns


# --- refusals --------------------------------------------------------------------------------------------------------


def every_refusal() -> list[type[refusals.Refusal]]:
    for name in ("semantic.refusals",):
        importlib.import_module(name)
    return list(refusals.every())


def test_every_no_has_a_code_of_its_own_a_title_and_a_next_step():
    kinds = every_refusal()
    codes = [kind.code for kind in kinds]
    assert len(codes) == len(set(codes))
    for kind in kinds:
        assert re.fullmatch(r"[a-z][a-z_]*[a-z]", kind.code), kind
        assert kind.title, kind
        assert kind.detail.endswith("."), kind
        assert 400 <= kind.status < 600, kind
        assert kind.exit_code in {2, 3, 4}, kind


def test_kinds_decide_the_status_and_the_exit_code():
    exits = {
        400: 2,
        401: 2,
        403: 2,
        404: 2,
        405: 2,
        406: 2,
        409: 3,
        413: 2,
        415: 2,
        422: 2,
        429: 4,
        500: 4,
        503: 4,
        504: 4,
    }
    assert {kind.code: kind.exit_code for kind in every_refusal()} == {
        kind.code: exits[kind.status] for kind in every_refusal()
    }


# Specification 5.13 and 0.14, as far as the archive reaches.
CODES = {
    400: {"invalid_request"},
    401: {"unauthenticated"},
    403: {"authority_refused", "csrf_failed"},
    404: {"not_found", "namespace_not_served", "namespace_absent", "record_absent", "receipt_absent"},
    405: {"method_not_allowed"},
    406: {"not_acceptable"},
    409: {
        "request_conflict",
        "source_revision_conflict",
        "source_revision_revoked",
        "candidates_waiting",
        "lifecycle_version_conflict",
        "illegal_transition",
        "binding_mismatch",
        "selection_stale",
        "receipt_binding_mismatch",
        "receipt_schema_mismatch",
        "second_person_required",
        "batch_rolled_back",
    },
    413: {"text_too_large", "body_too_large"},
    415: {"unsupported_media"},
    429: {"limited"},
    500: {"integrity_failure", "internal"},
    503: {
        "archive_timeout",
        "storage_unavailable",
        "outcome_unknown",
        "authority_unavailable",
        "capability_not_ready",
        "profile_off",
    },
}


def test_the_codes_of_the_archive_are_the_closed_list():
    found = {}
    for kind in every_refusal():
        if kind.__module__ == "archive.refusals":
            found.setdefault(kind.status, set()).add(kind.code)
    assert found == CODES


def test_the_page_of_errors_has_every_code_under_its_status():
    told = page("errors.md")
    status, listed = 0, {}
    for line in told.splitlines():
        if heading := re.match(r"## (\d{3})", line):
            status = int(heading[1])
        elif row := re.match(r"\| `(\w+)` \| (\d) \|", line):
            listed[row[1]] = (status, int(row[2]))
    assert listed == {kind.code: (kind.status, kind.exit_code) for kind in every_refusal()}


def test_no_refusal_carries_a_version_a_name_or_a_text_in_what_it_always_says():
    for kind in every_refusal():
        assert "{" not in kind.title + kind.detail, kind


# --- authority -------------------------------------------------------------------------------------------------------

# Table 5.5, for what exists.
PURPOSES = {
    "intake": "memory",
    "flag": "memory",
    "list_own_intakes": "memory",
    "promote": "curation",
    "archive": "curation",
    "revoke": "curation",
    "review": "curation",
    "recall": "answer",
    "resolve": "answer",
    "semantic_recall": "answer",
    "semantic_resolve": "answer",
    "discover_configuration": "management",
    "discover_generation": "management",
    "inspect_interface": "management",
    "inspect_metadata": "management",
    "inspect_receipt": "management",
    "explain_run": "management",
    "inspect_derivation": "management",
    "migrate_binding": "management",
    "register_generation": "management",
    "retire_generation": "management",
    "configure_namespace": "management",
    "grant": "management",
    "prepare_derivation": "derivation",
    "execute_derivation": "derivation",
}


def test_each_action_has_the_purpose_of_the_table():
    assert set(PURPOSE_OF) == set(Action)
    for action in Action:
        assert PURPOSE_OF[action].value == PURPOSES[action.value], action
    assert {purpose.value for purpose in Purpose} >= {"memory", "curation", "answer", "management"}


# --- the shape of the code -------------------------------------------------------------------------------------------


def test_imports_point_one_way():
    ended = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "0 broken" in ended.stdout


def test_a_transaction_begins_in_one_module_only():
    for name, tree in modules("archive", "semantic", "inspection"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "django.db":
                borrowed = {alias.name for alias in node.names}
                assert "transaction" not in borrowed or name == "archive/transactions.py", name
            assert "django.db.transaction" not in _imported(node), name


def test_the_way_round_the_triggers_is_nowhere():
    for name, tree in modules("archive", "semantic", "inspection", "lychd", "tests"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) != ("pgtrigger", "ignore"), f"{name}:{node.lineno}"


def test_no_operation_knows_how_it_was_called():
    for name, tree in modules("archive/operations", "archive/models"):
        for node in ast.walk(tree):
            for imported in _imported(node):
                assert not imported.startswith(("django.http", "rest_framework", "django.shortcuts", "celery")), name


def test_the_archive_knows_nothing_of_what_is_derived_from_it():
    for name, tree in modules("archive"):
        for node in ast.walk(tree):
            for imported in _imported(node):
                assert imported.split(".")[0] not in {"semantic", "inspection", "lychd"}, f"{name}: {imported}"


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return []


def test_inspection_has_no_model():
    assert list(apps.get_app_config("inspection").get_models()) == []


def test_no_module_is_called_by_a_word_for_anything():
    for name, _ in modules("archive", "semantic", "inspection", "lychd"):
        stem = Path(name).stem
        assert stem not in {"utils", "util", "helpers", "helper", "managers", "manager", "common", "misc"}, name


def test_every_number_of_the_archive_is_in_one_module():
    # A bound that is written down elsewhere will differ from it one day.
    bounds = {
        limits.NOTE_TEXT_MAX_CHARS,
        limits.NOTE_TEXT_MAX_BYTES,
        limits.BODY_MAX_BYTES,
        limits.BATCH_BODY_MAX_BYTES,
    }
    for name, tree in modules("archive"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value in bounds:
                assert name == "archive/limits.py", f"{name}:{node.lineno} writes {node.value} again"


@pytest.mark.parametrize("readme", ["archive/README.md", "inspection/README.md"])
def test_each_app_has_its_page(readme):
    text = (ROOT / readme).read_text(encoding="utf-8")
    assert text.startswith("# ")
    for path in re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", text):
        assert (ROOT / path).exists() or (ROOT / Path(readme).parent / path).exists(), path


def test_every_link_between_pages_leads_somewhere():
    pages = [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md")]
    assert len(pages) > 5
    for path in pages:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.relative_to(ROOT)} leads to {target}"
