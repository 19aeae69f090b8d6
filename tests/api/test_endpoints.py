"""What each address does beyond the scenarios: tags, batches, own intakes, feeds, and how many queries it may take."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from archive import limits
from archive.models import Note, Token
from archive.operations import host
from archive.transactions import moment
from tests import cast
from tests.api.conftest import Api, body, nothing_added, pointers, problem

NOWHERE = "7d444840-9dc0-41d1-b245-5ffdce74fad2"
LONG = "a" * (limits.NOTE_TEXT_MAX_CHARS + 1)


def candidate(caller: Api, **more: Any) -> str:
    return caller.post("notes", body(**more)).json()["note"]["id"]


# --- entity tags -----------------------------------------------------------------------------------------------------


def test_a_record_has_a_strong_tag_of_identity_and_version(api):
    note = candidate(api("alice"))
    assert api("ivy").get(f"notes/{note}")["ETag"] == f'"{note}.1"'


@pytest.mark.parametrize("form", ['"{0}.1"', 'W/"{0}.1"', '"other", "{0}.1"', "*"])
def test_an_unchanged_record_is_not_sent_again(api, form):
    note = candidate(api("alice"))
    answer = api("ivy").get(f"notes/{note}", if_none_match=form.format(note))
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer["ETag"] == f'"{note}.1"'
    assert answer["Cache-Control"] == "no-store"


def test_a_record_that_moved_is(api):
    alice = api("alice")
    note = candidate(alice)
    alice.post(f"notes/{note}/promote", {"expected_version": 1})
    answer = api("ivy").get(f"notes/{note}", if_none_match=f'"{note}.1"')
    assert (answer.status_code, answer["ETag"]) == (200, f'"{note}.2"')


def test_a_tag_tells_nothing_to_whoever_may_not_read(api):
    note = candidate(api("alice"))
    for tag in ("*", f'"{note}.1"', f'"{NOWHERE}.1"'):
        answer = api("bob").get(f"notes/{note}", if_none_match=tag)
        problem(answer, 403, "authority_refused")
        assert "ETag" not in answer


@pytest.mark.parametrize("sent", [b"", b"{}", b'{"expected_version":1}', b'{"reason":null}'])
def test_if_match_says_the_same_as_the_expected_version(api, sent):
    alice = api("alice")
    note = candidate(alice)
    answer = alice.raw("POST", f"notes/{note}/promote", sent, if_match=f'"{note}.1"')
    assert answer.status_code == 200, answer.content


@pytest.mark.parametrize(
    ("tag", "sent", "pointer"),
    [
        ('"{0}.1"', {"expected_version": 2}, "/expected_version"),
        ('"{0}.2"', {"expected_version": 1}, "/expected_version"),
        (f'"{NOWHERE}.1"', {}, ""),
        ('W/"{0}.1"', {}, ""),
        ('"{0}.1", "{0}.2"', {}, ""),
        ('"{0}.01"', {}, ""),
        ("{0}.1", {}, ""),
        ("*", {"expected_version": 1}, ""),
        ("", {"expected_version": 1}, ""),
    ],
)
def test_a_tag_that_differs_or_is_none_is_refused(api, tag, sent, pointer):
    alice = api("alice")
    note = candidate(alice)
    with nothing_added():
        answer = alice.post(f"notes/{note}/promote", sent, if_match=tag.format(note))
    assert pointers(problem(answer, 400, "invalid_request")) == [pointer]


def test_a_stale_tag_is_the_same_conflict(api):
    alice = api("alice")
    note = candidate(alice)
    answer = alice.post(f"notes/{note}/promote", {}, if_match=f'"{note}.2"')
    problem(answer, 409, "lifecycle_version_conflict")


def test_head_is_get_without_its_body(api):
    note = candidate(api("alice"))
    answer = api("ivy").raw("HEAD", f"notes/{note}", b"")
    assert (answer.status_code, answer["ETag"], answer.content) == (200, f'"{note}.1"', b"")


# --- intake ----------------------------------------------------------------------------------------------------------


def test_everything_an_intake_may_say_is_kept(api):
    alice = api("alice")
    note = candidate(
        alice,
        asserted_origin="almanac:1912/4",
        kind="observation",
        retention={"class": "short", "retain_until": "2030-01-01T01:00:00.5+01:00"},
        observed_at="0999-05-04T03:02:01Z",
    )
    told = api("ivy").get(f"notes/{note}").json()
    assert told["asserted_origin"] == "almanac:1912/4"
    assert told["kind"] == "observation"
    assert told["retention"] == {"class": "short", "retain_until": "2030-01-01T00:00:00.500000Z"}
    assert told["observed_at"] == "0999-05-04T03:02:01.000000Z"


def test_null_is_absent_where_there_may_be_nothing(api):
    alice = api("alice")
    sent = body(request_id="r1")
    alice.post("notes", sent)
    given = {"asserted_origin": None, "observed_at": None, "retention": {"retain_until": None}}
    again = alice.raw("POST", "notes", json.dumps({**sent, **given}).encode())
    assert again.json()["outcome"] == "replayed"


def test_what_another_took_in_is_told_without_who_it_was(api):
    candidate(api("alice"), asserted_origin="almanac:1912/4")
    answer = api("wanda").post("notes", body(asserted_origin="almanac:1912/4"))
    assert answer.json()["outcome"] == "existing"
    assert set(answer.json()["note"]) == {"id", "state", "lifecycle_version", "text_digest", "material_digest"}


# --- batches ---------------------------------------------------------------------------------------------------------


def test_each_item_of_a_batch_has_its_own_answer_in_order(api):
    alice = api("alice")
    candidate(alice, source_key="known", request_id="known")
    sent = [
        body(source_key="a"),
        body(source_key="known", text="Other bytes."),
        body(source_key="known", request_id="known"),
        body(source_key="a", request_id="again"),
        body(source_key="b", text=LONG),
        body(source_key="c"),
    ]
    answer = alice.post("notes/batch", {"items": sent})
    told = answer.json()["items"]
    assert answer.status_code == 200
    assert [one["status"] for one in told] == [201, 409, 200, 200, 413, 201]
    assert [one.get("outcome", one.get("code")) for one in told] == [
        "created",
        "source_revision_conflict",
        "replayed",
        "existing",
        "text_too_large",
        "created",
    ]
    assert set(told[1]) == {"status", "code"}
    again = alice.post("notes/batch", {"items": sent}).json()["items"]
    assert [one["status"] for one in again] == [200, 409, 200, 200, 413, 200]
    assert [one.get("note", {}).get("id") for one in again] == [one.get("note", {}).get("id") for one in told]


def test_one_malformed_item_refuses_the_batch_with_its_place(api):
    alice = api("alice")
    sent = [body(source_key="a"), body(source_key="b"), body(source_key="c"), body(source_key="d", text=5, colour=1)]
    with nothing_added():
        told = problem(alice.post("notes/batch", {"items": sent}), 400, "invalid_request")
    assert set(pointers(told)) == {"/items/3/text", "/items/3/colour"}
    sent[3] = body(source_key="d", request_id="a/b", retention={"class": ""})
    with nothing_added():
        told = problem(alice.post("notes/batch", {"items": sent}), 400, "invalid_request")
    assert set(pointers(told)) == {"/items/3/request_id", "/items/3/retention/class"}


def test_a_batch_of_texts_that_are_all_too_long_is_too_long(api):
    alice = api("alice")
    with nothing_added():
        told = problem(alice.post("notes/batch", {"items": [body(text=LONG), body(text=LONG)]}), 413, "text_too_large")
    assert pointers(told) == ["/items/0/text", "/items/1/text"]


def test_all_or_nothing_with_one_text_too_long_is_nothing(api):
    alice = api("alice")
    sent = {"items": [body(source_key="a"), body(source_key="b", text=LONG)], "atomic": True}
    with nothing_added():
        told = problem(alice.post("notes/batch", sent), 409, "batch_rolled_back")
    assert told["items"] == [{"status": 409, "code": "batch_rolled_back"}, {"status": 413, "code": "text_too_large"}]


def test_all_or_nothing_with_one_conflict_is_nothing(api):
    alice = api("alice")
    candidate(alice, source_key="known")
    sent = {"items": [body(source_key="a"), body(source_key="known", text="Other.")], "atomic": True}
    with nothing_added():
        told = problem(alice.post("notes/batch", sent), 409, "batch_rolled_back")
    assert told["items"][1] == {"status": 409, "code": "source_revision_conflict"}


def test_all_or_nothing_takes_one_slice(api):
    alice = api("alice")
    sent = {"items": [body(source_key=f"s{n}") for n in range(51)], "atomic": True}
    with nothing_added():
        assert pointers(problem(alice.post("notes/batch", sent), 400, "invalid_request")) == ["/atomic"]


def test_a_full_batch_of_full_texts_is_read_whole(api):
    """Five hundred notes of 16,000 bytes are just under 8 MiB, far beyond the bound of a single request."""
    sent = {"items": [body(source_key=f"s{n}", text="a" * 16_000) for n in range(500)]}
    content = json.dumps(sent).encode()
    assert limits.BODY_MAX_BYTES < len(content) <= limits.BATCH_BODY_MAX_BYTES
    answer = api("wanda").raw("POST", "notes/batch", content)
    assert answer.status_code == 200
    assert {one["status"] for one in answer.json()["items"]} == {201}


def test_a_batch_of_a_stranger_is_one_plain_refusal(api):
    bob = api("bob")
    with nothing_added():
        problem(bob.post("notes/batch", {"items": [body(), body()]}), 403, "authority_refused")
        problem(
            bob.post("transitions", {"items": [{"note_id": NOWHERE, "action": "promote", "expected_version": 1}]}),
            403,
            "authority_refused",
        )


def test_each_decision_of_a_batch_has_its_own_answer(api):
    alice = api("alice")
    one, other, third = (candidate(alice, source_key=key) for key in "abc")
    sent = [
        {"note_id": one, "action": "promote", "expected_version": 1},
        {"note_id": other, "action": "archive", "expected_version": 1},
        {"note_id": third, "action": "revoke", "expected_version": 1, "reason": "duplicate"},
        {"note_id": third, "action": "revoke", "expected_version": 1},
        {"note_id": NOWHERE, "action": "promote", "expected_version": 1},
        {"note_id": one, "action": "archive", "expected_version": 2},
    ]
    told = alice.post("transitions", {"items": sent}).json()["items"]
    assert [one["status"] for one in told] == [200, 409, 200, 409, 404, 200]
    assert [one.get("code") for one in told] == [
        None,
        "illegal_transition",
        None,
        "lifecycle_version_conflict",
        "record_absent",
        None,
    ]
    assert told[5]["note"]["state"] == "archived"


def test_all_or_nothing_decisions(api):
    alice = api("alice")
    one, other = (candidate(alice, source_key=key) for key in "ab")
    sent = [
        {"note_id": one, "action": "promote", "expected_version": 1},
        {"note_id": other, "action": "promote", "expected_version": 9},
    ]
    with nothing_added():
        told = problem(alice.post("transitions", {"items": sent, "atomic": True}), 409, "batch_rolled_back")
    assert [item["code"] for item in told["items"]] == ["batch_rolled_back", "lifecycle_version_conflict"]
    assert set(Note.objects.values_list("state", flat=True)) == {"candidate"}


@pytest.mark.parametrize(
    ("item", "pointer"),
    [
        ({"note_id": NOWHERE.upper()}, "/items/0/note_id"),
        ({"note_id": 1}, "/items/0/note_id"),
        ({"action": "delete"}, "/items/0/action"),
        ({"action": None}, "/items/0/action"),
        ({"expected_version": 0}, "/items/0/expected_version"),
        ({"expected_version": "1"}, "/items/0/expected_version"),
        ({"reason": "it is wrong"}, "/items/0/reason"),
        ({"to_state": "promoted"}, "/items/0/to_state"),
    ],
)
def test_a_malformed_decision_refuses_the_batch_with_its_place(api, item, pointer):
    sent = {"note_id": NOWHERE, "action": "promote", "expected_version": 1, **item}
    assert pointers(problem(api("alice").post("transitions", {"items": [sent]}), 400, "invalid_request")) == [pointer]


# --- decisions -------------------------------------------------------------------------------------------------------


def test_a_reason_stands_on_the_event(api):
    alice = api("alice")
    note = candidate(alice)
    alice.post(f"notes/{note}/revoke", {"expected_version": 1, "reason": "personal_data"})
    assert api("ivy").get(f"notes/{note}/events").json()["items"][-1]["reason"] == "personal_data"


@pytest.mark.parametrize("reason", ["because", 1, "", ["wrong"]])
def test_a_reason_is_of_the_list(api, reason):
    alice = api("alice")
    note = candidate(alice)
    answer = alice.post(f"notes/{note}/revoke", {"expected_version": 1, "reason": reason})
    assert pointers(problem(answer, 400, "invalid_request")) == ["/reason"]


@pytest.mark.parametrize("act", ["promote", "archive", "revoke"])
def test_a_note_of_another_namespace_is_absent(api, act):
    cast.plant("shed")
    alice = api("alice")
    candidate(alice)
    elsewhere = candidate(alice.elsewhere("shed"))
    problem(alice.post(f"notes/{elsewhere}/{act}", {"expected_version": 1}), 404, "record_absent")


def test_a_second_person_may_be_asked_for(api):
    alice = api("alice")
    note = candidate(alice)
    cast.plant(second_person=True)
    problem(alice.post(f"notes/{note}/promote", {"expected_version": 1}), 409, "second_person_required")


# --- review, flags ---------------------------------------------------------------------------------------------------


def test_a_review_shows_the_text_beside_what_it_would_replace(api):
    alice = api("alice")
    first = candidate(alice)
    assert alice.get(f"notes/{first}/text").json() == {"text": "Roses want morning sun.", "promoted": None}
    alice.post(f"notes/{first}/promote", {"expected_version": 1})
    second = candidate(alice, source_revision="2", text="  Roses want evening sun.\n")
    assert alice.get(f"notes/{second}/text").json() == {
        "text": "  Roses want evening sun.\n",
        "promoted": {"note_id": first, "text": "Roses want morning sun."},
    }


def test_a_review_of_a_tombstone_shows_nothing(api):
    alice = api("alice")
    note = candidate(alice)
    alice.post(f"notes/{note}/revoke", {"expected_version": 1})
    problem(alice.get(f"notes/{note}/text"), 409, "source_revision_revoked")


def test_a_review_refuses(api):
    problem(api("alice").get(f"notes/{NOWHERE}/text"), 404, "namespace_absent")
    note = candidate(api("alice"))
    problem(api("alice").get(f"notes/{NOWHERE}/text"), 404, "record_absent")
    for subject in ("bob", "wanda", "ivy", "otto", "charlie"):
        problem(api(subject).get(f"notes/{note}/text"), 403, "authority_refused")


def test_a_flag_is_one_mark_however_often_it_is_made(api):
    note = candidate(api("alice"))
    bob = api("bob")
    first = bob.post(f"notes/{note}/flags", {"reason": "outdated"})
    again = bob.post(f"notes/{note}/flags", {"reason": "outdated"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert {**first.json(), "repeated": True} == again.json()
    problem(bob.post(f"notes/{NOWHERE}/flags", {"reason": "outdated"}), 404, "record_absent")
    assert pointers(problem(bob.post(f"notes/{note}/flags", {}), 400, "invalid_request")) == ["/reason"]
    problem(bob.post(f"notes/{note}/flags", {"reason": "old"}), 400, "invalid_request")


# --- lists and feeds -------------------------------------------------------------------------------------------------


def test_a_list_can_be_narrowed(api):
    alice, ivy = api("alice"), api("ivy")
    one, other = candidate(alice, source_key="a/b"), candidate(alice, source_key="c")
    alice.post(f"notes/{one}/promote", {"expected_version": 1})

    def listed(query: str) -> list[str]:
        return [item["id"] for item in ivy.get(f"notes?{query}").json()["items"]]

    assert listed("state=promoted") == [one]
    assert listed("state=candidate") == [other]
    assert listed("source_key=a/b") == [one]
    assert listed("source_key=a/b&state=candidate") == []
    assert listed("limit=1") == [one]


def test_own_intakes_tell_what_became_of_them_and_why(api):
    alice, wanda = api("alice"), api("wanda")
    one = candidate(wanda, source_key="a")
    other = candidate(wanda, source_key="b")
    candidate(alice, source_key="c")
    alice.post(f"notes/{other}/revoke", {"expected_version": 1, "reason": "out_of_scope"})
    answer = wanda.get("intakes?mine")
    first, second = answer.json()["items"]
    assert (first["id"], first["state"], first["decision"]) == (one, "candidate", None)
    assert (second["id"], second["state"]) == (other, "revoked")
    assert second["decision"]["reason"] == "out_of_scope"
    assert set(second["decision"]) == {"to_state", "cause", "reason", "created_at"}
    assert "alice" not in answer.content.decode()
    page = wanda.get("intakes?mine=true&limit=1").json()
    rest = wanda.get(f"intakes?mine&limit=1&cursor={page['next_cursor']}").json()
    assert [item["id"] for item in (*page["items"], *rest["items"])] == [one, other]


def test_the_feed_goes_on_where_it_ended(api):
    alice, ivy = api("alice"), api("ivy")
    note = candidate(alice)
    alice.post(f"notes/{note}/promote", {"expected_version": 1})
    first = ivy.get("events?limit=1").json()
    second = ivy.get(f"events?cursor={first['next_cursor']}").json()
    assert [one["to_state"] for one in (*first["items"], *second["items"])] == ["candidate", "promoted"]
    quiet = ivy.get(f"events?cursor={second['next_cursor']}").json()
    assert quiet == {"items": [], "next_cursor": second["next_cursor"]}
    alice.post(f"notes/{note}/revoke", {"expected_version": 2})
    later = ivy.get(f"events?cursor={quiet['next_cursor']}").json()
    assert [(one["note_id"], one["to_state"]) for one in later["items"]] == [(note, "revoked")]


def test_absent_records(api):
    candidate(api("alice"))
    ivy = api("ivy")
    for path in (f"notes/{NOWHERE}", f"notes/{NOWHERE}/events", "intakes/never"):
        problem(ivy.get(path), 404, "record_absent")
    problem(ivy.get("receipts/never"), 404, "receipt_absent")
    problem(api("bob").post("recalls/never/resolve"), 404, "receipt_absent")


def test_discovery_of_one_namespace(api):
    cast.plant("shed")
    otto = api("otto")
    assert {one["namespace"] for one in otto.get("/api/v1/configuration").json()["bindings"]} == {"garden", "shed"}
    one = otto.get("/api/v1/configuration?namespace=shed").json()["bindings"]
    assert [binding["namespace"] for binding in one] == ["shed"]
    for wrong in ("nowhere", "..", ""):
        problem(otto.get(f"/api/v1/configuration?namespace={wrong}"), 403, "authority_refused")
    problem(api("bob").get("/api/v1/configuration"), 403, "authority_refused")
    host.disable_namespace("shed", by="host:tests")
    problem(otto.get("/api/v1/configuration?namespace=shed"), 404, "namespace_not_served")


# --- recalls ---------------------------------------------------------------------------------------------------------


def test_a_namespace_that_is_rebuilt_does_not_answer(api, superuser):
    alice, bob = api("alice"), api("bob")
    candidate(alice)
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE archive_namespace SET lexical_state = 'rebuilding'")
    with nothing_added():
        problem(bob.post("recalls", {"request_id": "q1", "query": "roses"}), 503, "capability_not_ready")


def test_a_receipt_that_was_tampered_with_is_not_believed(api, superuser):
    alice, bob = api("alice"), api("bob")
    candidate(alice)
    bob.post("recalls", {"request_id": "q1", "query": "roses"})
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE archive_recall SET receipt = jsonb_set(receipt, '{owner}', '\"others\"')")
    problem(api("ivy").get("receipts/q1"), 500, "integrity_failure")
    problem(bob.post("recalls/q1/resolve"), 500, "integrity_failure")
    problem(bob.post("recalls", {"request_id": "q1", "query": "roses"}), 500, "integrity_failure")


@pytest.mark.parametrize("sent", [b"", b"{}"])
def test_a_resolution_needs_no_body(api, sent):
    candidate(api("alice"))
    bob = api("bob")
    bob.post("recalls", {"request_id": "q1", "query": "roses"})
    assert bob.raw("POST", "recalls/q1/resolve", sent).status_code == 200


@pytest.mark.parametrize("media", ["application/json", "application/x-www-form-urlencoded"])
def test_a_media_type_alone_is_no_body(api, media):
    """Many clients send one with each POST, whatever they post."""
    candidate(api("alice"))
    bob = api("bob")
    bob.post("recalls", {"request_id": "q1", "query": "roses"})
    assert bob.raw("POST", "recalls/q1/resolve", b"", media, content_type=media).status_code == 200
    problem(bob.raw("POST", "recalls", b"", media, content_type=media), 400, "invalid_request")


# --- queries ---------------------------------------------------------------------------------------------------------

# The token and the door are one each, and so is each check point of authority. A transaction has BEGIN, its limits, the
# namespace, the binding again, and COMMIT; a hold has its queue besides. The clock and, for a single intake, a
# savepoint make the rest.
QUERIES = {
    "GET configuration": 4,
    "GET notes": 10,
    "GET note": 10,
    "GET note events": 11,
    "GET intake": 11,
    "GET own intakes": 18,
    "GET events": 10,
    "GET receipt": 10,
    "GET text": 13,
    "POST notes": 22,
    "POST notes again": 18,
    "POST notes batch of 1": 20,
    "POST notes batch of 50": 20,
    "POST promote": 16,
    "POST revoke": 15,
    "POST transitions": 15,
    "POST flags": 17,
    "POST recalls": 15,
    "POST recalls again": 12,
    "POST resolve": 13,
}


def test_each_address_takes_so_many_queries(api):
    alice, bob, ivy, otto, wanda = (api(subject) for subject in ("alice", "bob", "ivy", "otto", "wanda"))
    Token.objects.update(last_used_at=moment())
    note = candidate(alice, request_id="r1")
    newer = candidate(alice, source_revision="2", text="Roses want evening sun.")
    other, third = candidate(alice, source_key="b"), candidate(alice, source_key="c")
    candidate(wanda, source_key="d")
    alice.post(f"notes/{note}/promote", {"expected_version": 1})
    bob.post("recalls", {"request_id": "q1", "query": "roses"})
    found = {}

    def counted(name: str, act: Any) -> None:
        with CaptureQueriesContext(connection) as seen:
            answer = act()
        assert answer.status_code < 300, (name, answer.content)
        found[name] = len(seen)

    counted("GET configuration", lambda: otto.get("/api/v1/configuration?namespace=garden"))
    counted("GET notes", lambda: ivy.get("notes"))
    counted("GET note", lambda: ivy.get(f"notes/{note}"))
    counted("GET note events", lambda: ivy.get(f"notes/{note}/events"))
    counted("GET intake", lambda: ivy.get("intakes/r1"))
    counted("GET own intakes", lambda: wanda.get("intakes?mine"))
    counted("GET events", lambda: ivy.get("events"))
    counted("GET receipt", lambda: ivy.get("receipts/q1"))
    counted("GET text", lambda: alice.get(f"notes/{newer}/text"))
    counted("POST resolve", lambda: bob.post("recalls/q1/resolve"))
    counted("POST recalls again", lambda: bob.post("recalls", {"request_id": "q1", "query": "roses"}))
    counted("POST recalls", lambda: bob.post("recalls", {"request_id": "q2", "query": "roses"}))
    counted("POST flags", lambda: bob.post(f"notes/{note}/flags", {"reason": "wrong"}))
    sent = body(source_key="e")
    counted("POST notes", lambda: wanda.post("notes", sent))
    counted("POST notes again", lambda: wanda.post("notes", sent))
    counted("POST notes batch of 1", lambda: wanda.post("notes/batch", {"items": [body(source_key="f")]}))
    many = [body(source_key=f"many{n}") for n in range(50)]
    counted("POST notes batch of 50", lambda: wanda.post("notes/batch", {"items": many}))
    counted("POST promote", lambda: alice.post(f"notes/{newer}/promote", {"expected_version": 1}))
    counted("POST revoke", lambda: alice.post(f"notes/{other}/revoke", {"expected_version": 1}))
    moves = {"items": [{"note_id": third, "action": "promote", "expected_version": 1}]}
    counted("POST transitions", lambda: alice.post("transitions", moves))
    assert found == QUERIES
