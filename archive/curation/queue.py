"""Going through the queue: its filters in an address, what was put off for this session, who else is on a candidate.

None of it is kept in the archive: what is put off lives in the session, a claim two minutes in the cache, and where
either is lost nothing but comfort is.
"""

import logging
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.core.cache import cache
from django.http import HttpRequest, QueryDict
from django.urls import reverse

from archive.authority import Caller
from archive.operations.desk import Age, Alike, Queue
from archive.refusals import Fault, InvalidRequest
from archive.requests import Checker

log = logging.getLogger(__name__)

FILTERS: Final = ("source", "proposer", "age", "similar")
CLAIM_SECONDS: Final = 120
PUT_OFF_MOST: Final = 500
_QUERY_MOST: Final = 1_024


def queue_of(asked: dict[str, str]) -> Queue:
    """Read the filters of a queue; raises `InvalidRequest` for a value that is none."""
    check = Checker()
    for name in ("source", "proposer"):
        if name in asked:
            check.identifier(f"/{name}", asked[name])
    age, similar = asked.get("age"), asked.get("similar")
    if age is not None and age not in set(Age):
        check.fault("/age", "one of " + ", ".join(Age))
    if similar is not None and similar not in set(Alike):
        check.fault("/similar", "one of " + ", ".join(Alike))
    check.settle()
    return Queue(
        source=asked.get("source"),
        proposer=asked.get("proposer"),
        age=None if age is None else Age(age),
        similar=None if similar is None else Alike(similar),
    )


def queue_in(query: str) -> Queue:
    """Read the filters out of the hidden field of a form, which is the query of an address."""
    if len(query) > _QUERY_MOST:
        raise InvalidRequest([Fault("/queue", f"at most {_QUERY_MOST} characters")])
    given = QueryDict(query)
    if given.keys() - set(FILTERS):
        raise InvalidRequest([Fault("/queue", "only these: " + ", ".join(FILTERS))])
    return queue_of({name: value for name, value in given.items() if isinstance(value, str) and value})


def query_of(queue: Queue) -> str:
    """The filters as the query of an address."""
    return urlencode(queue.as_keys())


def address_of(caller: Caller, queue: Queue, at: UUID | None = None) -> str:
    """Where the queue goes on: at this note, or after it once it no longer waits."""
    keys = queue.as_keys() | ({} if at is None else {"at": str(at)})
    address = reverse("review", args=[caller.namespace])
    return f"{address}?{urlencode(keys)}" if keys else address


# --- put off ---------------------------------------------------------------------------------------------------------


def put_off(request: HttpRequest, caller: Caller, note_id: UUID) -> None:
    """Leave a candidate out of the queue until this session ends, or the curator asks for it again."""
    kept = [one for one in _kept(request, caller) if one != str(note_id)]
    request.session[_session_key(caller)] = [*kept, str(note_id)][-PUT_OFF_MOST:]


def those_put_off(request: HttpRequest, caller: Caller) -> tuple[UUID, ...]:
    """The candidates that this session has put off here."""
    return tuple(UUID(one) for one in _kept(request, caller))


def _kept(request: HttpRequest, caller: Caller) -> list[str]:
    kept: list[str] = request.session.get(_session_key(caller), [])
    return kept


def _session_key(caller: Caller) -> str:
    return f"put-off:{caller.namespace}"


# --- claims ----------------------------------------------------------------------------------------------------------


def claim(caller: Caller, note_id: UUID) -> str | None:
    """Say that this curator is on a candidate, and learn who else is; it hinders nobody, a lost cache is silence."""
    key = f"review:{caller.namespace}:{note_id}"
    try:
        if cache.add(key, caller.subject, CLAIM_SECONDS):
            return None
        other: str | None = cache.get(key)
        if other is None or other == caller.subject:
            cache.set(key, caller.subject, CLAIM_SECONDS)
            return None
    except Exception:
        log.warning("a claim could not be looked up", exc_info=False)
        return None
    return other


def release(caller: Caller, note_id: UUID) -> None:
    """Leave a candidate to others as soon as it was decided about or put off."""
    key = f"review:{caller.namespace}:{note_id}"
    try:
        if cache.get(key) == caller.subject:
            cache.delete(key)
    except Exception:
        log.warning("a claim could not be given up", exc_info=False)
