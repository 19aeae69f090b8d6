"""Every field that our code hands to the log is one that a line shows: read from the code, and seen in a line."""

import ast
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from lychd import logs
from lychd.environment import CHECKOUT

PACKAGES = ("archive", "semantic", "inspection", "lychd")
METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def calls() -> Iterator[tuple[str, ast.Call, ast.AST]]:
    """Every call of a logger in the product, with where it is and the function around it."""
    for package in PACKAGES:
        for path in sorted((CHECKOUT / package).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            for around in ast.walk(tree):
                if not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                for node in ast.walk(around):
                    if (
                        isinstance(node, ast.Call)
                        and isinstance(node.func, ast.Attribute)
                        and node.func.attr in METHODS
                        and isinstance(node.func.value, ast.Name)
                        and node.func.value.id == "log"
                    ):
                        yield f"{path.relative_to(CHECKOUT)}:{node.lineno}", node, around


def fields(call: ast.Call, around: ast.AST) -> set[str]:
    """The names in `extra`: of a dictionary written there, or of one that the function wrote into a variable."""
    for keyword in call.keywords:
        if keyword.arg == "extra":
            return names(keyword.value, around)
    return set()


def names(value: ast.expr, around: ast.AST) -> set[str]:
    if isinstance(value, ast.Dict):
        assert all(isinstance(key, ast.Constant) for key in value.keys), "a field's name is written out"
        return {str(key.value) for key in value.keys if isinstance(key, ast.Constant)}
    assert isinstance(value, ast.Name), "`extra` is a dictionary or the name of one"
    found: set[str] = set()
    for node in ast.walk(around):
        if isinstance(node, ast.Assign):
            target, given = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, given = node.target, node.value
        else:
            continue
        if isinstance(target, ast.Name) and target.id == value.id:
            found |= names(given, around)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == value.id:
            assert isinstance(target.slice, ast.Constant)
            found.add(str(target.slice.value))
    assert found, f"nothing says what {value.id} holds"
    return found


def test_every_field_of_every_line_is_spoken():
    """A field that the formatter does not know would vanish without a word."""
    found = {where: fields(call, around) for where, call, around in calls()}
    assert len(found) >= 15
    assert {where: lost for where, said in found.items() if (lost := said - set(logs.SPOKEN))} == {}


def test_no_field_is_spoken_that_nobody_says():
    said = set().union(*(fields(call, around) for _, call, around in calls()))
    # Bound for all lines of a request, not given to one.
    assert set(logs.SPOKEN) == said


def test_what_a_task_and_an_embedding_say_stands_in_the_line():
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.formatter())
    spoken = logging.getLogger("semantic.tasks")
    spoken.addHandler(handler)
    try:
        spoken.warning("attempt refused", extra={"derivation": "d-1", "reason": "why", "claims": 3})
    finally:
        spoken.removeHandler(handler)
    told = json.loads(written.getvalue())
    assert (told["derivation"], told["reason"], told["claims"]) == ("d-1", "why", 3)


def test_a_field_that_nobody_knows_ends_a_test():
    with pytest.raises(AssertionError, match="unheard"):
        # Above whatever level a test before this one left.
        logging.getLogger("archive.authority").critical("x", extra={"unheard": 1})


def test_no_logger_has_another_name():
    """The walk above finds loggers by their name, so every module has to call its own the same."""
    for package in PACKAGES:
        for path in sorted((CHECKOUT / package).rglob("*.py")):
            for line in Path(path).read_text("utf-8").splitlines():
                if "getLogger(__name__)" in line or "get_logger(__name__)" in line:
                    assert line.startswith("log = "), path
