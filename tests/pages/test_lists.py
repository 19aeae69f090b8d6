"""The first page and the lists: what they say of nothing, of the usual, and of the longest there is."""

import pytest

from archive import limits
from archive.authority import Caller
from archive.lifecycle import State
from archive.operations import host
from archive.operations.intake import intake_many
from inspection import reads
from inspection.cursors import List, PageRequest
from tests import cast

NS = f"/ns/{cast.GARDEN}"
LONGEST = "k" * limits.IDENTIFIER_MAX


def told(answer):
    return answer.content.decode()


def test_the_first_page_counts_what_waits_and_where_everything_stands(nursery, curator):
    answer = curator.get(NS)
    assert answer.context["waiting"] == 1
    assert answer.context["counts"] == {"candidate": 1, "promoted": 1, "archived": 1, "revoked": 1}
    page = told(answer)
    assert f'href="{NS}/review">Review candidate</a>' in page
    assert 'aria-label="1 candidate, 1 promoted, 1 archived, 1 revoked"' in page


def test_the_first_page_shows_receipts_whose_digest_was_computed_again(nursery, inspector):
    page = told(inspector.get(NS))
    assert f'href="{NS}/receipts/q-roses"' in page
    assert "matches" in page


def test_an_agent_is_given_the_address_that_it_was_asked_at(nursery, inspector):
    page = told(inspector.get(NS, headers={"host": "localhost:8123"}))
    assert f"LYCHD=http://localhost:8123/api/v1/ns/{cast.GARDEN}\n" in page


def test_what_is_empty_says_the_next_command(garden, inspector):
    assert "lychd ingest FOLDER" in told(inspector.get(NS))
    assert "lychd token create SUBJECT --namespace garden" in told(inspector.get(NS))
    assert "lychd ingest FOLDER" in told(inspector.get(f"{NS}/notes"))
    assert "Connect an agent" in told(inspector.get(f"{NS}/receipts"))
    assert "Nothing happened here yet" in told(inspector.get(f"{NS}/events"))
    assert "No note fits this" in told(inspector.get(f"{NS}/notes?state=revoked"))


def test_when_nothing_waits_the_first_page_says_so(alice, curator):
    cast.promoted(alice)
    assert "Nothing waits for a decision" in told(curator.get(NS))


def test_namespaces_can_be_switched(garden, inspector):
    assert "Namespaces" not in told(inspector.get(NS))
    other = host.configure_namespace("orchard", owner=cast.OWNER, policy_revision=cast.POLICY, by="host:tests")
    host.grant("ivy", other, host.actions_of(["inspector"]), by="host:tests")
    assert 'href="/ns/orchard"' in told(inspector.get(NS))


def test_notes_are_filtered_by_the_address(nursery, inspector):
    assert [note.state for note in inspector.get(f"{NS}/notes?state=archived").context["page"].items] == ["archived"]
    roses = inspector.get(f"{NS}/notes?source=roses").context["page"].items
    assert [note.source_revision for note in roses] == ["1", "2"]
    both = inspector.get(f"{NS}/notes?source=roses&state=candidate").context["page"].items
    assert [note.id for note in both] == [nursery.candidate.id]


@pytest.mark.parametrize("kind", ["notes", "receipts", "events"])
def test_a_list_is_walked_to_its_end_by_its_next_link(alice, bob, inspector, kind):
    count = limits.PAGE_SIZE_DEFAULT + 3
    for number in range(count):
        if kind == "receipts":
            if number == 0:
                cast.promoted(alice)
            cast.asked(bob)
        else:
            cast.admitted(alice, source=f"bed/{number}")
    first = inspector.get(f"{NS}/{kind}")
    assert len(first.context["page"].items) == limits.PAGE_SIZE_DEFAULT
    link = told(first).split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    second = inspector.get(f"{NS}/{kind}{link}")
    assert len(second.context["page"].items) == 3
    assert 'rel="next"' not in told(second)
    assert "From the beginning" in told(second)


def test_a_filter_stays_while_the_list_is_walked(alice, inspector):
    for number in range(limits.PAGE_SIZE_DEFAULT + 1):
        cast.admitted(alice, source="bed/1", revision=str(number))
    first = told(inspector.get(f"{NS}/notes?state=candidate&source=bed/1"))
    link = first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert link.startswith("?state=candidate&source=bed%2F1&cursor=")
    assert len(inspector.get(f"{NS}/notes{link}").context["page"].items) == 1


