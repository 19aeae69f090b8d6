"""Below a path prefix everything is served, links and cookies included, and nothing beside it but the probes."""

import re

import pytest
from django.core.exceptions import ImproperlyConfigured

from archive import limits
from archive.operations import host
from lychd.bounds import Kind, address_of, kind_of, limit_of
from lychd.environment import Environment
from tests.cast import GARDEN
from tests.front.browser import Browser

PREFIX = "/memory/v2"
PASSWORD = "seven owls in a meadow"
LINKS = re.compile(rb'(?:href|src|action|data-progress)="(/[^"]*)"')


def test_all_of_it_is_served_below_a_prefix(serve, garden, django_user_model, settings):
    from archive.models import Principal

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    user = django_user_model.objects.create_user("alice", password=PASSWORD)
    Principal.objects.filter(subject="alice").update(user=user)
    token = host.issue_token("alice", by="host:tests", namespaces=None).secret
    served = serve(LYCHD_PATH_PREFIX=PREFIX)

    # The sign-in leads back to what was asked for, and its cookies are for this path alone.
    browser = Browser(served, PREFIX)
    asked = browser.ask(f"{PREFIX}/ns/{GARDEN}/review")
    assert (asked.status, asked.headers["location"].partition("?")[0]) == (302, f"{PREFIX}/sign-in")
    entered = browser.sign_in(PASSWORD, "alice")
    assert entered.status == 302
    assert entered.headers["location"].startswith(f"{PREFIX}/")
    assert browser.paths() == {f"{PREFIX}/"}

    # Every link of every page that is reached from here stays below the prefix and is answered.
    seen, waiting = set(), [entered.headers["location"]]
    while waiting and len(seen) < 25:
        address = waiting.pop(0).partition("#")[0].replace("&amp;", "&")
        if address in seen or address.endswith("/sign-out"):
            continue
        seen.add(address)
        assert address.startswith(f"{PREFIX}/"), address
        answer = browser.ask(address)
        # 403: an address that is there and that she has no grant for.
        assert answer.status in (200, 301, 302, 403, 405), (address, answer.status)
        if answer.status in (301, 302):
            waiting.append(answer.headers["location"])
        elif answer.headers.get("content-type", "").startswith("text/html"):
            waiting += [link.decode() for link in LINKS.findall(answer.body)]
    assert any("/static/" in address for address in seen)
    assert (
        f"http://127.0.0.1:{served.port}{PREFIX}/api/v1/ns/{GARDEN}".encode()
        in browser.ask(f"{PREFIX}/ns/{GARDEN}").body
    )

    # The API, its description, its problems; and the probes in both places.
    notes = f"{PREFIX}/api/v1/ns/{GARDEN}/notes"
    assert served.ask(notes, Authorization=f"Bearer {token}").status == 200
    refused = served.ask(notes)
    assert (refused.status, refused.json()["code"]) == (401, "unauthenticated")
    described = served.ask(f"{PREFIX}/api/v1/schema", Accept="application/json").json()
    assert described["servers"] == [{"url": PREFIX}]
    assert served.ask("/healthz").status == served.ask(f"{PREFIX}/healthz").status == 200
    for beside in ("/", "/sign-in", "/memory/v22/sign-in", "/static/lychd/pages.css", f"/api/v1/ns/{GARDEN}/notes"):
        assert served.ask(beside).status == 404, beside
    log = served.log.read_text()
    assert '"route": "/api/v1/ns/<str:ns>/notes"' in log
    assert '"route": "static"' in log


def test_bounds_are_those_of_the_address_below_the_prefix():
    scope = {"method": "POST", "path": f"{PREFIX}/sign-in", "root_path": PREFIX, "headers": []}
    assert kind_of(scope) is Kind.SIGN_IN
    scope["path"] = f"{PREFIX}/api/v1/ns/garden/notes"
    assert limit_of(address_of(scope), Kind.API) == limits.BODY_MAX_BYTES


@pytest.mark.parametrize("nonsense", ["archive", "/a b", "//x", "/a/../b", "/a?b", "https://x/y"])
def test_a_prefix_is_a_path(nonsense):
    with pytest.raises(ImproperlyConfigured, match="LYCHD_PATH_PREFIX must be"):
        Environment({"LYCHD_PATH_PREFIX": nonsense}).prefix("LYCHD_PATH_PREFIX")


@pytest.mark.parametrize(("given", "meant"), [("", ""), ("/", ""), ("/a/", "/a"), ("/a/b.c", "/a/b.c")])
def test_a_last_slash_is_no_part_of_it(given, meant):
    assert Environment({"LYCHD_PATH_PREFIX": given}).prefix("LYCHD_PATH_PREFIX") == meant
