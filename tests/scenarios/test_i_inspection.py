"""I. Discovery and inspection; what the pages show is proved with the pages."""

import json
import re
from uuid import UUID, uuid4

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from archive.authority import Caller
from archive.lifecycle import State
from archive.operations import host
from archive.operations.intake import intake_many
from archive.operations.resolution import resolve
from archive.operations.transition import revoke
from archive.refusals import AuthorityRefused, RecordAbsent
from inspection import discovery, reads
from inspection.cursors import PageRequest
from tests import cast
from tests.looking import looked_at
from tests.scenarios.acts import ACTS, READS, SNAPSHOTS, Scene, scene
from tests.scenarios.counting import Counts, refused
from tests.scenarios.wire import without_a_database

TEXTS = ("Roses want morning sun.", "Ferns want shade.", "Moss wants rain.", "Ivy wants a wall.", "Tulips want cold")


def statements_of(act) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        act()
    return [query["sql"] for query in captured.captured_queries]


def test_s130_configuration_is_told_without_a_look_at_the_archive(garden, counts: Counts):
    told = {}
    statements = statements_of(lambda: told.update(discovery.configuration("ivy")))

    assert told == {
        "profile": "local-public-notes@1",
        "policy": "postgres-bm25@1",
        "bindings": [
            {
                "profile": "local-public-notes@1",
                "namespace": "garden",
                "owner": "estate",
                "policy_revision": "policy-1",
                "binding_digest": garden.binding.digest,
                "text_configuration": "simple",
                "second_person": False,
            }
        ],
        "next_cursor": None,
    }
    assert statements
    assert not [one for one in statements if re.search(r"\b(archive|semantic)_", one)]
    counts.unchanged()


def test_s130_it_is_told_to_nobody_without_authority(garden, counts: Counts):
    for subject in ("bob", "charlie", None, "nobody"):
        with counts.refused(403, "authority_refused"):
            discovery.configuration(subject)
        with counts.refused(403, "authority_refused"):
            discovery.configuration(subject, cast.GARDEN)


def test_s130_each_namespace_is_told_to_those_who_may_know_of_it(garden):
    meadow = cast.plant("meadow")
    host.withdraw("ivy", "meadow", list(cast.ALL_ACTIONS))
    assert [one["namespace"] for one in discovery.configuration("ivy")["bindings"]] == ["garden"]
    assert [one["namespace"] for one in discovery.configuration("otto")["bindings"]] == ["garden", "meadow"]
    with pytest.raises(AuthorityRefused):
        discovery.configuration("ivy", meadow.binding.namespace)


def test_s131_it_says_nothing_about_what_is_retained(garden, alice, bob):
    scene(alice, bob)
    fitting = discovery.configuration("ivy", cast.GARDEN)
    binding = host.configure_namespace(cast.GARDEN, owner="heirs", policy_revision=cast.POLICY, by="host:tests")
    host.grant("ivy", binding, host.actions_of(["inspector"]), by="host:tests")

    told = discovery.configuration("ivy", cast.GARDEN)

    assert told["bindings"][0]["owner"] == "heirs"
    assert told["bindings"][0].keys() == fitting["bindings"][0].keys()
    assert "estate" not in json.dumps(told)


def test_s134_a_list_shows_every_state_and_no_text(alice, ivy, counts: Counts):
    notes = [
        cast.admitted(alice, TEXTS[0], source="a"),
        cast.promoted(alice, TEXTS[1], source="b"),
        cast.archived(alice, TEXTS[2], source="c"),
        cast.revoked(alice, TEXTS[3], source="d"),
    ]
    pages = []
    statements = statements_of(lambda: pages.append(reads.list_notes(ivy, PageRequest())))

    (page,) = pages
    assert [one.id for one in page.items] == [note.id for note in notes]
    assert [one.state for one in page.items] == ["candidate", "promoted", "archived", "revoked"]
    for one, text in zip(page.items, TEXTS, strict=False):
        assert (one.text_digest, one.char_count) == (notes[page.items.index(one)].text_digest, len(text))
        assert text not in json.dumps(one.as_json())
    assert_no_text(statements)


def assert_no_text(statements: list[str]) -> None:
    assert any("archive_note" in one for one in statements)
    for one in statements:
        assert not re.search(r'"text"|\btext\b(?!_)', one.replace("::text", "")), one
        assert not re.search(r"archive_posting|archive_corpus|vector|lexeme", one), one
        assert "*" not in one.replace("COUNT(*)", ""), one


