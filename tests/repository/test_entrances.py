"""Whatever can be granted can be done somewhere, and whatever can be configured is used by something."""

import ast
from collections.abc import Iterator
from pathlib import Path

from django.conf import global_settings

from archive.authority import Action
from lychd.environment import VARIABLES
from tests.access import table

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("archive", "semantic", "inspection", "lychd")
SETTINGS = ROOT / "lychd" / "settings.py"
# The framework and the libraries read these themselves.
LIBRARIES = ("AXES_", "CELERY_", "CSRF_", "REST_", "SPECTACULAR_", "WHITENOISE_")
# Judging a value uses it for nothing.
JUDGES = {"checks.py", "settings.py"}


def test_every_action_has_an_entrance_that_asks_for_it():
    asked = {one.action for one in table.ENTRANCES}
    assert {action.value for action in Action} - asked == set()


def sources() -> Iterator[ast.AST]:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if path.name not in JUDGES:
                yield ast.parse(path.read_text(encoding="utf-8"))


def names_and_words() -> set[str]:
    """Every attribute that is read, and every word that is a key or an argument, outside of what only judges."""
    found: set[str] = set()
    for tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Subscript):
                found |= words(node.slice)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) != "refuse":
                for argument in node.args:
                    found |= words(argument) if isinstance(argument, ast.Constant) else set()
    return found


def words(node: ast.AST) -> set[str]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def settled() -> Iterator[tuple[str, str]]:
    """Each variable with the settings, or the keys of our own dictionary, that its value goes into."""
    tree = ast.parse(SETTINGS.read_text(encoding="utf-8"))
    for name, value in assigned(tree.body):
        reads = words(value) & VARIABLES.keys()
        reads |= {variable for one in ast.walk(value) if isinstance(one, ast.Name) for variable in within(one.id, tree)}
        for variable in reads:
            yield variable, name
    for one in ast.walk(tree):
        if isinstance(one, ast.If | ast.IfExp):
            # What it decides is another setting.
            named = [within(part.id, tree) for part in ast.walk(one.test) if isinstance(part, ast.Name)]
            for variable in (words(one.test) & VARIABLES.keys()).union(*named):
                yield variable, "INSTALLED_APPS"


def assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        if isinstance(statement, ast.If):
            yield from assigned([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                yield from parts(ast.unparse(target), statement.value)


def parts(name: str, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Of our own dictionary each key is a setting."""
    if name != "LYCHD_ARCHIVE":
        yield name, value
        return
    for one in ast.walk(value):
        if isinstance(one, ast.Dict):
            for key, held in zip(one.keys, one.values, strict=True):
                assert isinstance(key, ast.Constant)
                yield str(key.value), held


def within(name: str, tree: ast.Module) -> set[str]:
    """The variables that a name or function of the settings reads, over any number of steps."""
    found: set[str] = set()
    for node in tree.body:
        made = isinstance(node, ast.FunctionDef) and node.name == name
        made |= isinstance(node, ast.Assign) and any(ast.unparse(one) == name for one in node.targets)
        if made:
            for one in ast.walk(node):
                if isinstance(one, ast.Constant) and one.value in VARIABLES:
                    found.add(str(one.value))
                elif isinstance(one, ast.Name) and one.id != name:
                    found |= within(one.id, tree)
    return found


def test_every_variable_reaches_something_that_uses_it():
    used = names_and_words()
    reaching = {
        variable
        for variable, name in settled()
        if name in used or hasattr(global_settings, name) or name.startswith(LIBRARIES)
    }
    # Some are read where they are needed and stand in no setting.
    reaching |= {variable for variable in VARIABLES if variable in used}
    assert sorted(VARIABLES.keys() - reaching) == []
