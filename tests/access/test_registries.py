"""Nothing leads into the service that is not in the table, and no row of it leads nowhere (RELIABILITY C25)."""

import argparse
from typing import Final

import pytest
from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, get_resolver, path

from inspection.admin.tables import site
from lychd import urls
from lychd.celery import app
from lychd.commands.entries import ENTRIES
from tests.access import doors, table
from tests.access.ground import Ground
from tests.access.registries import addresses, administered, commands, difference, lines, tasks

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
AT: Final = {door: [one for one in table.ENTRANCES if one.door == door] for door in doors.DOORS}
OVER_HTTP: Final = [*AT["api"], *AT["page"], *AT["admin"]]
CATCHES_ALL: Final = {one.address for one in OVER_HTTP if set(one.signs.values()) == {"0"}}


def pattern(address: str) -> str:
    return address.partition("?namespace=")[0]


LISTED: Final = {pattern(one.address) for one in OVER_HTTP}


def test_every_address_is_in_the_table() -> None:
    assert difference(set(addresses(get_resolver().url_patterns)), LISTED) == {}


def test_every_line_of_the_grammar_is_in_the_table() -> None:
    rows = {
        " ".join(word for word in one.address.split() if word.islower() and word[0] != "-") for one in AT["command"]
    }
    assert difference(lines(), rows | table.HOST) == {}
    assert not rows & table.HOST


def test_every_command_of_the_framework_is_in_the_table() -> None:
    ours = {name for name, brings in commands().items() if brings not in table.FRAMEWORK}
    words = {line.split()[0] for line in lines()}
    # `migrate` is the framework's by name, and the grammar's before it.
    assert difference(ours, (words | table.BUILDING) - {"migrate"}) == {}


def test_every_task_is_in_the_table() -> None:
    assert difference(tasks(app), {one.address for one in AT["task"]}) == {}


def test_every_model_of_the_admin_is_in_the_table_and_the_framework_s_own_site_is_mounted_nowhere() -> None:
    lists = {one.address for one in AT["admin"] if "<" not in one.address} - {"admin/"}
    assert difference({place(label) for label in administered(site)}, lists) == {}
    # Another test may have had an application for a while; what that one registered stays behind.
    installed = {label for label in administered(admin.site) if label.split(".")[0] in apps.app_configs}
    assert difference(installed, set(table.UNMOUNTED)) == {}
    assert not {place(label) for label in table.UNMOUNTED} & set(addresses(get_resolver().url_patterns))


def place(label: str) -> str:
    return f"admin/{label.lower().replace('.', '/')}/"


def test_an_entrance_that_nobody_listed_is_found_and_so_is_a_stale_row() -> None:
    def forgotten(request: HttpRequest) -> HttpResponse:
        raise NotImplementedError

    more: list[URLPattern | URLResolver] = [*urls.urlpatterns, path("api/v2/everything", forgotten)]
    assert difference(set(addresses(more)), LISTED) == {"not in the table": ["api/v2/everything"]}
    assert difference(set(addresses(urls.urlpatterns[1:])), LISTED) == {"only in the table": ["healthz"]}


def test_commands_of_the_host_name_no_principal_and_all_others_do() -> None:
    for entry in ENTRIES:
        parser = argparse.ArgumentParser()
        entry.describe(parser)
        acts = any(option.dest == "subject" and "--as" in option.option_strings for option in parser._actions)
        assert acts == (entry.line not in table.HOST), entry.line


@pytest.mark.parametrize("address", sorted(LISTED - CATCHES_ALL))
def test_an_address_takes_the_methods_of_the_table_alone(here: Ground, address: str) -> None:
    """Asked by those who hold every role, so that nothing but the method can be wrong."""
    rows = [one for one in OVER_HTTP if pattern(one.address) == address]
    takes = {one.method for one in rows}
    takes |= {"HEAD"} if "GET" in takes else set()
    # Signing in and out are the framework's views, which say what they take.
    takes |= {"OPTIONS"} if address in ("sign-in", "sign-out") else set()
    takes |= {"PUT"} if address == "sign-in" else set()
    before = here.digest()
    for method in METHODS:
        if method in takes:
            continue
        for role in ("curator", "root"):
            answer = doors.raw(rows[0], method, role, here, here.places["own"])
            assert answer.status_code == 405, method
            assert set(answer["Allow"].split(", ")) == takes, method
    assert here.digest() == before


@pytest.mark.parametrize("role", ["anonymous", "inspector", "root"])
def test_forged_forms_to_the_framework_s_own_admin_meet_no_such_address(here: Ground, role: str) -> None:
    """CVE-2019-19118, CVE-2018-16984: it cannot be reached, by its own superuser either."""
    before = here.digest()
    browser = here.browsers.get(role, here.nobody)
    asked = 0
    for page in addresses(admin.site.get_urls()):
        if f"admin/{page}" in LISTED:
            continue
        where = "/admin/" + doors.numbered(page)
        for method in ("GET", "POST", "PUT", "DELETE"):
            answer = browser.generic(method, where, b"is_superuser=on", "application/x-www-form-urlencoded")
            assert answer.status_code == 404, (method, where)
            assert "pbkdf2" not in answer.content.decode()
            asked += 1
    assert asked > 50
    assert here.digest() == before
