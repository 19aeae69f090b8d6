"""One ground a module: cells that change nothing share it, and it is emptied when the module ends."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from tests import flushing
from tests.access import ground


@pytest.fixture(scope="module")
def transactional_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The database with real commits, for a whole module instead of for one test."""
    with django_db_blocker.unblock():
        yield
        connections["default"].close()
        with flushing.as_owner() as owner:
            flushing.flush(owner)


@pytest.fixture(scope="module")
def here(transactional_db: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ground.Ground]:
    """Everybody of the table and a namespace in each state."""
    with flushing.as_owner() as owner, ground.planted(owner, tmp_path_factory.mktemp("shelf")) as planted:
        yield planted
