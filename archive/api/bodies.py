"""Bodies and query strings into the requests of `archive.requests`: typed, closed, and every fault at once (0.9).

A number is a number, never a string or a boolean; a time has an offset; a UUID has its 36 lower-case characters; a name
that nobody asked for is refused, so that a caller cannot believe in a field that has no effect.

# Note [A text that is too long]
In a batch a malformed item is a fault of the whole request, told with its pointer, and nothing is done. A text over its
bound is well formed: it is the refusal of that one item (413 `text_too_large`) and the others go on. When all are too
long the whole batch is; under `atomic` one is enough for `batch_rolled_back`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from django.http import QueryDict

from archive import batches, canonical, limits
from archive.api import strict
from archive.batches import Answer
from archive.lifecycle import Reason, State
from archive.refusals import BatchRolledBack, Fault, InvalidRequest, TextTooLarge
from archive.requests import Intake, LexicalRecall, Transition

T = TypeVar("T")

UUID_PATTERN: Final = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z"
TIME_PATTERN: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})\Z"
)
_UUID: Final = re.compile(UUID_PATTERN)
_TIME: Final = re.compile(TIME_PATTERN)
_WHOLE: Final = re.compile(r"^[0-9]{1,10}\Z")
_ETAG: Final = re.compile(r'^"([0-9a-f-]{36})\.([1-9][0-9]{0,9})"\Z')

TARGET_OF: Final[dict[str, State]] = {
    "promote": State.PROMOTED,
    "archive": State.ARCHIVED,
    "revoke": State.REVOKED,
}
MISSING: Final = "is required"


class Fields:
    """The fields of one object, taken one by one; `settle` refuses what was wrong and what was not asked for."""

    def __init__(self, given: Mapping[str, Any], at: str = "", faults: list[Fault] | None = None) -> None:
        self._given = given
        self._at = at
        self._asked: set[str] = set()
        self.faults: list[Fault] = [] if faults is None else faults

    def _take(self, name: str, *, required: bool) -> tuple[bool, Any]:
        self._asked.add(name)
        if name not in self._given:
            if required:
                self.wrong(name, MISSING)
            return False, None
        return True, self._given[name]

    def wrong(self, name: str, message: str) -> None:
        """Note what is wrong with one field."""
        self.faults.append(Fault(f"{self._at}/{name}", message))

    def text(self, name: str, default: str = "", *, required: bool = False) -> str:
        """A string, as it is."""
        there, value = self._take(name, required=required)
        if there and not isinstance(value, str):
            self.wrong(name, "a string")
        return value if isinstance(value, str) else default

    def text_or_null(self, name: str) -> str | None:
        """A string or null; absent is null."""
        there, value = self._take(name, required=False)
        if there and value is not None and not isinstance(value, str):
            self.wrong(name, "a string or null")
        return value if isinstance(value, str) else None

    def whole(self, name: str, default: int = 0, *, required: bool = False) -> int:
        """A whole number, written as one: neither 5.0 nor "5" nor true."""
        there, value = self._take(name, required=required)
        if there and type(value) is not int:
            self.wrong(name, "a whole number")
        return value if type(value) is int else default

    def real(self, name: str, default: float) -> float:
        """A number; 1 and 1.0 are the same."""
        there, value = self._take(name, required=False)
        if there and type(value) not in (int, float):
            self.wrong(name, "a number")
        return float(value) if type(value) in (int, float) else default

    def flag(self, name: str) -> bool:
        """True or false; absent is false."""
        there, value = self._take(name, required=False)
        if there and not isinstance(value, bool):
            self.wrong(name, "true or false")
        return value is True

    def moment(self, name: str) -> datetime | None:
        """A time with an offset, or null."""
        there, value = self._take(name, required=False)
        if not there or value is None:
            return None
        found = moment_of(value) if isinstance(value, str) else None
        if found is None:
            self.wrong(name, "a time such as 2025-02-28T12:00:00Z, with an offset and at most six decimals")
        return found

    def uuid(self, name: str) -> UUID:
        """A UUID in its canonical form."""
        there, value = self._take(name, required=True)
        found = uuid_of(value) if isinstance(value, str) else None
        if there and found is None:
            self.wrong(name, "a UUID as 36 lower-case characters")
        return found or UUID(int=0)

    def choice(self, name: str, allowed: Mapping[str, T], *, nullable: bool) -> T | None:
        """One of a closed list; null and absent are None where `nullable` says so."""
        there, value = self._take(name, required=not nullable)
        if not there or (value is None and nullable):
            return None
        found = allowed.get(value) if isinstance(value, str) else None
        if found is None:
            self.wrong(name, f"one of {', '.join(allowed)}")
        return found

    def inner(self, name: str) -> "Fields":
        """An object inside this one; absent is empty."""
        there, value = self._take(name, required=False)
        if there and not isinstance(value, dict):
            self.wrong(name, "an object")
        return Fields(value if isinstance(value, dict) else {}, f"{self._at}/{name}", self.faults)

    def items(self, most: int) -> list["Fields"]:
        """The objects of the array `items`, each with its own pointer."""
        there, value = self._take("items", required=True)
        if there and (not isinstance(value, list) or not 1 <= len(value) <= most):
            self.wrong("items", f"an array of 1 to {most} objects")
            value = []
        found = []
        for place, item in enumerate(value or []):
            if not isinstance(item, dict):
                self.wrong(f"items/{place}", "an object")
            found.append(Fields(item if isinstance(item, dict) else {}, f"{self._at}/items/{place}", self.faults))
        return found

    def close(self) -> None:
        """Note every name that nobody asked for."""
        known = ", ".join(sorted(self._asked)) or "none"
        for name in self._given:
            if len(self.faults) >= strict.FAULTS_MAX:
                # A body can hold a million names, and no answer shows more.
                return
            if name not in self._asked:
                self.faults.append(Fault(*strict.placed(self._at, name, f"is not a field here; there are: {known}")))

    def settle(self) -> None:
        """Refuse if anything was wrong."""
        if self.faults:
            raise InvalidRequest(self.faults[: strict.FAULTS_MAX])

    def build(self, make: Callable[[], T]) -> T | None:
        """Make a request of well-typed fields; its own faults are placed where this object stands."""
        if any(fault.pointer.startswith(f"{self._at}/") or fault.pointer == self._at for fault in self.faults):
            return None
        try:
            return make()
        except InvalidRequest as refusal:
            self.faults += [Fault(self._at + fault.pointer, fault.message) for fault in refusal.faults]
            return None


def moment_of(text: str) -> datetime | None:
    """Read a time with an offset, or return None for anything that is none or has no UTC form."""
    if not _TIME.match(text):
        return None
    try:
        found = datetime.fromisoformat(text)
        canonical.instant(found)
    except (ValueError, OverflowError):
        return None
    return found


def uuid_of(text: str) -> UUID | None:
    """Read a UUID in canonical form; any version, since identities are opaque."""
    return UUID(text) if _UUID.match(text) else None


# --- requests --------------------------------------------------------------------------------------------------------


def intake(body: Mapping[str, Any]) -> Intake:
    """Read one intake; raises `InvalidRequest` or `TextTooLarge`."""
    fields = Fields(body)
    wanted = _intake(fields)
    fields.settle()
    if wanted is None:
        raise InvalidRequest
    return wanted


def _intake(fields: Fields) -> Intake | None:
    retention = fields.inner("retention")
    given: dict[str, Any] = {
        "request_id": fields.text("request_id", required=True),
        "source_key": fields.text("source_key", required=True),
        "source_revision": fields.text("source_revision", required=True),
        "text": fields.text("text", required=True),
        "asserted_origin": fields.text_or_null("asserted_origin"),
        "kind": fields.text("kind", "note"),
        "retention_class": retention.text("class", "standard"),
        "retain_until": retention.moment("retain_until"),
        "observed_at": fields.moment("observed_at"),
    }
    retention.close()
    fields.close()
    return fields.build(lambda: Intake(**given))


@dataclass(frozen=True, slots=True)
class IntakeBatch:
    """Up to 500 intakes in the caller's order; None stands where a text was over its bound."""

    items: tuple[Intake | None, ...]
    atomic: bool

    @property
    def wanted(self) -> list[Intake]:
        """The items that can be asked for."""
        return [item for item in self.items if item is not None]

    def in_order(self, answers: Sequence[Answer[T]]) -> list[Answer[T]]:
        """Put the refusal of each overlong text back between the answers of the others."""
        waiting = iter(answers)
        return [Answer(refusal=TextTooLarge()) if item is None else next(waiting) for item in self.items]