@pytest.mark.parametrize("name", ["note_record", "note_events", "intake_record", "list_own_intakes", "own_decisions"])
def test_s134_no_other_read_selects_text_either(alice, bob, name):
    at = scene(alice, bob)
    statements = statements_of(lambda: ACTS[name].call(alice, at))
    assert_no_text([*statements, "archive_note"])


@pytest.mark.parametrize("state", list(State))
def test_s134_a_list_can_be_asked_for_one_state(alice, ivy, state):
    for source, make in zip("abcd", (cast.admitted, cast.promoted, cast.archived, cast.revoked), strict=True):
        make(alice, source=source)
    page = reads.list_notes(ivy, PageRequest(), state=state)
    assert [one.state for one in page.items] == [state.value]


@pytest.mark.parametrize("by_state", [None, State.CANDIDATE])
def test_s135_paging_meets_each_note_once_however_many_come_meanwhile(alice, ivy, by_state):
    first = many(alice, 120)
    seen, cursor, pages = [], None, 0
    while True:
        page = reads.list_notes(ivy, PageRequest(limit=50, cursor=cursor), state=by_state)
        seen += [one.id for one in page.items]
        pages += 1
        if pages <= 2:
            many(alice, 15)
        if page.next_cursor is None:
            break
        cursor = page.next_cursor

    assert len(seen) == len(set(seen)) == 150
    assert set(first) <= set(seen)
    assert set(seen[:120]) == set(first), "what was there comes first, what came meanwhile after it"
    assert reads.list_notes(ivy, PageRequest(limit=50), state=by_state).items[0].id == seen[0]


def many(caller: Caller, count: int) -> list[UUID]:
    items = [cast.wanted(f"Note {n}.", source=cast.fresh("s")) for n in range(count)]
    return [answer.given().note.id for answer in intake_many(caller, items)]


def test_s135_so_it_is_with_receipts_newest_first(alice, bob, ivy):
    cast.promoted(alice)
    asked = [cast.asked(bob).receipt["request_id"] for _ in range(7)]
    first = reads.list_receipts(ivy, PageRequest(limit=4))
    cast.asked(bob)
    rest = reads.list_receipts(ivy, PageRequest(limit=4, cursor=first.next_cursor))
    assert [one.request_id for one in (*first.items, *rest.items)] == asked[::-1]
    assert rest.next_cursor is None
    assert all(one.intact for one in first.items)


def test_s135_so_it_is_with_events_which_can_be_followed(alice, ivy):
    note = cast.promoted(alice)
    first = reads.namespace_events(ivy, PageRequest(limit=1))
    second = reads.namespace_events(ivy, PageRequest(limit=50, cursor=first.next_cursor))
    assert [one.to_state for one in (*first.items, *second.items)] == ["candidate", "promoted"]
    assert reads.namespace_events(ivy, PageRequest(cursor=second.next_cursor)).items == ()
    revoke(alice, cast.step(note, State.REVOKED))
    later = reads.namespace_events(ivy, PageRequest(cursor=second.next_cursor))
    assert [(one.note_id, one.to_state) for one in later.items] == [(note.id, "revoked")]


def test_s135_a_cursor_belongs_to_one_list_one_filter_and_one_caller(garden, alice, ivy, counts: Counts):
    many(alice, 3)
    cursor = reads.list_notes(ivy, PageRequest(limit=1)).next_cursor
    page = PageRequest(limit=1, cursor=cursor)
    for other in (
        lambda: reads.list_notes(ivy, page, state=State.CANDIDATE),
        lambda: reads.list_notes(ivy, page, source_key="s"),
        lambda: reads.list_notes(garden.caller("otto"), page),
        lambda: reads.list_receipts(ivy, page),
        lambda: reads.namespace_events(ivy, page),
        lambda: reads.list_notes(ivy, PageRequest(cursor="x" + str(cursor))),
        lambda: reads.list_notes(ivy, PageRequest(cursor="")),
        lambda: reads.list_notes(ivy, PageRequest(cursor="\ud800")),
        lambda: reads.list_notes(ivy, PageRequest(cursor="\x00")),
        lambda: reads.list_notes(ivy, PageRequest(), source_key="\x00"),
        lambda: reads.list_notes(ivy, PageRequest(), source_key="\ud800"),
        lambda: reads.receipt(ivy, "\x00"),
        lambda: reads.intake_record(ivy, "a/b"),
        lambda: resolve(alice, "\ud800"),
        lambda: PageRequest(limit=101),
        lambda: PageRequest(limit=0),
    ):
        with counts.refused(400, "invalid_request"):
            other()
    assert len(reads.list_notes(ivy, page).items) == 1


