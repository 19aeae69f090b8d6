"""Why the database does not serve, by SQLSTATE: what is so, and what to do next; once for log, answer and doctor.

A server that turns a login away says why in words alone, since libpq hands on no SQLSTATE before a session stands. So
each cause knows the words of an English server too. None of this quotes what the server said.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Outage:
    """One cause. A SQLSTATE that ends in `000` stands for all of its class that have no row of their own."""

    sqlstate: str
    title: str
    fix: str
    retry_after: int = 5
    """Seconds after which asking again makes sense."""
    words: tuple[str, ...] = ()


_DOES_NOT_ANSWER: Final = Outage(
    "08000",
    "The database does not answer",
    "Start PostgreSQL, or correct the address in DATABASE_URL; `lychd doctor` says what is so.",
)

OUTAGES: Final = (
    _DOES_NOT_ANSWER,
    Outage(
        "08001",
        "The database's host name is not known",
        "Correct the host in DATABASE_URL, or look at the name service.",
        words=("could not translate host name", "failed to resolve host"),
    ),
    Outage(
        "25006",
        "The database takes no writes",
        "It is a standby or set to read only: point DATABASE_URL at the primary, or end default_transaction_read_only.",
    ),
    Outage(
        "28000",
        "The database refuses this login",
        "Correct the user and password in DATABASE_URL, or the server's pg_hba.conf and its right to CONNECT.",
        words=(
            "authentication failed",
            "no pg_hba.conf entry",
            "pg_hba.conf rejects",
            "no password supplied",
            "is not permitted to log in",
            "permission denied for database",
        ),
    ),
    Outage(
        "3D000",
        "The database of this name does not exist",
        "Correct the name in DATABASE_URL, or create the database and run `lychd migrate`.",
    ),
    Outage("53000", "The database lacks a resource", "PostgreSQL's log names it."),
    Outage(
        "53100",
        "The disk of the database is full",
        "Make room on the disk that holds PostgreSQL's data folder; nothing needs to be started anew.",
        30,
        ("no space left on device",),
    ),
    Outage(
        "53200",
        "The database is out of memory",
        "Give its machine more memory, or lower work_mem, shared_buffers or max_connections of PostgreSQL.",
        words=("out of memory",),
    ),
    Outage(
        "53300",
        "The database answers: too many connections",
        "Raise max_connections of PostgreSQL, or run fewer processes; pg_stat_activity says who holds them.",
        2,
        ("too many clients already", "remaining connection slots are reserved", "too many connections for"),
    ),
    Outage("57000", "The database was stopped by its operator", "PostgreSQL's log says by what."),
    Outage(
        "57P01",
        "The database was shut down",
        "Start PostgreSQL again, if nothing does it by itself.",
        words=("terminating connection due to administrator command",),
    ),
    Outage("57P02", "The database crashed and starts anew", "Wait until it is ready; PostgreSQL's log says why.", 2),
    Outage(
        "57P03",
        "The database is starting up or shutting down",
        "Wait until it is ready; PostgreSQL's log says how far it is.",
        2,
        ("is starting up", "is shutting down", "in recovery mode", "not yet accepting connections"),
    ),
    Outage("57P05", "The database ended an idle connection", "Ask again; raise idle_session_timeout if it lasts.", 1),
    Outage(
        "58000",
        "The operating system fails the database",
        "PostgreSQL's log names the file and the error; look at its disk.",
    ),
)

_BY_SQLSTATE: Final = {outage.sqlstate: outage for outage in OUTAGES}
# The server's own sentence is about a name between quotes, which may itself hold any words.
_MISSING: Final = ('database "', '" does not exist')
_LOGIN_MISSING: Final = ('role "', '" does not exist')
# Of the operator's class, and yet a time-out.
_CANCELLED: Final = "57014"


def by_sqlstate(sqlstate: str) -> Outage | None:
    """Return the cause that a SQLSTATE names, or None where it is no outage."""
    if sqlstate == _CANCELLED:
        return None
    return _BY_SQLSTATE.get(sqlstate) or _BY_SQLSTATE.get(f"{sqlstate[:2]}000")


def by_words(said: str) -> Outage:
    """Return the cause that the driver's words name where there was no session; the plain one for any others."""
    said = said.lower()
    for outage in OUTAGES:
        if any(words in said for words in outage.words):
            return outage
    if all(part in said for part in _LOGIN_MISSING):
        return _BY_SQLSTATE["28000"]
    if all(part in said for part in _MISSING):
        return _BY_SQLSTATE["3D000"]
    return _DOES_NOT_ANSWER
