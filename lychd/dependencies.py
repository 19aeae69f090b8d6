"""What the service rests on beside the database's answer: the disk below it, the broker, a worker that takes messages.

Each look is bounded and changes nothing: what PostgreSQL writes to try its disk is a temporary file that it drops.
"""

import shutil
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections, transaction

from lychd import embedded

PROBE_SECONDS: Final = 0.5
LOW_BYTES: Final = 512 * 1024 * 1024
"""Free space below which somebody should make room before PostgreSQL finds none."""


class BrokerAway(Exception):
    """The broker does not answer in time."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What the broker says: how many messages wait, and whether a worker answers where it was asked."""

    waiting: int
    worker: bool | None


def try_disk() -> None:
    """Let PostgreSQL write a file of 280 kB, as any role may; raises what it says where it cannot (53100).

    Rows that outgrow the memory of a statement lie in a file beside the tables until it ends. No row is written.
    """
    with transaction.atomic(durable=True), connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT set_config('work_mem', '64kB', true)")
        cursor.execute("SELECT count(*) FROM generate_series(1, 20000)")


def free_bytes() -> int | None:
    """Return the room on the disk of the embedded server's data folder; None where the server is somebody else's."""
    if not settings.LYCHD_EMBEDDED:
        return None
    try:
        return shutil.disk_usage(embedded.data_dir(settings.LYCHD_STATE_DIR).parent).free
    except OSError:
        return None


def needs_broker() -> bool:
    """Say whether anything that is configured goes over the broker."""
    return bool(settings.REDIS_URL) or needs_worker()


def needs_worker() -> bool:
    """Say whether notes are derived here."""
    return bool((settings.LYCHD_ARCHIVE or {}).get("derivation"))


def queue(seconds: float = PROBE_SECONDS) -> Queue:
    """Count what waits, and ask for a worker only where something does; raises `BrokerAway`."""
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    url = settings.REDIS_URL or embedded.broker_url(settings.LYCHD_STATE_DIR)
    try:
        with redis.Redis.from_url(
            url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=Retry(NoBackoff(), 0)
        ) as client:
            waiting = int(client.llen(settings.CELERY_TASK_DEFAULT_QUEUE))
    except redis.RedisError:
        raise BrokerAway from None
    return Queue(waiting, _worker_answers(seconds) if waiting and needs_worker() else None)


def _worker_answers(seconds: float) -> bool:
    import redis
    from kombu.exceptions import OperationalError

    from lychd.celery import app

    try:
        return bool(app.control.ping(timeout=seconds, limit=1))
    except (OperationalError, OSError, redis.RedisError):
        raise BrokerAway from None
