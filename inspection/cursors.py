"""Pages and their cursors: keyset paging over unique keys, so that nothing is skipped or repeated (R-L-132).

A cursor is the base64 of the canonical JSON of the last key and a digest of the list, its filter, the namespace and the
subject. One that belongs to anything else, or was touched, is a wrong request.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from archive import canonical, limits
from archive.authority import Caller
from archive.refusals import Fault, InvalidRequest

T = TypeVar("T")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list and the cursor of the next, None on the last."""

    items: tuple[T, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """How much of a list, from where. A cursor belongs to one list under one filter of one namespace and caller."""

    limit: int = limits.PAGE_SIZE_DEFAULT
    cursor: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= limits.PAGE_SIZE_MAX:
            raise InvalidRequest([Fault("/limit", f"a whole number from 1 to {limits.PAGE_SIZE_MAX}")])
        if self.cursor is not None and not self.cursor.isascii():
            raise _wrong()

    def as_keys(self) -> dict[str, Any]:
        return {"limit": self.limit, "cursor": self.cursor}


@dataclass(frozen=True, slots=True)
class List:
    """One list of one namespace under one filter, as one subject sees it: what its cursors are bound to."""

    digest: str

    @classmethod
    def of(cls, caller: Caller, filters: dict[str, Any]) -> "List":
        return cls(canonical.lookup_digest("page", caller.namespace, {**filters, "subject": caller.subject}))

    @classmethod
    def of_subject(cls, subject: str, filters: dict[str, Any]) -> "List":
        """The same of a list over all namespaces; no namespace is called so."""
        return cls(canonical.lookup_digest("page", "*", {**filters, "subject": subject}))

    def after_moment(self, page: PageRequest) -> tuple[datetime, UUID] | None:
        """Open a cursor over (time, id); None on the first page."""
        if page.cursor is None:
            return None
        micros, last_id = self._open(page.cursor, (int, str))
        try:
            return _EPOCH + timedelta(microseconds=micros), UUID(last_id)
        except (ValueError, OverflowError):
            raise _wrong() from None

    def after_number(self, page: PageRequest) -> int | None:
        """Open a cursor over a rising number; None on the first page."""
        if page.cursor is None:
            return None
        (number,) = self._open(page.cursor, (int,))
        return int(number)

    def after_key(self, page: PageRequest) -> str | None:
        """Open a cursor over keys of namespaces; None on the first page."""
        if page.cursor is None:
            return None
        (key,) = self._open(page.cursor, (str,))
        return str(key)

    def at_key(self, key: str) -> str:
        """Seal the place of a namespace in a list over keys."""
        return self._seal([key])

    def at_moment(self, moment: datetime, row_id: UUID) -> str:
        """Seal the place of a row in a list over (time, id)."""
        return self._seal([(moment - _EPOCH) // timedelta(microseconds=1), str(row_id)])

    def at_number(self, number: int) -> str:
        """Seal the place of a row in a list over a rising number."""
        return self._seal([number])

    def _seal(self, key: Sequence[int | str]) -> str:
        return base64.urlsafe_b64encode(canonical.encode([*key, self.digest])).decode("ascii").rstrip("=")

    def _open(self, cursor: str, shape: Sequence[type]) -> list[Any]:
        try:
            padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
            parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (binascii.Error, ValueError, RecursionError):
            raise _wrong() from None
        if not isinstance(parts, list) or len(parts) != len(shape) + 1 or parts[-1] != self.digest:
            raise _wrong()
        key = parts[:-1]
        if any(type(part) is not kind for part, kind in zip(key, shape, strict=True)):
            raise _wrong()
        try:
            if self._seal(key) != cursor:
                raise _wrong()
        except canonical.NotCanonical:
            raise _wrong() from None
        return key


def _wrong() -> InvalidRequest:
    return InvalidRequest([Fault("/cursor", "a cursor that this very list gave, unchanged")])
