"""The one message of the worker: identities and versions, never a text (specification 5.15, R-L-175, S-187).

It is delivered at most once and never repeated by itself. A lost message loses nothing: its row stays `prepared`, and
one explicit act sends another. A second delivery of the same message finds the row version gone and ends there.
"""

import logging
from uuid import UUID

from celery import shared_task
from kombu.exceptions import OperationalError

from archive.authority import Caller, active_subject
from archive.gates import gate
from archive.refusals import Refusal
from semantic.operations.attempts import Attempt, run_attempt
from semantic.refusals import CoordinationUnavailable

log = logging.getLogger(__name__)


@shared_task(  # type: ignore[untyped-decorator]
    name="semantic.run_derivation_attempt", max_retries=0, acks_late=False, ignore_result=True
)
def run_derivation_attempt(
    namespace: str,
    derivation_id: str,
    expected_row_version: int,
    retry: bool,
    subject: str,
    correlation_id: str,
) -> str | None:
    """Run one attempt for the subject who asked for it; what it is refused for stands in the log and on the row."""
    gate("attempt.received")
    level, event, code, sqlstate = logging.INFO, "attempt complete", None, None
    try:
        caller = Caller.in_namespace(active_subject(subject), namespace)
        run_attempt(caller, Attempt(UUID(derivation_id), expected_row_version, retry))
    except Refusal as refusal:
        level, event, code, sqlstate = logging.WARNING, "attempt refused", refusal.code, refusal.sqlstate
    log.log(
        level,
        event,
        extra={
            "namespace": namespace,
            "derivation": derivation_id,
            "correlation_id": correlation_id,
            "code": code,
            "sqlstate": sqlstate,
        },
    )
    return code


def send(caller: Caller, attempt: Attempt, correlation_id: str) -> None:
    """Ask the worker for one attempt; changes no row, and refuses where the broker does not answer."""
    try:
        run_derivation_attempt.apply_async(
            kwargs={
                "namespace": caller.namespace,
                "derivation_id": str(attempt.derivation_id),
                "expected_row_version": attempt.expected_row_version,
                "retry": attempt.retry,
                "subject": caller.subject,
                "correlation_id": correlation_id,
            },
            retry=False,
        )
    except (OperationalError, OSError):
        raise CoordinationUnavailable from None
