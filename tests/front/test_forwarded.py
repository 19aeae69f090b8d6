"""What a proxy says of a caller counts from proxies that are named, and the sign-in lock spares the known browser."""

import contextlib

import pytest

from lychd.environment import Environment
from tests.front.browser import Browser
from tests.front.serving import ask

WRONG_MAX = 5
HERE = {"Host": "archive.example"}


def test_m3_nobody_is_believed_who_is_not_named(production):
    served = production.serve()
    for says in (
        {"X_Forwarded_Proto": "https"},
        {"X_Forwarded_Proto": "https", "X_Forwarded_For": "127.0.0.1"},
        {"Forwarded": "proto=https"},
    ):
        answer = served.ask("/sign-in", **HERE, **says)
        assert (answer.status, answer.headers["location"]) == (301, "https://archive.example/sign-in")
    with contextlib.closing(served.connect()) as connection:
        connection.request("GET", "/sign-in", headers={**HERE, "X_Forwarded_Proto": "https"})
        assert connection.getresponse().status == 301


def test_a_named_proxy_is_believed_about_scheme_and_address(production):
    served = production.serve(LYCHD_TRUSTED_PROXIES="10.0.0.0/8,127.0.0.1")
    assert served.ask("/sign-in", **HERE).status == 301
    secure = served.ask("/sign-in", **HERE, X_Forwarded_Proto="https")
    assert secure.status == 200
    assert "strict-transport-security" in secure.headers


def test_m3_the_lock_counts_the_true_address_and_no_other(production):
    served = production.serve(LYCHD_SSL_REDIRECT="false")
    for number in range(WRONG_MAX):
        Browser(served, **HERE, X_Forwarded_For=f"9.9.9.{number}").sign_in("wrong", "eve")
    assert Browser(served, **HERE, X_Forwarded_For="9.9.9.99").sign_in("wrong", "eve").status == 429

    behind = production.serve(LYCHD_SSL_REDIRECT="false", LYCHD_TRUSTED_PROXIES="127.0.0.1")
    for _ in range(WRONG_MAX):
        # The caller may say what they like: what the proxy adds comes last.
        Browser(behind, **HERE, X_Forwarded_For="1.2.3.4, 9.9.9.7").sign_in("wrong", "ida")
    assert Browser(behind, **HERE, X_Forwarded_For="5.6.7.8, 9.9.9.7").sign_in(production.password, "ida").status == 429
    assert Browser(behind, **HERE, X_Forwarded_For="9.9.9.8").sign_in(production.password, "ida").status == 302


def test_m4_nobody_locks_a_curator_out_of_the_browser_they_know(production):
    served = production.serve(LYCHD_SSL_REDIRECT="false", LYCHD_TRUSTED_PROXIES="127.0.0.1")
    says = {**HERE, "X_Forwarded_For": "8.8.8.8"}
    known = Browser(served, **says)
    assert known.sign_in(production.password).status == 302
    known.forget_session()
    for _ in range(WRONG_MAX):
        Browser(served, **says).sign_in("wrong")
    assert Browser(served, **says).sign_in(production.password).status == 429
    assert known.sign_in(production.password).status == 302
    # Known under one name is not known under another, and a known browser has no more tries than others.
    known.forget_session()
    for _ in range(WRONG_MAX):
        assert known.sign_in("wrong").status in (200, 429)
    assert known.sign_in(production.password).status == 429


@pytest.mark.parametrize("nonsense", ["*", "proxy", "10.0.0.1/8", "10.0.0.0/33"])
def test_a_proxy_is_named_by_its_address(nonsense):
    from django.core.exceptions import ImproperlyConfigured

    with pytest.raises(ImproperlyConfigured, match="addresses or networks"):
        Environment({"LYCHD_TRUSTED_PROXIES": nonsense}).networks("LYCHD_TRUSTED_PROXIES")


def test_a_kept_connection_is_asked_anew(production):
    served = production.serve(LYCHD_TRUSTED_PROXIES="127.0.0.1")
    with contextlib.closing(served.connect()) as connection:
        assert ask(connection, "/sign-in", **HERE, X_Forwarded_Proto="https").status == 200
        assert ask(connection, "/sign-in", **HERE).status == 301
