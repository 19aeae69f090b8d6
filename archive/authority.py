"""Who may do what: one question, asked afresh at every check point (specification 5.5, R-L-030..039).

A0 stands before the first archive read, A1 under the hold after every wait, A2 after the commit and right before the
answer leaves. No decision is kept between them. An authorizer that fails or dawdles is `authority_unavailable`, never
an allowance and never a miss. The answer to a refused caller is the same at every point; only the log names the point.
"""

import contextvars
import logging
import re
import threading
import time
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol, Self

import structlog
from django.db import connections
from django.utils.module_loading import import_string

from archive import bindings, limits
from archive.bindings import Binding, TableBindings
from archive.gates import gate
from archive.models import Grant, Principal
from archive.models.host import GrantKey
from archive.refusals import AuthorityRefused, AuthorityUnavailable, NamespaceNotServed
from archive.transactions import hang_up_if_dead, reading, sqlstate_of

log = logging.getLogger(__name__)


class Purpose(StrEnum):
    """What an act is for; a grant is given for one purpose."""

    MEMORY = "memory"
    CURATION = "curation"
    ANSWER = "answer"
    MANAGEMENT = "management"
    DERIVATION = "derivation"


class Action(StrEnum):
    """Everything that can be asked for; one grant allows one action."""

    INTAKE = "intake"
    FLAG = "flag"
    LIST_OWN_INTAKES = "list_own_intakes"
    PROMOTE = "promote"
    ARCHIVE = "archive"
    REVOKE = "revoke"
    REVIEW = "review"
    RECALL = "recall"
    RESOLVE = "resolve"
    SEMANTIC_RECALL = "semantic_recall"
    SEMANTIC_RESOLVE = "semantic_resolve"
    DISCOVER_CONFIGURATION = "discover_configuration"
    INSPECT_INTERFACE = "inspect_interface"
    INSPECT_METADATA = "inspect_metadata"
    INSPECT_RECEIPT = "inspect_receipt"
    MIGRATE_BINDING = "migrate_binding"
    CONFIGURE_NAMESPACE = "configure_namespace"
    GRANT = "grant"
    DISCOVER_GENERATION = "discover_generation"
    REGISTER_GENERATION = "register_generation"
    RETIRE_GENERATION = "retire_generation"
    INSPECT_DERIVATION = "inspect_derivation"
    PREPARE_DERIVATION = "prepare_derivation"
    EXECUTE_DERIVATION = "execute_derivation"


PURPOSE_OF: Final[dict[Action, Purpose]] = {
    Action.INTAKE: Purpose.MEMORY,
    Action.FLAG: Purpose.MEMORY,
    Action.LIST_OWN_INTAKES: Purpose.MEMORY,
    Action.PROMOTE: Purpose.CURATION,
    Action.ARCHIVE: Purpose.CURATION,
    Action.REVOKE: Purpose.CURATION,
    Action.REVIEW: Purpose.CURATION,
    Action.RECALL: Purpose.ANSWER,
    Action.RESOLVE: Purpose.ANSWER,
    Action.SEMANTIC_RECALL: Purpose.ANSWER,
    Action.SEMANTIC_RESOLVE: Purpose.ANSWER,
    Action.DISCOVER_CONFIGURATION: Purpose.MANAGEMENT,
    Action.INSPECT_INTERFACE: Purpose.MANAGEMENT,
    Action.INSPECT_METADATA: Purpose.MANAGEMENT,
    Action.INSPECT_RECEIPT: Purpose.MANAGEMENT,
    Action.MIGRATE_BINDING: Purpose.MANAGEMENT,
    Action.CONFIGURE_NAMESPACE: Purpose.MANAGEMENT,
    Action.GRANT: Purpose.MANAGEMENT,
    Action.DISCOVER_GENERATION: Purpose.MANAGEMENT,
    Action.REGISTER_GENERATION: Purpose.MANAGEMENT,
    Action.RETIRE_GENERATION: Purpose.MANAGEMENT,
    Action.INSPECT_DERIVATION: Purpose.MANAGEMENT,
    Action.PREPARE_DERIVATION: Purpose.DERIVATION,
    Action.EXECUTE_DERIVATION: Purpose.DERIVATION,
}


