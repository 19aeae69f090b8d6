"""The cast of the tests and the ways to bring a note into a state: always through the operations that lead there.

alice curates, wanda writes, bob recalls, ivy inspects, otto operates, charlie has a principal and no grant.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from archive.authority import Action, AuthorityQuestion, Caller
from archive.bindings import Binding
from archive.lifecycle import Reason, State
from archive.operations import host
from archive.operations.intake import Admitted, intake
from archive.operations.recall import Recalled, recall
from archive.operations.transition import Moved, archive, promote, revoke
from archive.records import NoteRecord
from archive.requests import Intake, LexicalRecall, Transition

GARDEN = "garden"
OWNER = "estate"
POLICY = "policy-1"

ROLES: dict[str, tuple[str, ...]] = {
    "alice": ("curator", "writer", "recaller"),
    "wanda": ("writer",),
    "bob": ("recaller",),
    "ivy": ("inspector",),
    "otto": ("operator",),
    "charlie": (),
}

_numbers = itertools.count(1)


def fresh(prefix: str = "r") -> str:
    """Return an identity nobody has used in this run."""
    return f"{prefix}-{next(_numbers)}"


@dataclass(frozen=True)
class Garden:
    """One configured namespace and everybody who acts in it."""

    binding: Binding

    def caller(self, subject: str) -> Caller:
        """Meet the namespace as this subject, at its door."""
        return Caller.in_namespace(subject, self.binding.namespace)


def plant(namespace: str = GARDEN, **options: object) -> Garden:
    """Configure a namespace and give the cast its roles in it."""
    binding = host.configure_namespace(
        namespace,
        owner=OWNER,
        policy_revision=POLICY,
        by="host:tests",
        **options,  # type: ignore[arg-type]
    )
    for subject, roles in ROLES.items():
        host.map_principal(subject)
        if roles:
            host.grant(subject, binding, host.actions_of(roles), by="host:tests")
    return Garden(binding)


def wanted(
    text: str = "Roses want morning sun.", *, source: str = "roses", revision: str = "1", **more: object
) -> Intake:
    """Build an intake; `request_id` is fresh unless given."""
    fields = {"request_id": fresh(), "source_key": source, "source_revision": revision, "text": text, **more}
    return Intake(**fields)  # type: ignore[arg-type]


def admitted(caller: Caller, text: str = "Roses want morning sun.", **more: object) -> NoteRecord:
    """Take a note in and return its record."""
    answer: Admitted = intake(caller, wanted(text, **more))  # type: ignore[arg-type]
    return answer.note


def step(note: NoteRecord, state: State, reason: Reason | None = None, *, expected: int | None = None) -> Transition:
    """Build the decision to bring this note, as it was seen, into a state."""
    return Transition(note.id, state, note.lifecycle_version if expected is None else expected, reason)


def promoted(caller: Caller, text: str = "Roses want morning sun.", **more: object) -> NoteRecord:
    """Take a note in and promote it."""
    moved: Moved = promote(caller, step(admitted(caller, text, **more), State.PROMOTED))
    return moved.note


def archived(caller: Caller, text: str = "Roses want morning sun.", **more: object) -> NoteRecord:
    """Take a note in, promote and archive it."""
    return archive(caller, step(promoted(caller, text, **more), State.ARCHIVED)).note


def revoked(caller: Caller, text: str = "Roses want morning sun.", **more: object) -> NoteRecord:
    """Take a note in, promote and revoke it."""
    return revoke(caller, step(promoted(caller, text, **more), State.REVOKED)).note


def asked(caller: Caller, query: str = "roses sun", **more: object) -> Recalled:
    """Recall with a fresh identity unless one is given."""
    return recall(caller, LexicalRecall(**{"request_id": fresh("q"), "query": query, **more}))  # type: ignore[arg-type]


@dataclass
class ScriptedAuthorizer:
    """Answers as its script says, point after point, and remembers every question; then goes on with the last answer.

    An entry is True, False, or an exception to raise. Put in place by the fixture `scripted`.
    """

    script: ClassVar[list[object]] = [True]
    asked: ClassVar[list[AuthorityQuestion]] = []
    calls: ClassVar[int] = 0
    _unused: None = field(default=None, repr=False)

    def decide_many(self, questions: Sequence[AuthorityQuestion]) -> Sequence[bool]:
        cls = type(self)
        answer = cls.script[min(cls.calls, len(cls.script) - 1)]
        cls.calls += 1
        cls.asked.extend(questions)
        if isinstance(answer, BaseException):
            raise answer
        return [answer is True] * len(questions)


ALL_ACTIONS = tuple(Action)
