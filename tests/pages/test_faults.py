"""What goes wrong around the pages, and how each looks to a person; programs get their own."""

import pytest
from django.db import OperationalError, connection
from django.test import Client

from archive import authority
from tests import cast

NS = f"/ns/{cast.GARDEN}"


def test_a_wrong_address_has_a_page_of_ours(nursery, curator):
    for address in ("/no/such/page", f"{NS}/", f"{NS}/notes/not-a-uuid", "/ns/-wrong", f"{NS}/receipts/a b"):
        answer = curator.get(address)
        assert answer.status_code == 404, address
        assert "Nothing lives at this address" in answer.content.decode(), address
    assert Client().get("/no/such/page").status_code == 404


def test_a_program_gets_no_page(garden):
    assert Client().get("/api/v1/no/such")["Content-Type"] == "application/problem+json"


def test_while_the_profile_is_off_a_quiet_page_names_the_setting(nursery, curator, settings):
    settings.LYCHD_ARCHIVE = None
    for address in ("/", NS, f"{NS}/notes", f"{NS}/notes/{nursery.candidate.id}"):
        answer = curator.get(address)
        assert answer.status_code == 503, address
        assert "LYCHD_ARCHIVE_PROFILE" in answer.content.decode()
    assert curator.post(f"{NS}/notes/{nursery.candidate.id}/promote", {"expected_version": 1}).status_code == 503


def test_when_storage_does_not_answer_a_quiet_page_says_so(nursery, curator):
    with connection.execute_wrapper(_lost):
        for address in ("/", NS, f"{NS}/notes", f"{NS}/events", f"{NS}/notes/{nursery.candidate.id}"):
            answer = curator.get(address)
            assert answer.status_code == 503, address
            assert "The database does not answer" in answer.content.decode()
            assert "Sign out" not in answer.content.decode()
        assert Client().get("/sign-in").status_code == 200
        assert Client().post("/sign-in", {"username": "alice", "password": "anything"}).status_code == 503


def test_when_authority_does_not_answer_nothing_is_shown(nursery, curator, scripted):
    scripted.script = [RuntimeError("away")]
    answer = curator.get(f"{NS}/notes")
    assert answer.status_code == 503
    assert "Authority could not be asked" in answer.content.decode()
    assert "roses" not in answer.content.decode()


def test_a_no_at_the_last_moment_withholds_the_page(nursery, curator, scripted):
    scripted.script = [True, False]
    answer = curator.get(f"{NS}/notes")
    assert answer.status_code == 403
    assert "roses" not in answer.content.decode()


def test_a_defect_has_a_page_that_asks_nothing_of_the_database(nursery, curator, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("roses")

    monkeypatch.setattr(authority, "authorizer", broken)
    curator.raise_request_exception = False
    answer = curator.get(f"{NS}/notes")
    assert answer.status_code == 500
    assert "A fault of the archive" in answer.content.decode()
    assert "roses" not in answer.content.decode()


@pytest.mark.parametrize("name", ["400.html", "403.html", "403_csrf.html", "404.html", "500.html"])
def test_the_pages_that_django_asks_for_need_no_request(name):
    from django.template.loader import render_to_string

    page = render_to_string(name)
    assert 'class="status"' in page
    assert "Sign out" not in page


def _lost(execute, sql, params, many, context):
    raise OperationalError("the connection is lost")