class Point(StrEnum):
    """The check points of an operation."""

    A0 = "A0"
    A1 = "A1"
    A2 = "A2"
    AX = "AX"
    """Before each call that hands a note or a query to an embedder."""


@dataclass(frozen=True, slots=True)
class AuthorityQuestion:
    """May this subject do this to this object here, for this purpose, under this policy?"""

    subject: str
    namespace: str
    owner: str
    purpose: Purpose
    policy_revision: str
    action: Action
    object_digest: str


class Authorizer(Protocol):
    """Answers authority questions; anything but True refuses, an exception is `authority_unavailable`."""

    def decide_many(self, questions: Sequence[AuthorityQuestion]) -> Sequence[bool]:
        """Return one answer a question, in order, from today's state."""


class GrantAuthorizer:
    """Allows what a current row of `lychd_grant` of an active principal allows; superusers get nothing extra."""

    def decide_many(self, questions: Sequence[AuthorityQuestion]) -> Sequence[bool]:
        held = Grant.held({_grant_key(question) for question in questions})
        return [_grant_key(question) in held for question in questions]


def _grant_key(question: AuthorityQuestion) -> GrantKey:
    return (
        question.subject,
        question.namespace,
        question.owner,
        question.purpose.value,
        question.policy_revision,
        question.action.value,
    )


def authorizer() -> Authorizer:
    """Return the configured authorizer; one that cannot be loaded is `authority_unavailable` (R-L-013)."""
    path = bindings.require_profile()["authorizer"]
    try:
        made: Authorizer = import_string(path)()
    except Exception:
        log.exception("authorizer cannot be loaded", extra={"authorizer": path})
        raise AuthorityUnavailable from None
    return made


def grants_decide() -> bool:
    """Say whether rows of `lychd_grant` alone say where to look: the built-in authorizer, over the host's bindings."""
    return type(authorizer()) is GrantAuthorizer and isinstance(bindings.source(), TableBindings)


def decide(questions: Sequence[AuthorityQuestion], point: Point) -> list[bool]:
    """Ask all questions at one check point; the log has each refusal, and each act that was allowed to its end."""
    if not questions:
        return []
    asked = authorizer()
    started = time.monotonic()
    try:
        answers = _answers(asked, questions)
    except Exception as error:
        unavailable = AuthorityUnavailable()
        unavailable.sqlstate = sqlstate_of(error)
        told = {"point": point.value, "error": type(error).__name__, "sqlstate": unavailable.sqlstate}
        log.error("authority failed", extra=told)
        hang_up_if_dead()
        raise unavailable from None
    late = point is Point.A1 and time.monotonic() - started > limits.AUTHORITY_ANSWER_SECONDS
    if late or len(answers) != len(questions):
        log.error("authority failed", extra={"point": point.value, "error": "late" if late else "miscounted"})
        raise AuthorityUnavailable
    _record(questions, answers, point)
    return [answer is True for answer in answers]


def _record(questions: Sequence[AuthorityQuestion], answers: Sequence[bool], point: Point) -> None:
    """Write down what was asked and answered (5.5): never a text, and for a batch as few lines as it has slices."""
    alike: dict[tuple[bool, str, str, Action], list[str]] = {}
    for question, answer in zip(questions, answers, strict=True):
        kind = (answer is True, question.subject, question.namespace, question.action)
        alike.setdefault(kind, []).append(question.object_digest)
    for (allowed, subject, namespace, action), digests in alike.items():
        # What is allowed now may still be refused later on: A2 is the last word.
        level = logging.INFO if point is Point.A2 or not allowed else logging.DEBUG
        for start in range(0, len(digests), limits.SLICE_ITEMS):
            some = digests[start : start + limits.SLICE_ITEMS]
            log.log(
                level,
                "authority",
                extra={
                    "point": point.value,
                    "allowed": allowed,
                    "subject": subject,
                    "namespace": namespace,
                    "action": action.value,
                    "object_digest": some[0] if len(some) == 1 else some,
                },
            )