@pytest.mark.parametrize(
    "query",
    [
        "state=lost",
        "source=a%20b",
        "source=%00",
        "cursor=wrong",
        "cursor=%00",
        "state=candidate&state=promoted",
        "text=roses",
        "source=" + "k" * 129,
    ],
)
def test_an_address_that_asks_wrongly_is_refused_as_a_page(nursery, inspector, query):
    answer = inspector.get(f"{NS}/notes?{query}")
    assert answer.status_code == 400
    assert "The request is not well formed" in told(answer)


def test_the_longest_values_are_shown_whole(garden, alice, inspector):
    note = cast.admitted(
        alice,
        "W" * limits.NOTE_TEXT_MAX_CHARS,
        source=LONGEST,
        revision="r" * limits.IDENTIFIER_MAX,
        asserted_origin="o" * limits.REFERENCE_MAX,
        kind="n" * limits.KIND_MAX,
    )
    assert LONGEST in told(inspector.get(f"{NS}/notes"))
    page = told(inspector.get(f"{NS}/notes/{note.id}"))
    for value in (LONGEST, "r" * limits.IDENTIFIER_MAX, "o" * limits.REFERENCE_MAX, "n" * limits.KIND_MAX):
        assert value in page


def test_events_name_the_step_and_what_caused_it(nursery, alice, curator):
    cast.promote(alice, cast.step(nursery.candidate, State.PROMOTED))
    events = curator.get(f"{NS}/events").context["page"].items
    assert [(event.to_state, event.cause) for event in events][-2:] == [
        ("archived", "superseded"),
        ("promoted", "explicit"),
    ]
    assert "newer revision" in told(curator.get(f"{NS}/events"))


@pytest.mark.parametrize(
    ("address", "queries"),
    [("", 32), ("/notes", 11), ("/notes?state=candidate", 11), ("/receipts", 11), ("/events", 11)],
)
def test_a_list_costs_the_same_however_much_there_is(
    alice, bob, inspector, django_assert_num_queries, address, queries
):
    for number in range(12):
        cast.promoted(alice, source=f"bed/{number}")
        cast.asked(bob)
    inspector.get(NS)
    with django_assert_num_queries(queries):
        assert inspector.get(NS + address).status_code == 200


def test_the_first_page_says_what_it_checked_and_how_it_is_mended(nursery, inspector, superuser):
    page = told(inspector.get(NS))
    assert "The index has the words of all 1 promoted notes." in page
    assert "They were cut by the lexer that this server has today." in page
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute("UPDATE archive_corpus SET notes = 7")
        superuser.execute("UPDATE archive_namespace SET lexer_fingerprint = %s", ["0" * 64])
    page = told(inspector.get(NS))
    assert "The index counts 7 promoted notes, and there are 1." in page
    assert "The words were cut by another lexer than this server has today." in page
    assert f"lychd lexical rebuild --namespace {cast.GARDEN}" in page


def test_a_batch_is_listed_in_the_order_in_which_it_was_sent(alice, inspector):
    """One moment stamps all of it."""
    wanted = [cast.wanted(f"Bed {n}", source="bed", revision=str(n)) for n in range(limits.PAGE_SIZE_DEFAULT + 5)]
    moments = {answer.given().note.created_at for answer in intake_many(alice, wanted)}
    assert len(moments) < len(wanted)
    sent = [one.source_revision for one in wanted]
    first = inspector.get(f"{NS}/notes?source=bed")
    link = told(first).split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    paged = [*first.context["page"].items, *inspector.get(f"{NS}/notes{link}").context["page"].items]
    assert [note.source_revision for note in paged] == sent
    assert [note.source_revision for note in inspector.get(f"{NS}/source?key=bed").context["page"].items] == sent
    rows = inspector.get("/admin/archive/note/").context["cl"].result_list
    assert [row.source_revision for row in rows] == sent[::-1][: limits.PAGE_SIZE_DEFAULT]
    own = reads.list_own_intakes(alice, PageRequest(limit=limits.PAGE_SIZE_MAX)).items
    assert [note.source_revision for note in own] == sent


def test_a_cursor_of_the_order_by_moments_is_refused(alice, inspector):
    note = cast.admitted(alice)
    caller = Caller.in_namespace("ivy", cast.GARDEN)
    earlier = List.of(caller, {"list": "notes", "state": None, "source_key": None}).at_moment(note.created_at, note.id)
    answer = inspector.get(f"/api/v1/ns/{cast.GARDEN}/notes", {"cursor": earlier})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/cursor"
