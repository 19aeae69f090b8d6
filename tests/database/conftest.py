"""One world a module, planted once: each test looks at it in a transaction that it rolls back."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connections
from psycopg import sql

from lychd import embedded
from tests import flushing
from tests.database import world as worlds


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[worlds.World]:
    with django_db_blocker.unblock():
        planted = worlds.plant()
        connections["default"].close()
    yield planted
    with django_db_blocker.unblock(), flushing.as_owner() as owner:
        connections["default"].close()
        flushing.flush(owner)


@pytest.fixture(scope="module")
def as_owner(world: worlds.World) -> "Iterator[psycopg.Connection[Any]]":
    with psycopg.connect(**flushing.parameters(), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def as_serving(world: worlds.World) -> "Iterator[psycopg.Connection[Any]]":
    if not settings.LYCHD_EMBEDDED:
        with psycopg.connect(**flushing.parameters(), autocommit=True) as connection:
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(settings.LYCHD_SERVING_ROLE)))
            yield connection
        return
    with psycopg.connect(**{**flushing.parameters(), "user": embedded.SERVING_ROLE}, autocommit=True) as connection:
        yield connection