_asked_at_once = threading.BoundedSemaphore(limits.AUTHORITY_ASKED_AT_ONCE)


class _Busy(Exception):
    """So many questions are unanswered that no further one is asked."""


def _answers(asked: Authorizer, questions: Sequence[AuthorityQuestion]) -> list[bool]:
    """Ask here, where the grants are read under the time-outs of this session, or one of somebody else's in a thread.

    That one may hang, and nobody can end it: then its thread stays, and the question is given up at the time limit.
    """
    if type(asked).decide_many is GrantAuthorizer.decide_many:
        return list(asked.decide_many(questions))
    if not _asked_at_once.acquire(blocking=False):
        raise _Busy
    future: Future[list[bool]] = Future()
    context = contextvars.copy_context()

    def ask() -> None:
        try:
            future.set_result(list(context.run(asked.decide_many, questions)))
        except BaseException as error:
            future.set_exception(error)
        finally:
            connections.close_all()
            _asked_at_once.release()

    # Not of a pool, which would wait at the end of the process for those that hang.
    threading.Thread(target=ask, name="authorizer", daemon=True).start()
    return future.result(limits.AUTHORITY_ANSWER_SECONDS)


@dataclass(frozen=True, slots=True)
class Question:
    """An authority question in the hands of an operation."""

    asked: AuthorityQuestion

    def about(self, object_digest: str) -> Self:
        """The same question about the object itself, once it has been read under the hold."""
        return replace(self, asked=replace(self.asked, object_digest=object_digest))

    def require(self, point: Point) -> None:
        """Go on only if the answer is yes right now; raises `AuthorityRefused` or `AuthorityUnavailable`."""
        if point is not Point.A0:
            gate(f"{self.asked.action}.{point}")
        if not decide([self.asked], point)[0]:
            raise AuthorityRefused


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who acts in one served namespace, under the binding configured when the act began."""

    subject: str
    binding: Binding

    @classmethod
    def in_namespace(cls, subject: str | None, namespace: str, *, within: Collection[str] | None = None) -> Self:
        """Meet the caller at the door of a namespace; every refusal looks alike (R-L-038, S-089).

        `within` are the namespaces that a token is for, None where there is no such limit (S-368).
        """
        bindings.require_profile()
        # What no namespace can be called is not looked for either.
        if subject is None or not re.match(limits.ADDRESS_KEY_PATTERN, namespace):
            raise AuthorityRefused
        if within is not None and namespace not in within:
            raise AuthorityRefused
        with reading():
            binding = bindings.source().find(namespace)
            if binding is None:
                raise NamespaceNotServed if _holds_some_grant(subject, namespace) else AuthorityRefused
        return cls(subject=subject, binding=binding)

    @property
    def namespace(self) -> str:
        return self.binding.namespace

    def asks(self, action: Action, *, about: str) -> Question:
        """Build the question whether this caller may do `action` about the object with this digest."""
        return Question(
            AuthorityQuestion(
                subject=self.subject,
                namespace=self.binding.namespace,
                owner=self.binding.owner,
                purpose=PURPOSE_OF[action],
                policy_revision=self.binding.policy_revision,
                action=action,
                object_digest=about,
            )
        )


def subject_of_user(user_pk: int | None) -> str | None:
    """Return the subject of a signed-in user, or None when no active principal stands for them (R-L-014)."""
    return None if user_pk is None else _active(user_id=user_pk)


def active_subject(subject: str) -> str | None:
    """Return `subject` if an active principal has it, else None."""
    if not re.match(limits.IDENTIFIER_PATTERN, subject):
        return None
    return _active(subject=subject)


def _active(**which: str | int) -> str | None:
    with reading():
        found = Principal.objects.filter(**which, active=True).values_list("subject", "id").first()
    subject, number = found or (None, None)
    acts_now(number)
    return subject


def acts_now(principal: int | None) -> None:
    """Let every line of the log from here on name who acts, by number; whoever answers a request takes it back."""
    structlog.contextvars.bind_contextvars(principal=principal)


def _holds_some_grant(subject: str, namespace: str) -> bool:
    return Grant.current().filter(subject=subject, namespace_key=namespace).exists()
