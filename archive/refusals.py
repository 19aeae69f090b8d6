"""Every no of the archive, as a type (specification 5.13): the closed list that all doors share.

A refusal changed nothing and tells nothing about what exists. Its kind decides the HTTP status and the exit code, its
code is what clients branch on, its `detail` says the next step. docs/errors.md is generated from these classes.
A miss is not in this list: it is an answer with an empty selection.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from archive.outages import Outage


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a request: where (a JSON pointer, or an option's name) and what is allowed there."""

    pointer: str
    message: str

    def as_json(self) -> dict[str, str]:
        return {"pointer": self.pointer, "message": self.message}


class Refusal(Exception):
    """A no that a caller is meant to read. Anything else that raises is a bug."""

    status: ClassVar[int]
    exit_code: ClassVar[int] = 2
    code: ClassVar[str]
    title: str
    detail: str
    retry_after: int | None = None
    """Seconds after which the same request makes sense again."""
    sqlstate: str | None = None
    """What the database said, for the log and the operator."""

    def __init__(self, faults: Sequence[Fault] = (), *, extra: dict[str, Any] | None = None) -> None:
        super().__init__(self.code if hasattr(self, "code") else type(self).__name__)
        self.faults = tuple(faults)
        self.extra = dict(extra or {})


class Invalid(Refusal):
    """The request itself is wrong; the same request will always be wrong."""

    status = 400


class Unauthenticated(Refusal):
    """Nobody known is asking."""

    status = 401


class Forbidden(Refusal):
    """The caller may not, whatever exists."""

    status = 403


class Absent(Refusal):
    """What an authorised caller asked for is not there."""

    status = 404


class Conflict(Refusal):
    """The archive stands differently from what the request supposes."""

    status = 409
    exit_code = 3


class Oversize(Refusal):
    """More than a bound allows."""

    status = 413


class Limited(Refusal):
    """Too often; later is fine."""

    status = 429
    exit_code = 4


class Broken(Refusal):
    """Retained material contradicts its own digest: stop and look."""

    status = 500
    exit_code = 4


class Unavailable(Refusal):
    """Something the archive needs does not answer; nothing was decided."""

    status = 503
    exit_code = 4
    retry_after = 5


# --- 400 -------------------------------------------------------------------------------------------------------------


class InvalidRequest(Invalid):
    code = "invalid_request"
    title = "The request is not well formed"
    detail = "Nothing was changed. Correct what `errors` names and send the request again."


# --- 401, 403 --------------------------------------------------------------------------------------------------------


class NotAuthenticated(Unauthenticated):
    code = "unauthenticated"
    title = "Sign in or send a token"
    detail = "Send `Authorization: Bearer <token>` with a token that is neither expired nor revoked, or sign in."


class AuthorityRefused(Forbidden):
    code = "authority_refused"
    title = "Not allowed"
    detail = (
        "Nobody has granted you this action here, or the grant has ended. Ask an operator for it; "
        "`lychd grant` gives one."
    )


class CsrfFailed(Forbidden):
    code = "csrf_failed"
    title = "The form's security token does not match"
    detail = "Reload the page and send the form again."


# --- 404 -------------------------------------------------------------------------------------------------------------


class NotFound(Absent):
    code = "not_found"
    title = "No such address"
    detail = "Compare the address with the API description at `/api/v1/docs`. No address of it ends with a slash."


class NamespaceNotServed(Absent):
    code = "namespace_not_served"
    title = "This namespace is not served"
    detail = "It is disabled or not configured. An operator can configure it with `lychd namespace configure`."


class NamespaceAbsent(Absent):
    code = "namespace_absent"
    title = "Nothing was ever taken in here"
    detail = "The first admitted intake makes the namespace. Take a note in, then ask again."


class RecordAbsent(Absent):
    code = "record_absent"
    title = "No such record"
    detail = "Check the identifier; the list of notes shows what there is."


class ReceiptAbsent(Absent):
    code = "receipt_absent"
    title = "No such receipt"
    detail = "Check the request identity; recall again with a new one to get a new receipt."


# --- 405, 406, 415, 413, 429 -----------------------------------------------------------------------------------------


class MethodNotAllowed(Invalid):
    status = 405
    code = "method_not_allowed"
    title = "This address does not take that method"
    detail = "The `Allow` header names the methods that it takes."


class NotAcceptable(Invalid):
    status = 406
    code = "not_acceptable"
    title = "Only JSON is given here"
    detail = "Send `Accept: application/json`, or no Accept header."


class UnsupportedMedia(Invalid):
    status = 415
    code = "unsupported_media"
    title = "Only JSON in UTF-8 is taken here"
    detail = "Send `Content-Type: application/json` without a charset other than utf-8 and without compression."


class TextTooLarge(Oversize):
    code = "text_too_large"
    title = "The note is too long"
    detail = (
        "A note has at most 16,384 characters and 65,536 bytes in UTF-8. Split it by meaning and take in each part."
    )


class BodyTooLarge(Oversize):
    code = "body_too_large"
    title = "The request is too large"
    detail = "A request has at most 256 KiB, a batch at most 8 MiB. Send fewer items at a time."


class TooManyRequests(Limited):
    retry_after = 1
    code = "limited"
    title = "Too many requests"
    detail = "Wait as long as the `Retry-After` header says, then go on."


