"""Why a database does not serve, from a real server's own mouth where it can be made to say so."""

import psycopg
import pytest
from django.db import OperationalError, connections
from django.db.backends.postgresql.base import DatabaseWrapper

from archive import outages, transactions
from archive.outages import OUTAGES
from archive.refusals import ArchiveTimeout, OutcomeUnknown, StorageUnavailable
from archive.transactions import DatabaseFault

pytestmark = pytest.mark.django_db(transaction=True)


def refused(**changes: object) -> OperationalError:
    """What Django raises when a session cannot begin."""
    settings = {**connections["default"].settings_dict, **changes}
    other = DatabaseWrapper({**settings, "OPTIONS": {**settings["OPTIONS"], "pool": False}}, "other")
    with pytest.raises(OperationalError) as no:
        other.ensure_connection()
    return no.value


@pytest.mark.parametrize(
    ("changes", "sqlstate"),
    [
        ({"NAME": "nowhere"}, "3D000"),
        ({"USER": "nobody-at-all"}, "28000"),
        ({"HOST": "/nonexistent"}, "08000"),
        ({"HOST": "127.0.0.1", "PORT": "1"}, "08000"),
        ({"HOST": "no-such-host.invalid"}, "08001"),
    ],
)
def test_a_server_that_begins_no_session_is_understood(changes, sqlstate):
    """libpq hands on no SQLSTATE here."""
    error = refused(**changes)
    assert getattr(error.__cause__, "sqlstate", None) is None
    outage = transactions.outage_of(error)
    assert outage is not None
    assert outage.sqlstate == sqlstate
    named = transactions.named(error)
    assert isinstance(named, StorageUnavailable)
    assert (named.title, named.sqlstate, named.code) == (outage.title, sqlstate, "storage_unavailable")
    assert named.detail == f"Nothing was decided. {outage.fix}"


def test_too_many_connections_of_one_role(superuser):
    """The server's own refusal, in its own words."""
    superuser.execute("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0")
    try:
        outage = transactions.outage_of(refused(USER="crowded"))
    finally:
        superuser.execute("DROP ROLE crowded")
    assert outage is not None
    assert outage.sqlstate == "53300"


@pytest.mark.parametrize(
    ("sqlstate", "meant"),
    [
        ("53100", "53100"),
        ("53400", "53000"),
        ("57P01", "57P01"),
        ("57P04", "57000"),
        ("08006", "08000"),
        ("28P01", "28000"),
        ("58030", "58000"),
        ("57014", None),
        ("23505", None),
        ("42501", None),
    ],
)
def test_a_class_stands_for_those_without_a_row(sqlstate, meant):
    found = outages.by_sqlstate(sqlstate)
    assert (None if found is None else found.sqlstate) == meant


def raised(sqlstate: str) -> OperationalError:
    error = OperationalError("quotes a row")
    error.__cause__ = psycopg.errors.lookup(sqlstate)("quotes a row")
    return error


def test_what_each_means_to_a_caller():
    assert isinstance(transactions.named(raised("57014")), ArchiveTimeout)
    assert transactions.named(raised("57014")).sqlstate == "57014"
    lost = transactions._named(raised("57P01"), committing=True)
    assert isinstance(lost, OutcomeUnknown)
    assert lost.sqlstate == "57P01"
    assert isinstance(transactions.named(raised("42703")), DatabaseFault)


def test_a_server_that_takes_no_writes_says_so_and_a_write_of_ours_in_a_read_stays_loud(garden):
    """The same SQLSTATE means a standby to an act, and a mistake of ours to a look."""
    caller = garden.caller("alice")
    outage = transactions._named(raised("25006"), committing=False)
    assert isinstance(outage, StorageUnavailable)
    assert outage.title == "The database takes no writes"
    with pytest.raises(DatabaseFault), transactions.snapshot(caller.binding):
        raise raised("25006")


def test_every_cause_says_what_to_do_and_quotes_nothing():
    assert len({one.sqlstate for one in OUTAGES}) == len(OUTAGES)
    for one in OUTAGES:
        assert one.title[0].isupper()
        assert not one.title.endswith(".")
        assert one.fix.endswith(".")
        assert one.retry_after > 0
