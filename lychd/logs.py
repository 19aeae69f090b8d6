"""Logs as JSON lines that carry names and numbers, never what a record or a request says."""

import logging
import traceback
from collections.abc import Callable, MutableMapping
from types import TracebackType
from typing import Any, Final

import structlog

EventDict = MutableMapping[str, Any]

# What a line may say beside its event. The rest of a record's extras stays out: some hold requests or statements.
SPOKEN: Final = (
    "point",
    "allowed",
    "subject",
    "namespace",
    "action",
    "object_digest",
    "authorizer",
    "error",
    "status_code",
    "code",
    "correlation_id",
)


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
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(allow=SPOKEN), *shared],
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
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            "django.db.backends": {"level": "WARNING"},
            "psycopg": {"level": "WARNING"},
            # The server set its own up before the application was loaded.
            "uvicorn": {"handlers": [], "propagate": True},
            "uvicorn.error": {"handlers": [], "propagate": True},
            # Its lines quote query strings, where a caller in error may have put a text or a token.
            "uvicorn.access": {"handlers": [], "propagate": False},
        },
    }
