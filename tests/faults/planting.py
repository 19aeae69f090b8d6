"""How a fault gets in and out again, in a test process alone: nothing of it exists in the product.

A fault of the code replaces a few characters of one function and compiles it again; every name that refers to the
function meets the new code, and the old code comes back afterwards. A fault of the database is SQL by the owner, and
what it took away is put back by its own definition out of the catalogue. A fault that finds nothing to replace, or more
than one thing, is an error: the registry has to keep in step with the code.
"""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Protocol

import psycopg
from psycopg import sql

from tests import flushing


class Unplantable(Exception):
    """The fault does not fit the code or the database any more."""


class Planting(Protocol):
    """One way to take a fence out."""

    def planted(self) -> "Any":
        """A context in which the fence is out."""


@dataclass(frozen=True)
class Fault:
    """One fence taken out, and who has to notice."""

    name: str
    planting: Planting
    tests: tuple[str, ...]
    covers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Code:
    """Other words in one function: `target` is module:qualified.name, `old` stands in it exactly once."""

    target: str
    old: str
    new: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        function = _function(self.target)
        whole, source = function.__code__, _source(function)
        function.__code__ = self.rewritten()
        _with_faults[function] = _replaced(source, self.old, self.new, self.target)
        try:
            yield
        finally:
            function.__code__ = whole
            _with_faults[function] = source

    def rewritten(self) -> CodeType:
        """Compile the function with the fault in it; raises `Unplantable` where it does not fit."""
        function = _function(self.target)
        tree = ast.parse(_replaced(_source(function), self.old, self.new, self.target)).body[0]
        assert isinstance(tree, ast.FunctionDef)
        tree.decorator_list = []
        found: dict[str, Any] = {}
        code = compile(ast.Module([tree], []), f"<{self.target} with a fault>", "exec")
        exec(code, dict(function.__globals__), found)
        made: CodeType = found[tree.name].__code__
        if made.co_freevars != function.__code__.co_freevars:
            raise Unplantable(f"{self.target} closes over other names")
        return made


@dataclass(frozen=True)
class Constant:
    """Other words in a string that a module keeps, a statement for example."""

    target: str
    old: str
    new: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        module, name, whole = self._found()
        setattr(module, name, _replaced(whole, self.old, self.new, self.target))
        try:
            yield
        finally:
            setattr(module, name, whole)

    def _found(self) -> tuple[Any, str, str]:
        path, name = self.target.split(":")
        module = importlib.import_module(path)
        whole = getattr(module, name, None)
        if not isinstance(whole, str):
            raise Unplantable(f"{self.target} is no string")
        return module, name, whole

    def rewritten(self) -> str:
        """The string with the fault in it."""
        return _replaced(self._found()[2], self.old, self.new, self.target)


@dataclass(frozen=True)
class Value:
    """Another value under a module's name, a number or a table of rules for example."""

    target: str
    new: Callable[[Any], Any]

    @contextmanager
    def planted(self) -> Iterator[None]:
        path, name = self.target.split(":")
        module = importlib.import_module(path)
        if not hasattr(module, name):
            raise Unplantable(f"{self.target} is not there")
        whole = getattr(module, name)
        setattr(module, name, self.new(whole))
        try:
            yield
        finally:
            setattr(module, name, whole)


@dataclass(frozen=True)
class Gutted:
    """A trigger that is still there, under its name, and lets everything through."""

    table: str
    name: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        with flushing.as_owner() as owner:
            _, _, definition, _ = _trigger(owner, self.table, self.name)
            head, mark, _ = definition.partition("AS $function$")
            if not mark:
                raise Unplantable(f"the function of {self.name} on {self.table} is written otherwise")
            nothing = " BEGIN IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END; $function$"
            with _swapped(owner, sql.SQL(head + mark + nothing), sql.SQL(definition)):
                yield


@dataclass(frozen=True)
class Trigger:
    """A trigger dropped, named as in its model; django-pgtrigger gives it a longer name in the database."""

    table: str
    name: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        with flushing.as_owner() as owner:
            name, definition, _, comment = _trigger(owner, self.table, self.name)
            drop = sql.SQL("DROP TRIGGER {} ON {}").format(sql.Identifier(name), sql.Identifier(self.table))
            # The comment is what django-pgtrigger knows its triggers by; it goes and comes back with the trigger.
            back = sql.SQL("{}; COMMENT ON TRIGGER {} ON {} IS {}").format(
                sql.SQL(definition), sql.Identifier(name), sql.Identifier(self.table), sql.Literal(comment)
            )
            with _swapped(owner, drop, back):
                yield


