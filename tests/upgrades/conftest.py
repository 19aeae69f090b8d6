"""A database for each dump, migrated by a process of its own; and this process at work in it, as the service."""

import gzip
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connections

from lychd import embedded
from lychd.environment import CHECKOUT
from semantic.presets import STAND_IN
from tests.commands.conftest import PATIENCE, Ran, environment
from tests.repository.test_migrations import _run, database, inventory
from tests.upgrades.story import KEPT, Padded

HERE = Path(__file__).parent
# The last landed state; before a note was found by the parts of a dotted name; before padding was left out of what is
# searched, and before migration archive.0005, on which semantic.0001 depends today.
LANDED, BEFORE_PARTS, BEFORE_PADDING = COMMITS = ("4c5b542", "60512fe", "7f1092f")
# What earlier releases let a tombstone keep, and the planner learn of it.
ORIGIN = "letters/said-in-letters-and-hyphens"
SPEAKING = (
    "ALTER TABLE archive_note DISABLE TRIGGER USER",
    f"UPDATE archive_note SET asserted_origin = '{ORIGIN}' WHERE state = 'revoked'",
    "ALTER TABLE archive_note ENABLE TRIGGER USER",
    "ANALYZE archive_note",
)
OLD_WORDS = (BEFORE_PARTS, BEFORE_PADDING)


def derivation(reference: str) -> dict[str, Any]:
    """The settings of derivation under which a generation of the story was made."""
    padded = {"provider": "padded", "padding": {"from": KEPT, "to": 1_024, "by": "zeros-after-normalize"}}
    return {
        "generation": reference,
        "embed_profile": "model.embed@1",
        "embed_binding": {**STAND_IN, **(padded if reference == "padded-1" else {})},
        "attempt_seconds": 60,
    }


@dataclass(frozen=True)
class Archive:
    """One restored archive."""

    commit: str
    parameters: dict[str, Any]

    def lychd(self, *words: object) -> Ran:
        """Run a command line in it, as a process."""
        server = embedded.Server(settings.LYCHD_STATE_DIR, embedded.socket_dir(settings.LYCHD_STATE_DIR))
        name = str(self.parameters["dbname"])
        with TemporaryDirectory() as state:
            done = subprocess.run(
                [sys.executable, "-m", "lychd.console", *(str(word) for word in words)],
                env=environment(
                    Path(state),
                    DATABASE_URL=server.url(name),
                    DATABASE_OWNER_URL=server.url(name, embedded.OWNER_ROLE),
                    LYCHD_ARCHIVE_PROFILE="local-public-notes@1",
                ),
                capture_output=True,
                text=True,
                check=False,
                cwd=CHECKOUT,
                timeout=PATIENCE,
            )
        return Ran(done.returncode, done.stdout, done.stderr)

    def rows(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """Ask as the owner."""
        with psycopg.connect(**self.parameters, autocommit=True) as connection:
            return list(connection.execute(question.encode(), values or None))

    def inventory(self) -> Any:
        """Everything that its schema consists of."""
        return inventory(self.parameters)

    @contextmanager
    def served(self, reference: str = "notes-1") -> Iterator[None]:
        """Work in it as the service does, with one generation configured."""
        connection = connections["default"]
        before, embedders = connection.settings_dict["NAME"], settings.LYCHD_EMBEDDERS
        archive: Any = settings.LYCHD_ARCHIVE
        connection.close()
        connection.settings_dict["NAME"] = self.parameters["dbname"]
        settings.LYCHD_ARCHIVE = {**archive, "derivation": derivation(reference), "semantic": True}
        settings.LYCHD_EMBEDDERS = {**embedders, "padded": f"{Padded.__module__}.Padded"}
        settings.LYCHD_TEST_EMBEDDER = True
        try:
            yield
        finally:
            connection.close()
            connection.settings_dict["NAME"] = before
            settings.LYCHD_ARCHIVE, settings.LYCHD_EMBEDDERS = archive, embedders
            settings.LYCHD_TEST_EMBEDDER = False


@contextmanager
def restored(commit: str) -> Iterator[Archive]:
    """Restore a dump into a database of its own."""
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("the programs that restore come with the embedded server")
    with database(f"old_{commit}") as parameters:
        said = gzip.decompress((HERE / f"{commit}.sql.gz").read_bytes()).decode("utf-8")
        _run("psql", parameters, "-q", "-v", "ON_ERROR_STOP=1", said=said)
        yield Archive(commit, parameters)


@pytest.fixture(params=COMMITS)
def archive(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[Archive]:
    """An archive as that commit left it."""
    with restored(request.param) as found:
        yield found


@pytest.fixture(scope="module", params=COMMITS)
def mould(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any) -> Iterator[Archive]:
    """The same, brought to this release, once for the tests of a file."""
    with django_db_blocker.unblock(), restored(request.param) as found:
        with psycopg.connect(**found.parameters) as owner:
            for statement in SPEAKING:
                owner.execute(statement.encode())
        done = found.lychd("migrate", "--json")
        assert done.code == 0, done.err
        assert done.document["left"] == []
        yield found


@pytest.fixture
def migrated(mould: Archive, transactional_db: None) -> Iterator[Archive]:
    """A copy of it, and nobody else's."""
    with database(f"new_{mould.commit}", like=str(mould.parameters["dbname"])) as parameters:
        yield Archive(mould.commit, parameters)
