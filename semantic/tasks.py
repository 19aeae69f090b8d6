"""The one message of the worker: identities and versions, never a text (specification 5.15, R-L-175, S-187).

It names the subject that is acted for, so it is signed with a key derived from the service's own: whoever can only
write to the broker acts as nobody. It is delivered at most once and never repeated by itself. A lost message loses
nothing: its row stays `prepared`, and one explicit act sends another. A second delivery of the same message finds the
row version gone and ends there.
"""

import logging
import re
from typing import Any, Final
from uuid import UUID

from celery import shared_task
from django.core.signing import BadSignature, Signer
from kombu.exceptions import OperationalError

from archive import canonical
from archive.authority import Caller, active_subject
from archive.gates import gate
from archive.refusals import Refusal
from semantic.operations.attempts import Attempt, run_attempt
from semantic.refusals import CoordinationUnavailable

log = logging.getLogger(__name__)

NAME: Final = "semantic.run_derivation_attempt"
_SIGNATURE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def message(namespace: str, subject: str, attempt: Attempt, correlation_id: str) -> dict[str, Any]:
    """Write the message for one attempt and sign it."""
    told = {
        "namespace": namespace,
        "derivation_id": str(attempt.derivation_id),
        "expected_row_version": attempt.expected_row_version,
        "retry": attempt.retry,
        "subject": subject,
        "correlation_id": correlation_id,
    }
    return {**told, "signature": Signer(salt=NAME).signature(_signed(told))}


def _signed(told: dict[str, Any]) -> str:
    return canonical.encode({"task": NAME, "arguments": told}).decode("utf-8")


def _is_ours(told: dict[str, Any], signature: object) -> bool:
    """Say whether the service signed exactly this, with the key of today or one that it still accepts."""
    if not isinstance(signature, str) or not _SIGNATURE.fullmatch(signature):
        return False
    try:
        Signer(salt=NAME).unsign(f"{_signed(told)}:{signature}")
    except (BadSignature, canonical.NotCanonical, RecursionError):
        return False
    return True


@shared_task(  # type: ignore[untyped-decorator]
    name=NAME, max_retries=0, acks_late=False, ignore_result=True, typing=False
)
def run_derivation_attempt(*unnamed: object, signature: object = None, **told: Any) -> str | None:
    """Run one attempt for the subject who asked for it; what it is refused for stands in the log and on the row."""
    gate("attempt.received")
    if unnamed or not _is_ours(told, signature):
        # Nothing of it is repeated: nobody knows who wrote it.
        log.error("message refused: this service did not sign it")
        return None
    return _run(**told)


def _run(
    namespace: str, derivation_id: str, expected_row_version: int, retry: bool, subject: str, correlation_id: str
) -> str | None:
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
            kwargs=message(caller.namespace, caller.subject, attempt, correlation_id), retry=False
        )
    except (OperationalError, OSError):
        raise CoordinationUnavailable from None
