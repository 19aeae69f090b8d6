"""No GET changes a row, and every page keeps the policy that a browser holds it to."""

import re
from html.parser import HTMLParser

import pytest
from django.urls import URLResolver, get_resolver
from psycopg import sql

from archive.lifecycle import Reason
from archive.models import IntakeRequest
from archive.operations import host
from archive.operations.flag import flag
from inspection.admin.tables import TABLES
from tests import cast
from tests.pages import paths
from tests.semantic import acts
from tests.semantic.conftest import counts, dora, meaning, script  # noqa: F401

POLICY = [
    "base-uri 'none'",
    "default-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "object-src 'none'",
]


def rows(owner):
    """One digest a table, over every row in it; when a token was last used, to the hour, is the one thing left out."""
    names = [
        name
        for (name,) in owner.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
            " AND relname ~ '^(archive|semantic|lychd)_' ORDER BY relname"
        )
    ]
    told = {"lychd_token": "(to_jsonb(t) - 'last_used_at')::text"}
    return {
        name: owner.execute(
            sql.SQL("SELECT md5(string_agg({0}, '|' ORDER BY {0})) FROM {1} t").format(
                sql.SQL(told.get(name, "t::text")), sql.Identifier(name)
            )
        ).fetchone()[0]
        for name in names
    }


def every_address(names):
    """Every address of the service that takes a GET, with identifiers that exist; what takes POST alone is left out."""

    def below(patterns, before):
        for one in patterns:
            if isinstance(one, URLResolver):
                yield from below(one.url_patterns, before + str(one.pattern))
            else:
                yield before + str(one.pattern), one

    for route, pattern in below(get_resolver().url_patterns, ""):
        if "^" in route or pattern.name in {"sign-out", *paths.POSTED}:
            continue
        key = route.rpartition("/<path:object_id>")[0].removeprefix("admin/")
        filled = re.sub(
            r"<(?:\w+:)?(\w+)>", lambda found, key=key: str(names.get((key, found[1]), names.get(found[1]))), route
        )
        yield "/" + filled + QUERIES.get(route, "")


QUERIES = {
    "ns/<key:ns>/source": "?key=roses",
    "ns/<key:ns>/notes/<uuid:note_id>/revocation": "?version=2",
    "api/v1/ns/<str:ns>/intakes": "?mine",
    "api/v1/generation-configuration": f"?namespace={cast.GARDEN}",
}


def test_no_get_of_any_address_changes_a_row(nursery, sign_in, otto, dora, bob, garden, owner, settings):  # noqa: F811
    settings.LYCHD_OPEN_DESCRIPTION = True
    acts.registered(otto)
    derivation = acts.derived(dora, nursery.promoted)
    roles = ["curator", "writer", "recaller", "inspector", "operator", "deriver"]
    host.grant("alice", garden.binding, host.actions_of(roles), by="host:tests")
    host.issue_token("alice", by="host:tests", namespaces=None)
    flag(bob, nursery.promoted.id, Reason.OUTDATED)
    intake = IntakeRequest.objects.first()
    names = {
        "ns": cast.GARDEN,
        "note_id": nursery.promoted.id,
        "request_id": nursery.request_id,
        "derivation_id": derivation.id,
        "reference": derivation.generation,
    }
    for table in TABLES:
        meta = table.model._meta
        names[f"{meta.app_label}/{meta.model_name}", "object_id"] = table.model.objects.values_list(
            "pk", flat=True
        ).first()
    client = sign_in("alice")
    before = rows(owner)
    assert {"archive_note", "semantic_derivation", "lychd_grant"} <= before.keys()
    answers = {}
    for address in every_address(names):
        found = address.replace(nursery.request_id, intake.request_id) if "/intakes/" in address else address
        answers[found] = client.get(found).status_code
    assert rows(owner) == before
    taking = {address: status for address, status in answers.items() if status != 405}
    assert len(taking) > 60
    others = {address: status for address, status in taking.items() if status != 200}
    assert len(others) <= 0.05 * len(taking), others


@pytest.mark.parametrize("who", ["alice", "ivy", "charlie", "stranger"])
def test_no_get_changes_a_row(nursery, sign_in, owner, who):
    client = sign_in(who)
    before = rows(owner)
    assert len(before) > 10
    addresses = [*paths.reading_pages(nursery), *paths.decision_pages(nursery.candidate), "/no/such/page"]
    for address in addresses:
        client.get(address)
        client.head(address)
        client.get(address, {"cursor": "wrong", "state": "lost"})
    assert rows(owner) == before


def test_a_decision_takes_post_alone(nursery, curator):
    for address in paths.decision_pages(nursery.candidate):
        for ask in (curator.get, curator.head, curator.put, curator.delete, curator.patch):
            answer = ask(address)
            assert answer.status_code == 405
            assert answer["Allow"] == "POST"


class Markup(HTMLParser):
    """Whatever a strict policy would refuse, and whatever would ask another site."""

    def __init__(self):
        super().__init__()
        self.faults = []
        self.ids = []
        self.loads = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "style" or "style" in given or (tag == "script" and "src" not in given):
            self.faults.append(self.get_starttag_text())
        if any(name.startswith("on") for name in given):
            self.faults.append(self.get_starttag_text())
        if "id" in given:
            self.ids.append(given["id"])
        for name in ("src", "href", "action"):
            value = given.get(name) or ""
            if re.match(r"\s*(javascript:|data:|//|https?:)", value):
                self.faults.append(self.get_starttag_text())


def test_every_page_keeps_the_strict_policy_and_is_kept_by_no_cache(nursery, curator, inspector):
    for client in (curator, inspector):
        for address in [*paths.reading_pages(nursery), "/no/such/page", "/ns/garden/notes?state=lost"]:
            answer = client.get(address)
            assert sorted(answer["Content-Security-Policy"].split("; ")) == POLICY, address
            if address.startswith("/ns/") or address == "/no/such/page":
                assert "no-store" in answer["Cache-Control"], address
            if not answer["Content-Type"].startswith("text/html"):
                continue
            markup = Markup()
            markup.feed(answer.content.decode())
            assert markup.faults == [], address
            assert len(markup.ids) == len(set(markup.ids)), address
