"""Logs as JSON lines that carry names and numbers, never what a record or a request says."""

import logging
import time
import traceback
from collections.abc import Callable, MutableMapping
from types import TracebackType
from typing import Any, Final

import structlog

EventDict = MutableMapping[str, Any]

REPEAT_SECONDS: Final = 60.0

# What a line may say beside its event. The rest of a record's extras stays out: some hold requests or statements.
# A test compares this list with every call of a logger.
SPOKEN: Final = (
    "point",
    "allowed",
    "subject",
    "principal",
    "namespace",
    "action",
    "object_digest",
    "derivation",
    "authorizer",
    "error",
    "reason",
    "claims",
    "code",
    "codes",
    "sqlstate",
    "sqlstates",
    "method",
    "route",
    "status",
    "ms",
    "repeated",
    "correlation_id",
)

# The last two are structlog's own.
_ALWAYS_THERE: Final = frozenset(
    {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "_logger", "_name"}
)


def unspoken(record: logging.LogRecord) -> set[str]:
    """Return what a record was given to say and no line says."""
    return set(vars(record)) - _ALWAYS_THERE - set(SPOKEN)


# These of the framework quote what a caller typed: a path, a host, a user's name. The line says their name instead.
QUOTING: Final = ("django.request", "django.security", "django.server", "axes")


class Unhandled(logging.Filter):
    """Let a line through that has an exception nobody handled: any other answer has its line in the access log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Judge one record."""
        return record.levelno >= logging.ERROR and bool(record.exc_info)


def without_callers_words(logger: logging.Logger, method: str, event: EventDict) -> EventDict:
    """Say of a line that quotes its caller only where it comes from."""
    name: str = event["_record"].name
    if any(name == quoting or name.startswith(f"{quoting}.") for quoting in QUOTING):
        event["event"] = f"from {name}"
    return event


def without_messages(logger: logging.Logger, method: str, event: EventDict) -> EventDict:
    """Replace an exception by its type, SQLSTATE and frames: a message may quote a row."""
    found = event.pop("exc_info", None)
    if found is True:
        found = structlog.processors._figure_out_exc_info(found)
    error = found[1] if isinstance(found, tuple) else found
    if isinstance(error, BaseException):
        event["error"] = type(error).__qualname__
        state = getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None)
        if state:
            event["sqlstate"] = state
        event["frames"] = frames(error.__traceback__)
    event.pop("stack_info", None)
    return event


def frames(trace: TracebackType | None) -> list[str]:
    """Where an exception passed, innermost last; no source line and no local value."""
    return [f"{entry.name}:{entry.lineno} {entry.filename}" for entry in traceback.extract_tb(trace)][-20:]


class Repeats(logging.Filter):
    """Say once a minute what anybody can cause as often as they like, and how often it was."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        said: Any = record.msg
        event = said["event"] if isinstance(said, dict) else said
        since, unsaid = self._told.get(event, (0.0, 0))
        if since and time.monotonic() - since < REPEAT_SECONDS:
            self._told[event] = (since, unsaid + 1)
            return False
        self._told[event] = (time.monotonic(), 0)
        if unsaid and isinstance(said, dict):
            said["repeated"] = unsaid
        return True


def formatter() -> structlog.stdlib.ProcessorFormatter:
    """The one formatter of the service, for structlog's own loggers and everybody else's."""
    shared: list[Callable[..., Any]] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        without_messages,
    ]
    return structlog.stdlib.ProcessorFormatter(
        # First, so that nothing said about an exception is overwritten by it.
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(allow=SPOKEN), without_callers_words, *shared],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(),
        ],
    )


def configure_structlog() -> None:
    """Hand what structlog's loggers say to the standard library, so that one formatter sees everything."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            without_messages,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def logging_config(level: str) -> dict[str, Any]:
    """Django's LOGGING: everything to stderr; SQL is never logged, since statements may carry values."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": formatter}},
        "filters": {"unhandled": {"()": Unhandled}, "repeats": {"()": Repeats}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.request": {"filters": ["unhandled"]},
            # A wrong host is refused like any wrong request; whoever scans for hosts would fill the log.
            "django.security.DisallowedHost": {"propagate": False},
            "django.server": {"handlers": [], "propagate": False},
            "django.db.backends": {"level": "WARNING"},
            "psycopg": {"level": "WARNING"},
            # What strangers cause.
            **{name: {"filters": ["repeats"]} for name in ("asyncio", "lychd.bounds", "lychd.connections")},
            # The server set its own up before the application was loaded.
            "uvicorn": {"handlers": [], "propagate": True},
            "uvicorn.error": {"handlers": [], "propagate": True, "filters": ["repeats"]},
            # Its lines quote query strings, where a caller in error may have put a text or a token.
            "uvicorn.access": {"handlers": [], "propagate": False},
        },
    }
