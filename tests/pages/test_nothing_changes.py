"""No GET changes a row, and every page keeps the policy that a browser holds it to."""

import re
from html.parser import HTMLParser

import pytest
from psycopg import sql

from tests.pages import paths

POLICY = [
    "base-uri 'none'",
    "default-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "object-src 'none'",
]


def rows(owner):
    """One digest a table, over every row in it."""
    names = [
        name
        for (name,) in owner.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
            " AND (relname LIKE 'archive\\_%' OR relname LIKE 'lychd\\_%') ORDER BY relname"
        )
    ]
    return {
        name: owner.execute(
            sql.SQL("SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {} t").format(sql.Identifier(name))
        ).fetchone()[0]
        for name in names
    }


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
