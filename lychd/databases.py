"""Dropping a database on a server where the owner is no superuser."""

from typing import Any, Final

from psycopg import Connection, errors, sql

_ATTEMPTS: Final = 2
_LEAVE_SECONDS: Final = 5

_CLIENTS_LEAVE: Final = """
    SELECT pg_terminate_backend(pid, %s)
      FROM pg_stat_activity
     WHERE datname = %s AND backend_type = 'client backend' AND pid <> pg_backend_pid()
       AND pg_has_role(usesysid, 'USAGE')
"""


def drop(connection: Connection[Any], name: str) -> None:
    """Drop a database of the owner's if it is there, and let its clients leave first.

    Never WITH (FORCE): that ends autovacuum's workers in the name of whoever asks, which only a superuser may (42501).
    Without it the server sends them away by itself, and waits.
    """
    for left in reversed(range(_ATTEMPTS)):
        connection.execute(_CLIENTS_LEAVE, [1000 * _LEAVE_SECONDS, name])
        try:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
            return
        except errors.ObjectInUse:
            if not left:
                raise
