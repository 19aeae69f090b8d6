"""Leases: the counted right to embed, held from before the claim until after the driver is closed (R-L-185, 193).

Counted over the whole deployment in the worker's broker, with an owner's token and an expiry; or, where the settings
say so, in the memory of the one process that embeds, which keeps a lock so that there is no other. Neither is ever the
other's fallback: a broker that does not answer refuses (0.14, 5.15).
"""

import contextlib
import fcntl
import os
import threading
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import uuid4

from django.conf import settings

from semantic import limits
from semantic.refusals import CoordinationUnavailable, LeaseCleanupFailed, LeaseUnavailable

KEY: Final = "lychd:embedding:leases"


class Lease(Protocol):
    """One held lease."""

    @property
    def owner(self) -> str:
        """The token under which it is counted."""

    def close(self) -> None:
        """Give it back; raises `LeaseCleanupFailed` when that cannot be done or it had run out already."""


def take() -> Lease:
    """Take a lease or refuse at once; raises `LeaseUnavailable`, or `CoordinationUnavailable` without an answer."""
    return _take_from_process() if in_memory() else _take_from_redis(settings.LYCHD_COORDINATION_URL)


def free() -> bool:
    """Say whether one could be taken just now, and take none; raises `CoordinationUnavailable` without an answer."""
    if in_memory():
        with _guard, contextlib.suppress(LeaseUnavailable):
            _require_room()
            return True
        return False
    return _run(settings.LYCHD_COORDINATION_URL, _FREE, str(settings.LYCHD_EMBED_LEASES))


def in_memory() -> bool:
    """Say whether leases are counted in one process's memory; while nothing is derived, none are."""
    archive = settings.LYCHD_ARCHIVE or {}
    return bool(archive.get("derivation")) and archive.get("coordination") == "process"


# One process's memory

_guard = threading.Lock()
_held: set[str] = set()
# The process that keeps the lock, and its descriptor: a child that was forked has neither.
_alone: tuple[int, int] | None = None


def _be_alone() -> None:
    """Keep the lock of the one process that embeds, until this process ends; another's is `LeaseUnavailable`."""
    global _alone
    if _alone is not None and _alone[0] == os.getpid():
        return
    settings.LYCHD_EMBEDDING_LOCK.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(settings.LYCHD_EMBEDDING_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise LeaseUnavailable from None
    _alone = (os.getpid(), descriptor)


def _require_room() -> None:
    _be_alone()
    if len(_held) >= settings.LYCHD_EMBED_LEASES:
        raise LeaseUnavailable


@dataclass(frozen=True, slots=True)
class _ProcessLease:
    owner: str

    def close(self) -> None:
        with _guard:
            if self.owner not in _held:
                raise LeaseCleanupFailed
            _held.remove(self.owner)


def _take_from_process() -> Lease:
    with _guard:
        _require_room()
        owner = str(uuid4())
        _held.add(owner)
    return _ProcessLease(owner)


# Redis

# One step for Redis: what ran out goes, then whoever still fits in comes. Its own clock decides, no caller's.
_NOW: Final = """
local now = redis.call('TIME')
local at = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
"""
_TAKE: Final = f"""{_NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', at)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], at + tonumber(ARGV[2]), ARGV[3])
redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[2]))
return 1
"""
_FREE: Final = f"""{_NOW}
return redis.call('ZCOUNT', KEYS[1], '(' .. at, '+inf') < tonumber(ARGV[1]) and 1 or 0
"""
_GIVE_BACK: Final = f"""{_NOW}
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[1], ARGV[1])
if ends and tonumber(ends) > at then return 1 end
return 0
"""


@dataclass(frozen=True, slots=True)
class _RedisLease:
    owner: str
    url: str

    def close(self) -> None:
        try:
            given_back = _run(self.url, _GIVE_BACK, self.owner)
        except CoordinationUnavailable:
            raise LeaseCleanupFailed from None
        if not given_back:
            # It ran out or Redis lost it, so somebody else may have embedded beside us.
            raise LeaseCleanupFailed


def _take_from_redis(url: str) -> Lease:
    owner = str(uuid4())
    if not _run(url, _TAKE, str(settings.LYCHD_EMBED_LEASES), str(limits.LEASE_SECONDS * 1000), owner):
        raise LeaseUnavailable
    return _RedisLease(owner, url)


def _run(url: str, script: str, *arguments: str) -> bool:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    try:
        with redis.Redis.from_url(
            url, socket_timeout=3, socket_connect_timeout=3, retry=Retry(NoBackoff(), 0)
        ) as client:
            return bool(client.eval(script, 1, KEY, *arguments))
    except redis.RedisError:
        raise CoordinationUnavailable from None