def intake_batch(body: Mapping[str, Any]) -> IntakeBatch:
    """Read a batch of intakes; see Note [A text that is too long]."""
    fields = Fields(body)
    atomic = fields.flag("atomic")
    items: list[Intake | None] = []
    oversize: list[Fault] = []
    for item in fields.items(limits.BATCH_INTAKE_MAX):
        try:
            items.append(_intake(item))
        except TextTooLarge as refusal:
            items.append(None)
            oversize += [Fault(f"/items/{len(items) - 1}{fault.pointer}", fault.message) for fault in refusal.faults]
    fields.close()
    fields.settle()
    if len(oversize) == len(items):
        raise TextTooLarge(oversize[: strict.FAULTS_MAX])
    if oversize and atomic:
        refused: dict[int, Answer[None]] = {
            place: Answer(refusal=TextTooLarge()) for place, item in enumerate(items) if item is None
        }
        raise BatchRolledBack(extra={"items": batches.told(refused, len(items))})
    return IntakeBatch(tuple(items), atomic)


def decision(body: Mapping[str, Any], note_id: UUID, to_state: State, if_match: str | None) -> Transition:
    """Read one decision. `If-Match` with the record's tag says the same as `expected_version`; one of them must."""
    fields = Fields(body)
    given = "expected_version" in body
    version = fields.whole("expected_version", required=if_match is None)
    reason = fields.choice("reason", {one.value: one for one in Reason}, nullable=True)
    fields.close()
    if if_match is not None:
        tagged = _tagged_version(if_match, note_id)
        if tagged is None:
            fields.faults.append(Fault("", "an If-Match header with the one entity tag of this very record"))
        elif given and tagged != version:
            fields.wrong("expected_version", "differs from the version in If-Match")
        else:
            version = tagged
    wanted = fields.build(lambda: Transition(note_id, to_state, version, reason))
    fields.settle()
    if wanted is None:
        raise InvalidRequest
    return wanted


