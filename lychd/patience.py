"""The worker takes no message while the database is away: a message that is taken is never delivered again.

Taken and refused, a whole queue would be gone in seconds, and each of its rows would wait for a person. So the worker
looks before it takes: a message that comes while nobody answers goes back to where it was, unread, and no other is
fetched until the database answers. Nothing that was begun is tried again.

A message for which no embedding lease is left was not begun either: a process that was killed holds its lease until it
runs out. The worker waits for one, and sends the message back to its queue.
"""

import logging
import time
from typing import Any, Final

from celery import Task, bootsteps
from celery.worker.consumer import Tasks
from celery.worker.strategy import default
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from archive.refusals import StorageUnavailable
from semantic import leases
from semantic.refusals import CoordinationUnavailable, LeaseUnavailable

log = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 1.0
_SAID_EVERY_SECONDS: Final = 60.0
# How long a process rests that met a database which answers and cannot work, its disk full say; below the time limits.
_REST_SECONDS: Final = 5.0
_LONGEST_REST: Final = 30.0


class PatientTask(Task):  # type: ignore[misc]
    """A task whose messages are taken while the database answers, and that rests after it met one that cannot work."""

    abstract = True
    Strategy = f"{__name__}:strategy"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run; a task returns the code of the refusal it met, if it met one."""
        code = super().__call__(*args, **kwargs)
        if code == StorageUnavailable.code:
            _rest()
        elif code == LeaseUnavailable.code and not self.request.called_directly:
            self._send_back(args, kwargs)
        return code

    def _send_back(self, args: Any, kwargs: Any) -> None:
        """Give the message that was not begun back to its queue, once a lease is free or this took too long."""
        log.warning("Every embedding lease is held; the attempt goes back to its queue and waits for one.")
        end = time.monotonic() + _LONGEST_REST
        while not _lease_is_free() and time.monotonic() < end:
            time.sleep(_EVERY_SECONDS)
        self.apply_async(args, kwargs, headers=self.request.headers, retry=False)


def _lease_is_free() -> bool:
    try:
        return leases.free()
    except CoordinationUnavailable:
        return False


def _rest() -> None:
    begun = time.monotonic()
    time.sleep(_REST_SECONDS)
    database = _connection()
    while not _answers(database) and time.monotonic() - begun < _LONGEST_REST:
        time.sleep(_EVERY_SECONDS)
    database.close()


def strategy(task: Any, app: Any, consumer: Any, **more: Any) -> Any:
    """Receive a message as Celery does, unless the database is away; then it goes back before anything is done."""
    handle = default(task, app, consumer, **more)

    def received(message: Any, body: Any, ack: Any, reject: Any, callbacks: Any, **more: Any) -> Any:
        if consumer.patience.look(consumer):
            return handle(message, body, ack, reject, callbacks, **more)
        requeue = True
        return reject(log, consumer.connection_errors, requeue)

    return received


class Patience(bootsteps.StartStopStep):  # type: ignore[misc]
    """Looks each second whether the database answers, and stops and goes on taking messages by that."""

    requires = (Tasks,)

    def __init__(self, consumer: Any, **more: Any) -> None:
        super().__init__(consumer, **more)
        consumer.patience = self
        self._database = _connection()
        self._queues: list[str] = []
        self._away_since: float | None = None
        self._said_at = 0.0
        self._timer: Any = None

    def start(self, consumer: Any) -> None:
        """Look before the first message is taken, and from then on."""
        self._timer = consumer.timer.call_repeatedly(_EVERY_SECONDS, self.look, (consumer,))
        self.look(consumer)

    def stop(self, consumer: Any) -> None:
        """Look no more: the connection to the broker is lost, or the worker ends."""
        if self._timer is not None:
            self._timer.cancel()

    def look(self, consumer: Any) -> bool:
        """Whether messages may be taken now."""
        answers = _answers(self._database)
        now = time.monotonic()
        if answers and self._away_since is not None:
            for queue in self._queues:
                consumer.add_task_queue(queue)
            log.warning(
                "The database answers again after %.0f s; messages are taken. What was refused in between stays"
                " prepared: `lychd derive --all --queue` sends it again.",
                now - self._away_since,
            )
            self._away_since = None
        elif not answers and self._away_since is None:
            self._away_since = self._said_at = now
            self._queues = list(consumer.app.amqp.queues.consume_from)
            for queue in self._queues:
                consumer.cancel_task_queue(queue)
            log.error("The database does not answer; no message is taken until it does.")
        elif not answers and now - self._said_at >= _SAID_EVERY_SECONDS:
            self._said_at = now
            log.error("The database has not answered for %.0f s; no message is taken.", now - (self._away_since or now))
        return answers


def _connection() -> BaseDatabaseWrapper:
    """A connection of its own, which no task closes and whose opening does not take long."""
    found = connections[DEFAULT_DB_ALIAS]
    options = {name: value for name, value in found.settings_dict["OPTIONS"].items() if name != "pool"}
    told = {**found.settings_dict, "OPTIONS": {**options, "connect_timeout": 2}}
    return type(found)(told, DEFAULT_DB_ALIAS)


def _answers(database: BaseDatabaseWrapper) -> bool:
    try:
        if database.connection is not None and not database.is_usable():
            database.close()
        # To be let in is an answer as well.
        database.ensure_connection()
    except Error:
        return False
    return True
