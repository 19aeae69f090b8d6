"""Dropping a database without being a superuser."""

import psycopg
import pytest

from lychd import databases
from tests import flushing

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def beside():
    """The owner, connected elsewhere, and a database that is there to be dropped."""
    parameters = flushing.parameters()
    name = f"{parameters['dbname']}_dropped"
    with psycopg.connect(**{**parameters, "dbname": "postgres"}, autocommit=True) as owner:
        databases.drop(owner, name)
        owner.execute(f'CREATE DATABASE "{name}"')
        yield owner, {**parameters, "dbname": name}
        databases.drop(owner, name)


def there(owner, parameters):
    return owner.execute("SELECT count(*) FROM pg_database WHERE datname = %s", [parameters["dbname"]]).fetchone() == (
        1,
    )


def test_a_client_that_stayed_is_sent_away(beside):
    owner, parameters = beside
    with psycopg.connect(**parameters, autocommit=True) as client:
        assert client.execute("SELECT 1").fetchone() == (1,)
        assert there(owner, parameters)

        databases.drop(owner, parameters["dbname"])

        assert not there(owner, parameters)
        with pytest.raises(psycopg.OperationalError):
            client.execute("SELECT 1")


def test_a_database_that_is_gone_is_no_error(beside):
    owner, parameters = beside
    databases.drop(owner, parameters["dbname"])
    databases.drop(owner, parameters["dbname"])

    assert not there(owner, parameters)


def test_a_superusers_session_is_waited_for_and_named_at_the_end(beside, superuser):
    """What FORCE would answer with 42501: only a superuser may end a superuser's work."""
    owner, parameters = beside
    superusers = {
        **superuser.info.get_parameters(),
        "dbname": parameters["dbname"],
        "password": superuser.info.password,
    }
    with psycopg.connect(**superusers, autocommit=True):
        with pytest.raises(psycopg.errors.ObjectInUse):
            databases.drop(owner, parameters["dbname"])
        assert there(owner, parameters)