def test_s136_an_absent_namespace_lists_empty_and_stays_absent(alice, counts: Counts):
    page = PageRequest()
    for listed in (reads.list_notes, reads.list_own_intakes, reads.namespace_events):
        found = listed(alice, page)
        assert (found.items, found.next_cursor) == ((), None)
    assert reads.overview(alice).counts == dict.fromkeys(("candidate", "promoted", "archived", "revoked"), 0)
    with refused(404, "record_absent"):
        reads.note_record(alice, uuid4())
    counts.unchanged()
    assert counts.last["archive_namespace"][0] == 0


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_s137_every_read_is_read_only_and_writes_nothing(garden, alice, bob, counts: Counts, name):
    at = scene(alice, bob)
    caller = garden.caller("otto") if "receipt" in name else alice
    counts.mark()

    with looked_at() as asked:
        statements = statements_of(lambda: ACTS[name].call(caller, at))

    assert statements.count("BEGIN") == 1
    assert all(one.looked_only for one in asked if "archive_" in one.sql)
    assert any(one.looked_only for one in asked)
    assert not [one for one in statements if re.match(r"\s*(INSERT|UPDATE|DELETE|LOCK)|.*FOR (UPDATE|SHARE)", one)]
    counts.unchanged()


def test_s137_postgresql_itself_would_refuse_a_write(alice):
    from archive.transactions import DatabaseFault, snapshot

    cast.admitted(alice)
    with pytest.raises(DatabaseFault) as fault, snapshot(alice.binding), connection.cursor() as cursor:
        cursor.execute("UPDATE archive_note SET superseded_by_id = NULL")
    assert fault.value.sqlstate == "25006"


def test_s138_a_receipt_outlives_its_notes_and_claims_nothing(alice, bob, ivy, counts: Counts):
    note = cast.promoted(alice, TEXTS[0])
    published = cast.asked(bob, "roses", request_id="q1").receipt
    revoke(alice, cast.step(note, State.REVOKED))
    counts.mark()

    told = reads.receipt(ivy, "q1")

    assert {key: told[key] for key in published} == published
    assert not set(told) - set(published) - {"current_eligibility"}
    assert told.get("current_eligibility", "not_assessed") == "not_assessed"
    assert not any(word in json.dumps(told).lower() for word in ("morning", "want"))
    counts.unchanged()


def test_s139_a_receipt_that_is_absent_is_not_one_that_cannot_be_read(alice, bob, ivy, scripted, counts: Counts):
    with counts.refused(404, "receipt_absent"):
        reads.receipt(ivy, "q1")
    scene(alice, bob)
    with counts.refused(404, "receipt_absent"):
        reads.receipt(ivy, "no-such-request")
    with without_a_database(), refused(503, "storage_unavailable"):
        reads.receipt(ivy, "no-such-request")


def test_a_record_of_another_namespace_is_absent_here(garden, alice, ivy):
    meadow = cast.plant("meadow")
    note = cast.admitted(meadow.caller("alice"))
    cast.admitted(alice)
    with pytest.raises(RecordAbsent):
        reads.note_record(ivy, note.id)
    with pytest.raises(RecordAbsent):
        reads.note_events(ivy, note.id)


def test_the_reads_named_here_are_all_there_are():
    public = {
        name
        for name, found in vars(reads).items()
        if callable(found) and getattr(found, "__module__", "") == reads.__name__ and name[0].islower()
        if not name.startswith("_")
    }
    assert public == set(READS), sorted(public)


def test_an_empty_scene_is_answered_by_absence_or_emptiness_never_by_a_fault(alice, counts: Counts):
    cast.admitted(alice)
    counts.mark()
    connections["default"].ensure_connection()
    for name in ("note_record", "note_events", "intake_record"):
        with counts.refused(404, "record_absent"):
            ACTS[name].call(alice, Scene.empty())
