"""Connections that a serving process keeps: one a thread, from request to request, and what bounds a session of theirs.

The threads that serve are as many as requests are worked on at once, so nobody waits for a connection. One that died
meanwhile is found at the beginning of the next request and replaced. Whoever has no lasting threads must not call this.
"""

from typing import Any, Final

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections

CONNECT_SECONDS: Final = 2
"""How long a server may take to let a request in; the driver knows no shorter time."""


def keep() -> None:
    """Let every thread of this process keep its connection; called once, before the first request."""
    # Every thread's connection reads this one dictionary when it opens.
    served: dict[str, Any] = connections.settings[DEFAULT_DB_ALIAS]
    served["CONN_MAX_AGE"] = settings.LYCHD_DATABASE_KEEP_SECONDS
    served["OPTIONS"] = {"connect_timeout": CONNECT_SECONDS, **served["OPTIONS"]}
    if not settings.LYCHD_DATABASE_POOLER:
        served["OPTIONS"]["options"] = f"{_bounds()} {served['OPTIONS'].get('options', '')}".strip()


def _bounds() -> str:
    """Settings of the whole session, for what is asked outside the transactions of operations, which set their own."""
    limits = settings.LYCHD_TIMEOUTS
    bounds = {
        "statement_timeout": limits["statement"],
        "lock_timeout": limits["lock"],
        "idle_in_transaction_session_timeout": limits["idle"],
        "transaction_timeout": limits["transaction"],
    }
    return " ".join(f"-c {name}={milliseconds}" for name, milliseconds in bounds.items())
