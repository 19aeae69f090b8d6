"""What callers ask for, checked before anything is read: the same rules at every door (0.9, 5.1, R-L-058, R-L-093).

Text is never trimmed or normalised. Each request raises one `InvalidRequest` that names everything wrong with it.
"""

import math
import re
import unicodedata
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from archive import canonical, limits
from archive.bindings import Binding
from archive.lifecycle import Reason, State
from archive.refusals import Fault, InvalidRequest, TextTooLarge

_IDENTIFIER = re.compile(limits.IDENTIFIER_PATTERN)
_ADDRESS_KEY = re.compile(limits.ADDRESS_KEY_PATTERN)
_ALPHABET = "letters, digits, '.', '_', ':'"
_BEGINNING = "beginning with a letter or digit"
_REFERENCE = re.compile(limits.REFERENCE_PATTERN)
_MARKS = re.sub("[0-9A-F]+ ?", lambda code: chr(int(code[0], 16)), limits.MARKS)
_ROW_OF_MARKS = re.compile(f"[{_MARKS}]{{{limits.MARKS_IN_A_ROW_MAX + 1}}}")


class Checker:
    """Gathers what is wrong with a request, so that one answer names all of it."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def fault(self, pointer: str, message: str) -> None:
        self.faults.append(Fault(pointer, message))

    def address_key(self, pointer: str, value: str) -> None:
        if not _ADDRESS_KEY.match(value):
            self.fault(
                pointer, "1 to 128 characters: letters, digits, '.', '_', ':' or '-', beginning with a letter or digit"
            )

    def identifier(self, pointer: str, value: str, *, longest: int = limits.IDENTIFIER_MAX) -> None:
        if not _IDENTIFIER.match(value) or len(value) > longest:
            self.fault(
                pointer,
                f"1 to {longest} characters: {_ALPHABET}, '/' or '-', {_BEGINNING}",
            )

    def reference(self, pointer: str, value: str | None) -> None:
        if value is not None and not _REFERENCE.match(value):
            self.fault(
                pointer,
                f"1 to {limits.REFERENCE_MAX} characters: {_ALPHABET}, '/' or '-', {_BEGINNING}; no free text",
            )

    def whole_text(self, pointer: str, value: str) -> None:
        """Refuse what no UTF-8 database can hold: NUL and lone surrogates."""
        if "\x00" in value:
            self.fault(pointer, "holds a NUL character")
        elif not _encodable(value):
            self.fault(pointer, "holds a lone surrogate")

    def within(self, pointer: str, value: int, lowest: int, highest: int) -> None:
        if not lowest <= value <= highest:
            self.fault(pointer, f"a whole number from {lowest} to {highest}")

    def moment(self, pointer: str, value: datetime | None) -> None:
        if value is not None and not _has_utc_form(value):
            self.fault(pointer, "a time with an offset, within the years 1 to 9999 in UTC")

    def settle(self) -> None:
        if self.faults:
            raise InvalidRequest(self.faults)


def _has_utc_form(value: datetime) -> bool:
    if value.tzinfo is None:
        return False
    try:
        value.astimezone(UTC)
    except OverflowError:
        return False
    return True


def well_formed(pointer: str, value: str) -> str:
    """Return a key or request identity that can stand in an address; any other is refused before anything is asked."""
    check = Checker()
    check.address_key(pointer, value)
    check.settle()
    return value


def is_blank(text: str) -> bool:
    """Say whether every character is a separator, a control or a format character (Z, Cc, Cf)."""
    return all(
        unicodedata.category(letter)[0] == "Z" or unicodedata.category(letter) in {"Cc", "Cf"} for letter in text
    )


def has_too_many_marks(text: str) -> bool:
    """Say whether more marks stand in a row than PostgreSQL should put in order while a namespace is held."""
    return not text.isascii() and _ROW_OF_MARKS.search(text) is not None


def _encodable(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Intake:
    """One source revision to take in. `text` is at most 16,384 characters and 65,536 bytes, and not blank."""

    request_id: str
    source_key: str
    source_revision: str
    text: str = field(repr=False)
    asserted_origin: str | None = field(default=None, repr=False)
    kind: str = "note"
    retention_class: str = "standard"
    retain_until: datetime | None = None
    observed_at: datetime | None = None

    def __post_init__(self) -> None:
        check = Checker()
        check.address_key("/request_id", self.request_id)
        check.identifier("/source_key", self.source_key)
        check.identifier("/source_revision", self.source_revision)
        check.identifier("/kind", self.kind, longest=limits.KIND_MAX)
        check.identifier("/retention/class", self.retention_class, longest=limits.KIND_MAX)
        check.reference("/asserted_origin", self.asserted_origin)
        check.moment("/retention/retain_until", self.retain_until)
        check.moment("/observed_at", self.observed_at)
        check.whole_text("/text", self.text)
        if not check.faults and is_blank(self.text):
            check.fault("/text", "holds no visible character")
        if has_too_many_marks(self.text):
            check.fault("/text", f"holds more than {limits.MARKS_IN_A_ROW_MAX} combining marks in a row")
        check.settle()
        for name, moment in (("retain_until", self.retain_until), ("observed_at", self.observed_at)):
            if moment is not None:
                # The same moment: PostgreSQL takes no offset of sixteen hours or more.
                object.__setattr__(self, name, moment.astimezone(UTC))
        if len(self.text) > limits.NOTE_TEXT_MAX_CHARS or self.byte_count > limits.NOTE_TEXT_MAX_BYTES:
            raise TextTooLarge([Fault("/text", f"{len(self.text)} characters, {self.byte_count} bytes")])

    @property
    def byte_count(self) -> int:
        return len(self.text.encode("utf-8"))

    @property
    def words(self) -> int:
        """How many words the slice budget counts for this note."""
        return len(self.text.split())

    def material(self, namespace: str) -> dict[str, Any]:
        """The object whose digest decides between replay and conflict (5.3)."""
        return material(
            self,
            namespace=namespace,
            source_key=self.source_key,
            text_digest=canonical.text_digest(self.text),
            char_count=len(self.text),
            classification=limits.CLASSIFICATION,
        )


class Material(Protocol):
    """What an intake and the note that it led to both say."""

    source_revision: str
    asserted_origin: str | None
    kind: str
    byte_count: int
    retention_class: str
    retain_until: datetime | None
    observed_at: datetime | None


def material(
    of: "Intake | Material", *, namespace: str, source_key: str, text_digest: str, char_count: int, classification: str
) -> dict[str, Any]:
    """Return what a note was taken in as; `archive.truths.material` writes the same in SQL."""
    return {
        "namespace": namespace,
        "source_key": source_key,
        "source_revision": of.source_revision,
        "asserted_origin": of.asserted_origin,
        "kind": of.kind,
        "text_digest": text_digest,
        "char_count": char_count,
        "byte_count": of.byte_count,
        "classification": classification,
        "retention": {
            "class": of.retention_class,
            "retain_until": None if of.retain_until is None else canonical.instant(of.retain_until),
        },
        "observed_at": None if of.observed_at is None else canonical.instant(of.observed_at),
    }


@dataclass(frozen=True, slots=True)
class Transition:
    """One decision about one note, on the version that the decider saw."""

    note_id: UUID
    to_state: State
    expected_version: int
    reason: Reason | None = None

    def __post_init__(self) -> None:
        check = Checker()
        check.within("/expected_version", self.expected_version, 1, 2**31 - 1)
        check.settle()

    def request_digest(self) -> str:
        """The digest that A0 asks about: what is wanted, before anything was read."""
        return canonical.digest_of(canonical.LIFECYCLE_REQUEST, self._fields())

    def object_digest(self, *, text_digest: str, from_state: str) -> str:
        """The digest that A1 and A2 ask about: the note itself and the step."""
        return canonical.digest_of(
            canonical.LIFECYCLE_OBJECT, {**self._fields(), "text_digest": text_digest, "from_state": from_state}
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "note_id": str(self.note_id),
            "to_state": self.to_state.value,
            "expected_version": self.expected_version,
            "reason": None if self.reason is None else self.reason.value,
        }


@dataclass(frozen=True, slots=True)
class LexicalRecall:
    """A question in words, with finite budgets (R-L-093). The query leaves only its digest behind."""

    request_id: str
    query: str = field(repr=False)
    top_k: int = limits.TOP_K_DEFAULT
    char_budget: int = limits.CHAR_BUDGET_DEFAULT
    min_rank: float = limits.MIN_RANK_DEFAULT

    def __post_init__(self) -> None:
        check = Checker()
        check.address_key("/request_id", self.request_id)
        if not 1 <= len(self.query) <= limits.QUERY_MAX_CHARS:
            check.fault("/query", f"1 to {limits.QUERY_MAX_CHARS} characters")
        check.whole_text("/query", self.query)
        check.within("/top_k", self.top_k, limits.TOP_K_MIN, limits.TOP_K_MAX)
        check.within("/char_budget", self.char_budget, limits.CHAR_BUDGET_MIN, limits.CHAR_BUDGET_MAX)
        if not (math.isfinite(self.min_rank) and self.min_rank >= 0):
            check.fault("/min_rank", "a finite number, 0 or more")
        check.settle()

    def digest(self, binding: Binding, subject: str) -> str:
        """The request digest: binding, subject, purpose, policy, query digest and complete budgets (5.3)."""
        return canonical.digest_of(
            canonical.LEXICAL_REQUEST,
            {
                **binding.fields(),
                "subject": subject,
                "purpose": "answer",
                "request_id": self.request_id,
                "policy": limits.LEXICAL_POLICY,
                "text_configuration": binding.text_configuration,
                "query_digest": canonical.query_digest(self.query),
                "min_rank": canonical.real(self.min_rank),
                "top_k": self.top_k,
                "char_budget": self.char_budget,
            },
        )
