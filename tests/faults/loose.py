"""Holds that hold nothing, for faults: the same transactions as in archive/transactions.py without their locks."""

from collections.abc import Iterator
from contextlib import contextmanager

from archive import transactions
from archive.bindings import Binding
from archive.gates import gate
from archive.models import Namespace
from archive.refusals import NamespaceAbsent


@contextmanager
def locked(binding: Binding, *, creating: bool = False) -> Iterator[Namespace]:
    """Read the namespace and hold it against nobody."""
    with transactions._durable("exclusive"):
        if creating:
            transactions._retain(binding)
        yield transactions._admitted(Namespace.objects.filter(key=binding.namespace).first(), binding)
        gate("commit")


@contextmanager
def shared(binding: Binding) -> Iterator[Namespace]:
    """Read the namespace and hold it against nobody."""
    with transactions._durable("shared"):
        yield transactions._admitted(Namespace.objects.filter(key=binding.namespace).first(), binding)
        gate("commit")


@contextmanager
def held(key: str) -> Iterator[Namespace]:
    """Read the namespace and hold it against nobody."""
    with transactions._durable("exclusive"):
        namespace = Namespace.objects.filter(key=key).first()
        if namespace is None:
            raise NamespaceAbsent
        yield namespace
        gate("commit")


@contextmanager
def snapshot(binding: Binding) -> Iterator[Namespace | None]:
    """Read whatever each statement meets, and write if asked to."""
    with transactions._durable("none"):
        namespace = Namespace.objects.filter(key=binding.namespace).first()
        if namespace is not None:
            transactions._compare(namespace, binding)
        yield namespace


@contextmanager
def savepoint() -> Iterator[None]:
    """No savepoint."""
    yield
