"""Lists stay quick however much there is: the plan of every statement that a page really sends is read.

Over some thousands of rows, with the planner's own choice and true statistics. What the clock says of two hundred
thousand is told by `lychd bench lists`; what a plan reads does not depend on who else uses the machine.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections

from inspection.admin.site import LISTED_MAX
from lychd import metrics
from lychd.bench import copies, lists
from tests import flushing

pytestmark = pytest.mark.django_db

SCALE = lists.Scale(notes=8_000, namespaces=200, few=200, own=200, each=40, receipts=20)
LARGE = {
    "archive_intake_request",
    "archive_lifecycle_event",
    "archive_note",
    "archive_posting",
    "archive_recall",
    "archive_source",
}
"""Tables that no list may read whole."""

INDEXES = {
    "home": {"note_state_in_order", "event_decided"},
    "review.same": {"note_waiting", "note_promoted_text"},
    "review.proposer": {"note_waiting"},
    "notes.middle": {"note_number_once"},
    "notes.candidate.middle": {"note_state_in_order"},
    "notes.source": {"note_revision_once"},
    "find.beginning_of_text": {"note_text_digest", "note_material_digest"},
    "find.beginning_of_receipt": {"recall_receipt_digest", "recall_request_digest"},
    "tables.note": {"note_number_once"},
    "tables.note.source": {"source_named"},
    "tables.note.digest": {"note_text_digest"},
    "tables.lifecycleevent.revoked": {"event_state_keyset"},
    "metrics": {"note_state_in_order", "recall_missed"},
}
"""What a list is walked, counted or searched by."""


@pytest.fixture(scope="module")
def plans(django_db_setup: None, django_db_blocker: Any) -> dict[str, list[dict[str, Any]]]:
    """Each list by its name, with every node of every plan of the statements that it sent."""
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("rows are copied as the embedded server's superuser")
    with django_db_blocker.unblock(), flushing.as_owner() as owner:
        try:
            _, many = lists.filled(SCALE, lambda *_: None)
            # Rows of a commit that is not on the disk yet are visible to all, and no page says so.
            owner.execute("SET synchronous_commit = on")
            owner.execute("SELECT pg_logical_emit_message(true, 'tests', '')")
            owner.execute("RESET synchronous_commit")
            owner.execute("VACUUM (ANALYZE)")
            read = {name: _nodes(act) for name, act in lists.addresses(many)}
            with copies.hidden(["recall_missed"]):
                read["hidden"] = _nodes(metrics.exposition)
        finally:
            connections["default"].close()
            flushing.flush(owner)
    return read


def _nodes(act: Any) -> list[dict[str, Any]]:
    sent: list[tuple[str, Any]] = []

    def told(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        sent.append((statement, params))
        return execute(statement, params, many, context)

    with connection.execute_wrapper(told):
        act()
    found = []
    for statement, params in sent:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", params)
                (told_,) = cursor.fetchone()
            found += list(_within(told_[0]["Plan"], statement))
    return found


def _within(node: dict[str, Any], statement: str) -> Iterator[dict[str, Any]]:
    yield {**node, "statement": statement}
    for part in node.get("Plans", ()):
        yield from _within(part, statement)


def test_no_list_reads_a_large_table_whole(plans):
    whole = {
        f"{name}: {node['Relation Name']}"
        for name, nodes in plans.items()
        # Of a few thousand rows a late page, or as many as are counted at most, are a good part.
        if name != "hidden" and not name.endswith(".late")
        for node in nodes
        if f" LIMIT {LISTED_MAX}" not in node["statement"]
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE
    }
    assert not whole, ", ".join(sorted(whole))


@pytest.mark.parametrize("name", INDEXES)
def test_a_list_uses_the_index_that_it_was_given(plans, name):
    used = {node["Index Name"] for node in plans[name] if "Index Name" in node}
    assert used >= INDEXES[name]


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("home", "note_state_in_order"),
        ("home", "event_decided"),
        ("review.same", "note_waiting"),
        ("review.same", "note_promoted_text"),
        ("review.age", "note_waiting"),
        ("metrics", "note_state_in_order"),
        ("metrics", "recall_missed"),
    ],
)
def test_what_is_counted_is_counted_in_the_index_alone(plans, name, index):
    assert index in {node["Index Name"] for node in plans[name] if node["Node Type"] == "Index Only Scan"}


def test_every_index_of_growth_is_looked_for_here():
    assert set(lists.GROWN) <= set().union(*INDEXES.values())


def test_an_index_that_is_hidden_is_in_no_plan(plans):
    """What the bench compares with can be told apart."""
    assert "recall_missed" not in {node.get("Index Name") for node in plans["hidden"]}