@dataclass(frozen=True)
class Constraint:
    """A constraint dropped, or a unique index that is one in all but name."""

    table: str
    name: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        table, name = sql.Identifier(self.table), sql.Identifier(self.name)
        with flushing.as_owner() as owner:
            row = owner.execute(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = to_regclass(%s) AND conname = %s",
                [self.table, self.name],
            ).fetchone()
            if row is not None:
                drop = sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(table, name)
                back = sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} {}").format(table, name, sql.SQL(row[0]))
            else:
                row = owner.execute(
                    "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = to_regclass(%s)"
                    " AND indexrelid = to_regclass(%s) AND indisunique",
                    [self.table, self.name],
                ).fetchone()
                if row is None:
                    raise Unplantable(f"{self.table} has no constraint {self.name}")
                drop, back = sql.SQL("DROP INDEX {}").format(name), sql.Composed([sql.SQL(row[0])])
            with _swapped(owner, drop, back):
                yield


@dataclass(frozen=True)
class Function:
    """Other words in one function of the database; `times` says how often the old ones stand in it."""

    name: str
    old: str
    new: str
    times: int = 1

    @contextmanager
    def planted(self) -> Iterator[None]:
        with flushing.as_owner() as owner:
            rows = owner.execute(
                "SELECT pg_get_functiondef(p.oid) FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace"
                " AND (p.proname = %s OR p.proname ~ ('^pgtrigger_' || %s || '_[0-9a-f]{5}$'))",
                [self.name, self.name],
            ).fetchall()
            if len(rows) != 1:
                raise Unplantable(f"{len(rows)} functions {self.name}")
            (definition,) = rows[0]
            wrong = _replaced(definition, self.old, self.new, self.name, self.times)
            with _swapped(owner, sql.SQL(wrong), sql.SQL(definition)):
                yield


@dataclass(frozen=True)
class Rule:
    """Other words in the rule of one table, where several rules have one name."""

    table: str
    name: str
    old: str
    new: str
    times: int = 1

    @contextmanager
    def planted(self) -> Iterator[None]:
        with flushing.as_owner() as owner:
            _, _, definition, _ = _trigger(owner, self.table, self.name)
            wrong = _replaced(definition, self.old, self.new, self.name, self.times)
            with _swapped(owner, sql.SQL(wrong), sql.SQL(definition)):
                yield


@dataclass(frozen=True)
class Privilege:
    """A privilege on a table that the serving role should not have."""

    privilege: str
    table: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        from django.conf import settings

        what = sql.SQL(self.privilege), sql.Identifier(self.table), sql.Identifier(settings.LYCHD_SERVING_ROLE)
        with (
            flushing.as_owner() as owner,
            _swapped(
                owner,
                sql.SQL("GRANT {} ON {} TO {}").format(*what),
                sql.SQL("REVOKE {} ON {} FROM {}").format(*what),
            ),
        ):
            yield


@dataclass(frozen=True)
class Together:
    """Several at once, where one fence stands behind another."""

    plantings: tuple[Any, ...]

    @contextmanager
    def planted(self) -> Iterator[None]:
        with ExitStack() as stack:
            for planting in self.plantings:
                stack.enter_context(planting.planted())
            yield


def _trigger(owner: "psycopg.Connection[Any]", table: str, name: str) -> tuple[str, str, str, str | None]:
    rows = owner.execute(
        "SELECT tgname, pg_get_triggerdef(oid), pg_get_functiondef(tgfoid), obj_description(oid, 'pg_trigger')"
        " FROM pg_trigger"
        " WHERE tgrelid = to_regclass(%s) AND NOT tgisinternal"
        " AND (tgname = %s OR tgname ~ ('^pgtrigger_' || %s || '_[0-9a-f]{5}$'))",
        [table, name, name],
    ).fetchall()
    if len(rows) != 1:
        raise Unplantable(f"{len(rows)} triggers {name} on {table}")
    return rows[0]


@contextmanager
def _swapped(
    owner: "psycopg.Connection[Any]", there: sql.SQL | sql.Composed, back: sql.SQL | sql.Composed
) -> Iterator[None]:
    owner.execute(there)
    try:
        yield
    finally:
        # What the test wrote without the fence may be what the fence forbids.
        flushing.flush(owner)
        owner.execute(back)


# A function with a fault in it has no source that Python could find, and may get a second fault.
_with_faults: dict[FunctionType, str] = {}


def _source(function: FunctionType) -> str:
    if function not in _with_faults:
        _with_faults[function] = textwrap.dedent(inspect.getsource(function))
    return _with_faults[function]


def _function(target: str) -> FunctionType:
    path, name = target.split(":")
    found: Any = importlib.import_module(path)
    try:
        for part in name.split("."):
            # Out of the class itself: a class method or a property is wanted as it was written.
            found = found.__dict__[part]
    except KeyError:
        raise Unplantable(f"{target} is not there") from None
    found = getattr(found, "fget", None) or getattr(found, "__func__", found)
    found = inspect.unwrap(found)
    if not isinstance(found, FunctionType):
        raise Unplantable(f"{target} is no function")
    return found


def _replaced(whole: str, old: str, new: str, where: str, times: int = 1) -> str:
    count = whole.count(old)
    if count != times:
        raise Unplantable(f"{where} holds {old!r} {count} times, and it should be {times}")
    return whole.replace(old, new)
