"""Every fence of the code and of the catalogue has a fault in the registry, and every fault still fits."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database import catalogue
from tests.faults.planting import Code, Constant, Together, Unplantable
from tests.faults.registry import FAULTS

ROOT = Path(__file__).parents[2]
PACKAGES = ("archive", "inspection", "semantic")

HOLDS = {"locked", "shared", "held", "savepoint", "snapshot"}
QUEUES = {"_queue", "_row", "select_for_update"}
QUESTIONS = {"require", "decide", "_ask", "ask", "ask_for"}
# Asked of whoever stands behind them, so that no point is named where they are.
BARE = {"decide", "ask"}

COVERED = {place for fault in FAULTS for place in fault.covers}


def test_every_fault_has_a_name_of_its_own():
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []


def test_every_fault_names_a_test_and_the_file_is_there():
    for fault in FAULTS:
        assert fault.tests, fault.name
        for test in fault.tests:
            path, _, name = test.partition("::")
            function = name.split("[")[0].rstrip("*")
            assert f"def {function}" in (ROOT / path).read_text(encoding="utf-8"), test


def plantings() -> Iterator[Code | Constant]:
    for fault in FAULTS:
        parts = fault.planting.plantings if isinstance(fault.planting, Together) else (fault.planting,)
        yield from (part for part in parts if isinstance(part, Code | Constant))


def test_every_fault_of_the_code_still_fits_it():
    misfits = []
    for planting in plantings():
        try:
            planting.rewritten()
        except Unplantable as why:
            misfits.append(str(why))
    assert misfits == []


def sites() -> Iterator[str]:
    """Every hold that is taken, every lock inside one, and every question that is asked, by module and function."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield from _numbered(_calls(module, ast.parse(path.read_text(encoding="utf-8")), ""))


def _numbered(places: Iterator[str]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for place in places:
        seen[place] += 1
        yield place if seen[place] == 1 else f"{place} {seen[place]}"


def _calls(module: str, node: ast.AST, inside: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        within = inside
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            within = f"{inside}.{child.name}" if inside else child.name
        if isinstance(child, ast.Call) and (said := _said(module, child)) is not None:
            yield f"{module}:{inside} {said}"
        yield from _calls(module, child, within)


def _said(module: str, call: ast.Call) -> str | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    # A method of that name on something else, a set called `held` for example, is none of these.
    if isinstance(call.func, ast.Name) and name in HOLDS:
        return name
    if name in QUEUES and (name == "select_for_update" or module == "archive.transactions"):
        return name
    if name == "find" and "source()" in ast.unparse(call.func):
        return "find"
    if name in QUESTIONS:
        points = [
            argument.attr
            for argument in call.args
            if isinstance(argument, ast.Attribute) and getattr(argument.value, "id", "") == "Point"
        ]
        return f"{name} {points[0]}" if points else (name if name in BARE else None)
    return None


# What looks like a fence and is none.
NONE = {
    "archive.authority:Caller.in_namespace find": "the door; what it finds is compared under the hold",
}


def test_every_hold_and_every_question_of_the_code_has_a_fault():
    found = set(sites())

    assert len(found) > 50
    assert sorted(found - COVERED - NONE.keys()) == []
    assert sorted(place for place in COVERED if ":" in place and place not in found) == []


@pytest.mark.django_db
def test_every_trigger_and_every_constraint_of_the_catalogue_has_a_fault(owner):
    found = {f"trigger {one.table}.{one.rule}" for one in catalogue.triggers(owner, of_all=True)}
    found |= {
        f"constraint {table}.{name}" for table, name in [*constraints(owner), *catalogue.lone_unique_indexes(owner)]
    }

    assert len(found) > 90
    assert sorted(found - COVERED - UNDROPPED.keys()) == []
    assert sorted(place for place in COVERED if ":" not in place and place not in found) == []


# What cannot fall, or not alone.
UNDROPPED = {
    "constraint archive_note.note_number_once": "the database alone gives the number; no statement can bring one along",
    "constraint semantic_generation.generation_dimensions": "the foreign key of a vector's dimension stands on it",
}


def constraints(owner) -> list[tuple[str, str]]:
    """The checks, uniquenesses and exclusions of every table of ours."""
    return [
        *catalogue.constraints(owner, "cux"),
        *catalogue.ask(
            owner,
            "SELECT c.relname, k.conname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid"
            " WHERE c.relnamespace = 'public'::regnamespace AND starts_with(c.relname, 'semantic_')"
            " AND k.contype IN ('c', 'u', 'x') ORDER BY 1, 2",
        ),
    ]