def _tagged_version(if_match: str, note_id: UUID) -> int | None:
    found = _ETAG.match(if_match.strip())
    return int(found[2]) if found and found[1] == str(note_id) else None


def transition_batch(body: Mapping[str, Any]) -> tuple[list[Transition], bool]:
    """Read up to 200 decisions and whether they stand or fall together."""
    fields = Fields(body)
    atomic = fields.flag("atomic")
    wanted = [_transition(item) for item in fields.items(limits.BATCH_TRANSITION_MAX)]
    fields.close()
    fields.settle()
    return [one for one in wanted if one is not None], atomic


def _transition(fields: Fields) -> Transition | None:
    note_id = fields.uuid("note_id")
    to_state = fields.choice("action", TARGET_OF, nullable=False)
    version = fields.whole("expected_version", required=True)
    reason = fields.choice("reason", {one.value: one for one in Reason}, nullable=True)
    fields.close()
    return None if to_state is None else fields.build(lambda: Transition(note_id, to_state, version, reason))


def recall(body: Mapping[str, Any]) -> LexicalRecall:
    """Read a lexical recall."""
    fields = Fields(body)
    given: dict[str, Any] = {
        "request_id": fields.text("request_id", required=True),
        "query": fields.text("query", required=True),
        "top_k": fields.whole("top_k", limits.TOP_K_DEFAULT),
        "char_budget": fields.whole("char_budget", limits.CHAR_BUDGET_DEFAULT),
        "min_rank": fields.real("min_rank", limits.MIN_RANK_DEFAULT),
    }
    fields.close()
    wanted = fields.build(lambda: LexicalRecall(**given))
    fields.settle()
    if wanted is None:
        raise InvalidRequest
    return wanted


def flag(body: Mapping[str, Any]) -> Reason:
    """Read why a note is marked."""
    fields = Fields(body)
    reason = fields.choice("reason", {one.value: one for one in Reason}, nullable=False)
    fields.close()
    fields.settle()
    if reason is None:
        raise InvalidRequest
    return reason


def nothing(body: Mapping[str, Any]) -> None:
    """Read a body that says nothing."""
    fields = Fields(body)
    fields.close()
    fields.settle()


# --- addresses and query strings -------------------------------------------------------------------------------------


def note_id(text: str) -> UUID:
    """Read the note's identity in an address."""
    found = uuid_of(text)
    if found is None:
        raise InvalidRequest([Fault("/note_id", "a UUID as 36 lower-case characters")])
    return found


def request_id(text: str) -> str:
    """Read the request identity in an address."""
    if not re.match(limits.ADDRESS_KEY_PATTERN, text):
        raise InvalidRequest([Fault("/request_id", "1 to 128 characters without a slash, as it was sent")])
    return text


def closed(given: QueryDict, allowed: Sequence[str]) -> None:
    """Refuse a query string with an unknown or repeated name: text and tokens never travel there."""
    faults = []
    for name, values in given.lists():
        if name not in allowed:
            known = ", ".join(allowed) or "none"
            faults.append(Fault(*strict.placed("", name, f"is not taken in the query string; there are: {known}")))
        elif len(values) > 1:
            faults.append(Fault(f"/{name}", "given once"))
        elif "\x00" in values[0]:
            faults.append(Fault(f"/{name}", "holds a NUL character"))
    if faults:
        raise InvalidRequest(faults[: strict.FAULTS_MAX])


def limit(given: QueryDict) -> int:
    """Read how many rows a page may have."""
    text = given.get("limit")
    if text is None:
        return limits.PAGE_SIZE_DEFAULT
    if not _WHOLE.match(text):
        raise InvalidRequest([Fault("/limit", f"a whole number from 1 to {limits.PAGE_SIZE_MAX}")])
    return int(text)


def state(given: QueryDict) -> State | None:
    """Read the state that a list is narrowed to."""
    text = given.get("state")
    if text is None:
        return None
    try:
        return State(text)
    except ValueError:
        raise InvalidRequest([Fault("/state", f"one of {', '.join(State)}")]) from None


def source_key(given: QueryDict) -> str | None:
    """Read the source that a list is narrowed to."""
    text = given.get("source_key")
    if text is not None and not re.match(limits.IDENTIFIER_PATTERN, text):
        raise InvalidRequest([Fault("/source_key", "the key of a source")])
    return text


def mine(given: QueryDict) -> None:
    """Require `?mine`, so that a list of everybody's intakes is never asked for by mistake."""
    if given.get("mine") not in ("", "true"):
        raise InvalidRequest([Fault("/mine", "given, and empty or true: only your own intakes are listed here")])