# --- 409 -------------------------------------------------------------------------------------------------------------


class RequestConflict(Conflict):
    code = "request_conflict"
    title = "This request identity was used for another request"
    detail = "A request identity stays bound to its first request. Use a new one for a new request."


class SourceRevisionConflict(Conflict):
    code = "source_revision_conflict"
    title = "This source revision was taken in with other material"
    detail = "A revision never changes. Take the new material in under a new revision."


class SourceRevisionRevoked(Conflict):
    code = "source_revision_revoked"
    title = "This source revision was revoked"
    detail = "A revoked revision cannot come back. If its content is wanted after all, take it in under a new revision."


class CandidatesWaiting(Conflict):
    code = "candidates_waiting"
    title = "As many of your candidates wait as may"
    detail = (
        "Send it again once a curator has promoted or revoked some of them. "
        "An operator may allow more with LYCHD_WAITING_CANDIDATES_MAX."
    )


class LifecycleVersionConflict(Conflict):
    code = "lifecycle_version_conflict"
    title = "The note has moved since you read it"
    detail = "Read the record, look at what changed, and decide again with the version that you then see."


class IllegalTransition(Conflict):
    code = "illegal_transition"
    title = "A note in this state cannot go there"
    detail = (
        "Candidates can be promoted or revoked, promoted notes archived or revoked, archived notes revoked. "
        "Read the record to see its state."
    )


class BindingMismatch(Conflict):
    code = "binding_mismatch"
    title = "The namespace is retained under another binding"
    detail = "Owner, policy revision or text configuration changed. An operator has to run `lychd namespace migrate`."


class SelectionStale(Conflict):
    code = "selection_stale"
    title = "The selection no longer stands"
    detail = "At least one selected note was withdrawn, replaced or changed. Recall again with a new request identity."


class ReceiptBindingMismatch(Conflict):
    code = "receipt_binding_mismatch"
    title = "The receipt was written for another caller or binding"
    detail = "Recall for yourself, under today's binding, with a new request identity."


class ReceiptSchemaMismatch(Conflict):
    code = "receipt_schema_mismatch"
    title = "The receipt is of another kind of recall"
    detail = "Resolve it through the address of the recall that wrote it."


class SecondPersonRequired(Conflict):
    code = "second_person_required"
    title = "Somebody else has to promote this note"
    detail = "This namespace asks for a second person: whoever took a note in cannot promote it."


class BatchRolledBack(Conflict):
    code = "batch_rolled_back"
    title = "One item was refused, so nothing was done"
    detail = "`items` names what each item met. Correct the refused ones, or send the batch without `atomic`."


# --- 500 -------------------------------------------------------------------------------------------------------------


class IntegrityFailure(Broken):
    code = "integrity_failure"
    title = "A retained record does not match its digest"
    detail = "Do not use it. An operator should run `lychd doctor` and compare with a backup."


class Internal(Broken):
    code = "internal"
    title = "A fault of the archive"
    detail = "Report it with the correlation id; the log holds the same id."


# --- 503 -------------------------------------------------------------------------------------------------------------


class ArchiveTimeout(Unavailable):
    # Whoever waited too long for a namespace that others held may come again as soon as they are served.
    retry_after = 1
    code = "archive_timeout"
    title = "The archive took too long, nothing was changed"
    detail = "Send the same request again in a moment; with the same identity it cannot happen twice."


class StorageUnavailable(Unavailable):
    code = "storage_unavailable"
    title = "The database does not answer"
    detail = "Nothing was decided. Try again; if it lasts, an operator should run `lychd doctor`."

    @classmethod
    def by(cls, outage: Outage) -> Self:
        """Refuse for a cause that is known, in its words."""
        made = cls()
        made.title, made.retry_after = outage.title, outage.retry_after
        made.detail = f"Nothing was decided. {outage.fix}"
        return made


class OutcomeUnknown(Unavailable):
    retry_after = 1
    code = "outcome_unknown"
    title = "The answer to the commit was lost"
    detail = "It may have happened. Send the same request with the same identity, or read the record, to learn which."


class AuthorityUnavailable(Unavailable):
    code = "authority_unavailable"
    title = "Authority could not be asked"
    detail = "Nothing was changed or shown. Try again; if it lasts, an operator should look at the authorizer."


class CapabilityNotReady(Unavailable):
    code = "capability_not_ready"
    title = "What this needs is not ready"
    detail = "The words or vectors here are being rebuilt, or the embedding model cannot be loaded. Ask again later."


class ProfileOff(Unavailable):
    code = "profile_off"
    title = "The archive is switched off"
    detail = "Set `LYCHD_ARCHIVE_PROFILE=local-public-notes@1`, or run `lychd init`, which sets it for you."


def every() -> Iterator[type[Refusal]]:
    """Yield each refusal that has a code, in the order of this page."""
    waiting: list[type[Refusal]] = [Refusal]
    found: list[type[Refusal]] = []
    while waiting:
        kind = waiting.pop(0)
        if "code" in kind.__dict__:
            found.append(kind)
        waiting.extend(kind.__subclasses__())
    yield from sorted(found, key=lambda kind: (kind.status, kind.code))
