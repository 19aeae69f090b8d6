"""What is told at a start or by a look: a lexer that moved, a database that was left out, a token near its end."""

import argparse

import pytest

from archive import lexical
from lychd.commands import derived, host
from tests import cast
from tests.commands.conftest import on_test_database

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def moved(garden, superuser):
    """A namespace whose words another lexer cut."""
    cast.promoted(garden.caller("alice"), "Roses want morning sun.")
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE archive_namespace SET lexer_fingerprint = 'of another server'")


def test_a_lexer_that_is_the_same_is_not_spoken_of(garden, capsys):
    cast.promoted(garden.caller("alice"), "Roses want morning sun.")
    assert lexical.moved() == []
    host.require_fences()
    assert "lexer" not in capsys.readouterr().err


def test_serving_says_that_the_lexer_moved(moved, capsys):
    assert lexical.moved() == ["garden"]
    host.require_fences()
    said = capsys.readouterr().err
    assert "PostgreSQL's lexer is not the one that cut the words of garden" in said
    assert "`lychd lexical rebuild --namespace KEY`" in said


def test_the_worker_says_it_too(moved, capsys, monkeypatch, settings):
    from lychd.celery import app

    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    begun = []
    monkeypatch.setattr(app, "worker_main", begun.append)
    derived.worker(argparse.Namespace())
    assert len(begun) == 1
    assert "cut the words of garden" in capsys.readouterr().err


# --- check --deploy --------------------------------------------------------------------------------------------------


def test_a_look_at_a_deployment_says_that_it_left_the_database_out(outside):
    ran = outside("check", "--deploy", **on_test_database())
    assert ran.code == 0, ran.err
    assert "The database was not looked at" in ran.out + ran.err
    assert "lychd check --deploy --database default" in ran.out + ran.err


def test_with_the_database_it_says_what_its_log_would_quote(outside, superuser):
    """The embedded server is quiet by its own options, which a role's setting outdoes."""
    superuser.execute("ALTER ROLE lychd_serving SET log_parameter_max_length_on_error = 100")
    try:
        ran = outside("check", "--deploy", "--database", "default", **on_test_database())
    finally:
        superuser.execute("ALTER ROLE lychd_serving RESET log_parameter_max_length_on_error")
    said = ran.out + ran.err
    assert "The server's log could quote parameters or rows." in said
    assert "was not looked at" not in said


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_a_token_near_its_end_is_told_in_the_list_and_by_doctor(lychd, garden, superuser):
    made = [
        lychd("token", "create", subject, "--days", 90, "--json").document["token"]["prefix"]
        for subject in ("ivy", "bob", "wanda", "alice")
    ]
    near, _, revoked, over = made
    lychd("token", "revoke", revoked)
    superuser.execute("SET session_replication_role = replica")
    for prefix, days in ((near, 80), (over, 100)):
        superuser.execute(
            "UPDATE lychd_token SET created_at = created_at - make_interval(days => %s),"
            " expires_at = expires_at - make_interval(days => %s) WHERE prefix = %s",
            [days, days, prefix],
        )
    superuser.execute("RESET session_replication_role")

    listed = {one["subject"]: one["standing"] for one in lychd("token", "list", "--json").document["items"]}
    assert listed == {"ivy": "ends soon", "bob": "good", "wanda": "revoked", "alice": "expired"}
    (finding,) = [one for one in lychd("doctor", "--json").document["findings"] if one["check"] == "tokens"]
    assert finding["verdict"] == "notice"
    assert finding["seen"].startswith(f"1 end soon: {near} of ivy at ")
    assert "`lychd token rotate TOKEN`" in finding["fix"]


def test_no_token_near_its_end_is_well(lychd, garden):
    (finding,) = [one for one in lychd("doctor", "--json").document["findings"] if one["check"] == "tokens"]
    assert (finding["verdict"], finding["seen"]) == ("ok", "none ends soon")
