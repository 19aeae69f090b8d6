"""The acceptance scenarios A to I where they speak of HTTP, each under its number."""

import json
import threading
from typing import Any

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError, connection, connections
from django.test.utils import CaptureQueriesContext
from psycopg import sql

from archive.authority import Action
from archive.models import IntakeRequest, LifecycleEvent, Namespace, Note, Recall
from archive.operations import host
from archive.operations.migration import migrate
from tests import cast, flushing
from tests.api.conftest import Api, body, nothing_added, problem, same_but_for_the_id
from tests.looking import looked_at

TEXT = "Roses want morning sun."


def recall(caller: Api, **more: Any) -> Any:
    return caller.post("recalls", {"request_id": "q1", "query": "roses", **more})


def together(*acts):
    """Start every act at one barrier, each on a thread and a connection of its own; return what they answered."""
    barrier = threading.Barrier(len(acts))
    answers = [None] * len(acts)

    def run(place, act):
        try:
            barrier.wait()
            answers[place] = act()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(place, act)) for place, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


# --- A. intake -------------------------------------------------------------------------------------------------------


def test_s001_a_first_intake_makes_a_candidate(api):
    answer = api("wanda").post("notes", body(request_id="r1"))
    told = answer.json()
    assert (answer.status_code, told["outcome"]) == (201, "created")
    assert (told["note"]["state"], told["note"]["lifecycle_version"]) == ("candidate", 1)
    assert (Note.objects.count(), IntakeRequest.objects.count()) == (1, 1)
    assert TEXT not in answer.content.decode()


def test_s002_the_same_request_again_is_a_replay(api):
    wanda = api("wanda")
    sent = body(request_id="r1")
    first = wanda.post("notes", sent)
    with nothing_added():
        again = wanda.post("notes", sent)
    assert (again.status_code, again.json()["outcome"]) == (200, "replayed")
    assert again.json()["note"] == first.json()["note"]


def test_s003_the_same_identity_with_one_more_space_is_a_conflict(api):
    wanda = api("wanda")
    wanda.post("notes", body(request_id="r1"))
    with nothing_added():
        problem(wanda.post("notes", body(request_id="r1", text=TEXT + " ")), 409, "request_conflict")


def test_s004_other_bytes_of_one_revision_are_a_conflict(api):
    wanda = api("wanda")
    wanda.post("notes", body(request_id="r1"))
    with nothing_added():
        problem(wanda.post("notes", body(request_id="r2", text="Other.")), 409, "source_revision_conflict")


def test_s005_the_same_material_under_another_request_is_the_same_note(api):
    wanda = api("wanda")
    first = wanda.post("notes", body(request_id="r1"))
    again = wanda.post("notes", body(request_id="r2"))
    assert (again.status_code, again.json()["outcome"]) == (200, "existing")
    assert again.json()["note"]["id"] == first.json()["note"]["id"]
    assert (Note.objects.count(), IntakeRequest.objects.count()) == (1, 2)


def test_s007_equal_text_of_two_sources_is_two_notes(api):
    wanda = api("wanda")
    one, other = (wanda.post("notes", body(source_key=key)).json()["note"]["id"] for key in ("s", "s2"))
    assert one != other
    assert Note.objects.filter(superseded_by__isnull=True).count() == 2


@pytest.mark.parametrize(
    ("text", "status"), [("a" * 16_385, 413), ("\U0001f333" * 16_384 + "a", 413), (" \n", 400), ("a\x00", 400)]
)
def test_s009_text_out_of_bounds_retains_no_namespace(api, text, status):
    wanda = api("wanda")
    with nothing_added():
        assert wanda.post("notes", body(text=text)).status_code == status
    assert not Namespace.objects.exists()


@pytest.mark.parametrize("content", [b'{"text":"a","text":"b"}', json.dumps({**body(), "more": 1}).encode()])
def test_s010_unknown_and_repeated_fields(api, content):
    wanda = api("wanda")
    with nothing_added():
        problem(wanda.raw("POST", "notes", content), 400, "invalid_request")


def test_s011_identical_intakes_at_one_moment(api):
    wanda = api("wanda")
    sent = body(request_id="r1")
    answers = together(*[lambda: Api(wanda.secret).post("notes", sent)] * 4)
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 201]
    assert len({answer.json()["note"]["id"] for answer in answers}) == 1
    assert (Note.objects.count(), IntakeRequest.objects.count()) == (1, 1)


def test_s012_different_bytes_of_one_revision_at_one_moment(api):
    wanda = api("wanda")
    answers = together(
        lambda: Api(wanda.secret).post("notes", body(text="One.")),
        lambda: Api(wanda.secret).post("notes", body(text="Other.")),
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    assert Note.objects.count() == 1


# --- B. tombstones ---------------------------------------------------------------------------------------------------


def revoked(alice: Api, **more: Any) -> str:
    note = alice.post("notes", body(request_id="r1", **more)).json()["note"]["id"]
    assert alice.post(f"notes/{note}/revoke", {"expected_version": 1}).status_code == 200
    return note


def test_s020_a_revoked_revision_is_not_taken_in_again(api):
    alice = api("alice")
    revoked(alice)
    with nothing_added():
        problem(alice.post("notes", body(request_id="r3")), 409, "source_revision_revoked")


def test_s021_another_revision_is(api):
    alice = api("alice")
    revoked(alice)
    answer = alice.post("notes", body(request_id="r4", source_revision="2"))
    assert (answer.status_code, answer.json()["note"]["state"]) == (201, "candidate")


def test_s023_the_first_request_replays_to_the_tombstone(api):
    alice = api("alice")
    note = revoked(alice)
    answer = alice.post("notes", body(request_id="r1"))
    assert (answer.status_code, answer.json()["outcome"]) == (200, "replayed")
    assert (answer.json()["note"]["id"], answer.json()["note"]["state"]) == (note, "revoked")
    assert TEXT not in answer.content.decode()


# --- C. lifecycle ----------------------------------------------------------------------------------------------------


def candidate(caller: Api, **more: Any) -> str:
    return caller.post("notes", body(**more)).json()["note"]["id"]


def promoted(caller: Api, **more: Any) -> str:
    note = candidate(caller, **more)
    assert caller.post(f"notes/{note}/promote", {"expected_version": 1}).status_code == 200
    return note


def test_s030_promotion(api):
    alice = api("alice")
    note = candidate(alice)
    answer = alice.post(f"notes/{note}/promote", {"expected_version": 1})
    assert answer.status_code == 200
    assert (answer.json()["note"]["state"], answer.json()["note"]["lifecycle_version"]) == ("promoted", 2)
    assert answer.json()["superseded"] is None
    event = LifecycleEvent.objects.get(from_version=1)
    assert (event.from_state, event.to_state, event.to_version) == ("candidate", "promoted", 2)


def test_s031_a_second_revision_archives_the_first(api):
    alice = api("alice")
    first = promoted(alice)
    second = candidate(alice, source_revision="2", text="Roses want evening sun.")
    told = alice.post(f"notes/{second}/promote", {"expected_version": 1}).json()
    assert (told["note"]["state"], told["note"]["lifecycle_version"]) == ("promoted", 2)
    superseded = told["superseded"]
    assert (superseded["id"], superseded["state"], superseded["lifecycle_version"]) == (first, "archived", 3)
    assert superseded["superseded_by"] == second
    event = api("ivy").get(f"notes/{first}/events").json()["items"][-1]
    assert (event["cause"], event["caused_by_note"]) == ("superseded", second)


def test_s033_a_stale_version_names_no_other(api):
    alice = api("alice")
    note = promoted(alice)
    with nothing_added():
        told = problem(alice.post(f"notes/{note}/archive", {"expected_version": 1}), 409, "lifecycle_version_conflict")
    assert "2" not in told["detail"] + told["title"]


def test_s034_a_lost_answer_is_found_by_reading_the_record(api):
    alice = api("alice")
    note = promoted(alice)
    problem(alice.post(f"notes/{note}/promote", {"expected_version": 1}), 409, "lifecycle_version_conflict")
    record = api("ivy").get(f"notes/{note}").json()
    assert (record["state"], record["lifecycle_version"]) == ("promoted", 2)


def test_s035_a_candidate_is_not_archived(api):
    alice = api("alice")
    note = candidate(alice)
    problem(alice.post(f"notes/{note}/archive", {"expected_version": 1}), 409, "illegal_transition")


def test_s036_an_archived_note_is_not_promoted_again(api):
    alice = api("alice")
    note = promoted(alice)
    alice.post(f"notes/{note}/archive", {"expected_version": 2})
    problem(alice.post(f"notes/{note}/promote", {"expected_version": 3}), 409, "illegal_transition")


def test_s037_two_promotions_of_one_source_at_one_moment(api):
    alice = api("alice")
    one, other = candidate(alice), candidate(alice, source_revision="2", text="Roses want evening sun.")
    answers = together(
        *[
            lambda note=note: Api(alice.secret).post(f"notes/{note}/promote", {"expected_version": 1})
            for note in (one, other)
        ]
    )
    assert [answer.status_code for answer in answers] == [200, 200]
    assert sorted(Note.objects.values_list("state", flat=True)) == ["archived", "promoted"]


# --- D. recall -------------------------------------------------------------------------------------------------------


def test_s050_only_what_is_promoted_is_selected(api):
    alice = api("alice")
    candidate(alice, source_key="a")
    wanted = promoted(alice, source_key="b")
    archived = promoted(alice, source_key="c")
    alice.post(f"notes/{archived}/archive", {"expected_version": 2})
    gone = promoted(alice, source_key="d")
    alice.post(f"notes/{gone}/revoke", {"expected_version": 2})
    selected = recall(api("bob")).json()["receipt"]["selected"]
    assert [one["note_id"] for one in selected] == [wanted]


def test_s051_equal_ranks_are_ordered_by_identity(api):
    alice, bob = api("alice"), api("bob")
    notes = sorted(promoted(alice, source_key=key) for key in "abcde")
    for n in range(20):
        selected = recall(bob, request_id=f"q{n}").json()["receipt"]["selected"]
        assert [one["note_id"] for one in selected] == notes


def test_s052_what_does_not_fit_is_an_omission(api):
    alice = api("alice")
    first = promoted(alice, source_key="a", text="roses " * 16 + "end.")
    second = promoted(alice, source_key="b", text="roses " * 20 + "soil " * 1_500)
    third = promoted(alice, source_key="c", text="roses in a long and quiet bed of soil and stone")
    receipt = recall(api("bob"), char_budget=200).json()["receipt"]
    assert [one["note_id"] for one in receipt["omitted"]] == [second]
    assert receipt["omitted"][0]["reason"] == "char_budget"
    assert {one["note_id"] for one in receipt["selected"]} == {first, third}


def test_s054_a_miss_is_a_success_with_a_receipt(api):
    promoted(api("alice"))
    answer = recall(api("bob"), query="tulips")
    assert (answer.status_code, answer.json()["receipt"]["outcome"]) == (201, "miss")
    assert answer.json()["receipt"]["selected"] == []
    assert Recall.objects.count() == 1


def test_s056_a_namespace_that_was_never_retained(api):
    bob = api("bob")
    with nothing_added():
        problem(recall(bob), 404, "namespace_absent")


@pytest.mark.parametrize("wrong", [{"query": "a" * 1_025}, {"top_k": 21}, {"char_budget": 0}])
def test_s057_a_recall_out_of_bounds_reads_nothing(api, wrong):
    promoted(api("alice"))
    bob = api("bob")
    with CaptureQueriesContext(connection) as seen:
        problem(recall(bob, **wrong), 400, "invalid_request")
    assert not [query for query in seen.captured_queries if "archive_" in query["sql"]]


# --- E. receipts -----------------------------------------------------------------------------------------------------


def test_s061_a_recall_again_gives_the_first_receipt(api):
    alice, bob = api("alice"), api("bob")
    promoted(alice, source_key="a")
    first = recall(bob)
    promoted(alice, source_key="b", text="Roses, roses.")
    again = recall(bob)
    assert (again.status_code, again.json()["outcome"]) == (200, "replayed")
    assert again.json()["receipt"] == first.json()["receipt"]


def test_s062_a_recall_again_with_another_budget_is_a_conflict(api):
    promoted(api("alice"))
    bob = api("bob")
    recall(bob)
    with nothing_added():
        problem(recall(bob, top_k=7), 409, "request_conflict")


def test_s064_resolution_gives_attributed_data(api):
    alice, bob = api("alice"), api("bob")
    promoted(alice, source_key="a", text="Roses one.")
    promoted(alice, source_key="b", text="Roses other.")
    recall(bob)
    answer = bob.post("recalls/q1/resolve")
    assert answer["Cache-Control"] == "no-store"
    sources = answer.json()["sources"]
    assert {one["data"]["text"] for one in sources} == {"Roses one.", "Roses other."}
    for one in sources:
        assert set(one) == {
            "rank", "note_id", "source_key", "source_revision", "text_digest", "lifecycle_version", "classification",
            "data",
        }  # fmt: skip
        assert set(one["data"]) == {"text"}


@pytest.mark.parametrize("act", ["archive", "revoke"])
def test_s065_one_withdrawn_source_withholds_all(api, act):
    alice, bob = api("alice"), api("bob")
    promoted(alice, source_key="a", text="Roses one.")
    other = promoted(alice, source_key="b", text="Roses other.")
    recall(bob)
    alice.post(f"notes/{other}/{act}", {"expected_version": 2})
    answer = bob.post("recalls/q1/resolve")
    problem(answer, 409, "selection_stale")
    assert "Roses" not in answer.content.decode()


def test_s066_no_newer_revision_takes_the_place_of_a_superseded_one(api):
    alice, bob = api("alice"), api("bob")
    promoted(alice)
    recall(bob)
    promoted(alice, source_revision="2", text="Roses want evening sun.")
    answer = bob.post("recalls/q1/resolve")
    problem(answer, 409, "selection_stale")
    assert "evening" not in answer.content.decode()


def test_s067_an_empty_receipt_resolves_to_nothing(api):
    promoted(api("alice"))
    bob = api("bob")
    recall(bob, query="tulips")
    answer = bob.post("recalls/q1/resolve")
    assert (answer.status_code, answer.json()["sources"]) == (200, [])


def test_s070_anothers_receipt_does_not_resolve(api):
    promoted(api("alice"))
    recall(api("bob"))
    problem(api("alice").post("recalls/q1/resolve"), 409, "receipt_binding_mismatch")


# --- F. binding and configuration ------------------------------------------------------------------------------------

READS = ["notes", "notes/7d444840-9dc0-41d1-b245-5ffdce74fad2", "events", "intakes?mine", "receipts/q1", "intakes/r1"]


def every_call(caller: Api) -> list[Any]:
    """Call each address of the archive once, well formed."""
    note = "7d444840-9dc0-41d1-b245-5ffdce74fad2"
    return [
        *[caller.get(path) for path in [*READS, f"notes/{note}/events", f"notes/{note}/text"]],
        caller.post("notes", body()),
        caller.post("notes/batch", {"items": [body()]}),
        caller.post("transitions", {"items": [{"note_id": note, "action": "promote", "expected_version": 1}]}),
        *[caller.post(f"notes/{note}/{act}", {"expected_version": 1}) for act in ("promote", "archive", "revoke")],
        caller.post(f"notes/{note}/flags", {"reason": "wrong"}),
        caller.post("recalls", {"request_id": "q1", "query": "roses"}),
        caller.post("recalls/q1/resolve"),
    ]


def test_s080_while_the_profile_is_off_nothing_is_read(api, settings):
    alice = api("alice")
    settings.LYCHD_ARCHIVE = None
    with nothing_added(), CaptureQueriesContext(connection) as seen:
        answers = [*every_call(alice), alice.get("/api/v1/configuration")]
    for answer in answers:
        problem(answer, 503, "profile_off")
    archive = [query["sql"] for query in seen.captured_queries if "FROM archive" in query["sql"]]
    assert [statement for statement in archive if "count(*)" not in statement] == []


def reconfigured(**changes: str) -> None:
    """Configure another binding and let everybody go on under it, without a migration of what is retained."""
    named = {"owner": cast.OWNER, "policy_revision": cast.POLICY, **changes}
    binding = host.configure_namespace(
        cast.GARDEN, owner=named["owner"], policy_revision=named["policy_revision"], by="host:tests"
    )
    for subject, roles in cast.ROLES.items():
        if roles:
            host.grant(subject, binding, host.actions_of(roles), by="host:tests")


@pytest.mark.parametrize("change", [{"owner": "others"}, {"policy_revision": "policy-2"}])
def test_s081_s082_retained_material_under_another_binding_is_refused(api, change):
    alice, bob, ivy = api("alice"), api("bob"), api("ivy")
    promoted(alice)
    recall(bob)
    reconfigured(**change)
    with nothing_added():
        for answer in [
            alice.post("notes", body(source_key="tulips")),
            recall(bob, request_id="q2"),
            bob.post("recalls/q1/resolve"),
            *[ivy.get(path) for path in READS if "mine" not in path],
        ]:
            problem(answer, 409, "binding_mismatch")


def test_s083_after_a_migration_it_works_again(api, garden):
    alice, bob = api("alice"), api("bob")
    promoted(alice)
    reconfigured(owner="others")
    migrate(garden.caller("otto"), reason="new owner", carry_grants=False)
    assert recall(bob).json()["receipt"]["owner"] == "others"


def test_s089_a_namespace_that_is_not_served_looks_like_any_refusal(api):
    alice, charlie = api("alice"), api("charlie")
    candidate(alice)
    cast.plant("shed")
    host.disable_namespace("shed", by="host:tests")
    refusal = charlie.get("notes")
    for ns in ("garden", "nowhere", "shed", "..", "g" * 200):
        with nothing_added():
            answers = every_call(charlie.elsewhere(ns))
        for answer in answers:
            problem(answer, 403, "authority_refused")
            assert same_but_for_the_id(answer, refusal)


def test_s089_a_holder_of_some_grant_is_told_that_it_is_not_served(api):
    cast.plant("shed")
    host.disable_namespace("shed", by="host:tests")
    for answer in every_call(api("bob").elsewhere("shed")):
        problem(answer, 404, "namespace_not_served")


# --- G. authority ----------------------------------------------------------------------------------------------------


def test_s100_a_user_without_a_principal(signed_in):
    browser = signed_in(None)
    with nothing_added():
        answer = browser.post("/api/v1/ns/garden/notes", body(), content_type="application/json")
    problem(answer, 403, "authority_refused")


def test_s101_a_superuser_without_a_grant(signed_in):
    browser = signed_in("charlie", is_superuser=True, is_staff=True)
    assert get_user_model().objects.get().is_superuser
    caller = Api(None)
    caller.client = browser
    for answer in every_call(caller):
        problem(answer, 403, "authority_refused")


def test_s102_refused_under_the_hold(api, scripted):
    scripted.script = [True, False]
    wanda = api("wanda")
    with nothing_added():
        problem(wanda.post("notes", body()), 403, "authority_refused")


def test_s103_refused_at_the_last_moment_the_note_stays(api, scripted):
    scripted.script = [True, True, False]
    wanda = api("wanda")
    answer = wanda.post("notes", body(request_id="r1"))
    told = problem(answer, 403, "authority_refused")
    note = Note.objects.get()
    assert str(note.id) not in json.dumps(told)
    scripted.script = [True]
    again = wanda.post("notes", body(request_id="r1"))
    assert (again.json()["outcome"], again.json()["note"]["id"]) == ("replayed", str(note.id))


def test_s104_refused_at_the_last_moment_the_promotion_stays(api, scripted):
    alice = api("alice")
    note = candidate(alice)
    scripted.calls = 0
    scripted.script = [True, True, False]
    problem(alice.post(f"notes/{note}/promote", {"expected_version": 1}), 403, "authority_refused")
    scripted.script = [True]
    assert api("ivy").get(f"notes/{note}").json()["lifecycle_version"] == 2


def test_s106_an_authorizer_that_fails_is_no_miss(api, scripted):
    promoted(api("alice"))
    scripted.script = [RuntimeError("no answer")]
    bob = api("bob")
    with nothing_added():
        problem(recall(bob), 503, "authority_unavailable")


def test_s107_recall_alone_opens_neither_lists_nor_resolution(api, garden):
    promoted(api("alice"))
    host.grant("charlie", garden.binding, [Action.RECALL], by="host:tests")
    charlie = api("charlie")
    assert recall(charlie).status_code == 201
    problem(charlie.get("notes"), 403, "authority_refused")
    problem(charlie.post("recalls/q1/resolve"), 403, "authority_refused")


def test_s108_inspection_alone_opens_no_recall(api, garden):
    promoted(api("alice"))
    host.grant("charlie", garden.binding, [Action.INSPECT_METADATA], by="host:tests")
    charlie = api("charlie")
    assert charlie.get("notes").status_code == 200
    problem(recall(charlie), 403, "authority_refused")


# --- H. time-outs ----------------------------------------------------------------------------------------------------


def test_s120_a_held_namespace_times_out(api, owner, settings):
    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, "lock": 50}
    alice = api("alice")
    note = candidate(alice)
    with psycopg.connect(**flushing.parameters()) as holder:
        holder.execute(sql.SQL("SELECT FROM archive_namespace WHERE key = {} FOR UPDATE").format(cast.GARDEN))
        with nothing_added():
            problem(alice.post(f"notes/{note}/promote", {"expected_version": 1}), 503, "archive_timeout")
    assert alice.post(f"notes/{note}/promote", {"expected_version": 1}).status_code == 200


def test_s121_a_slow_statement_times_out_and_is_no_miss(api, settings):
    promoted(api("alice"))
    bob = api("bob")

    def slow(execute, statement, params, many, context):
        # The ranking itself, slower than the transaction allows.
        if "archive_posting" in statement:
            statement = f"SELECT pg_sleep(5) FROM ({statement}) AS ranked"
        return execute(statement, params, many, context)

    settings.LYCHD_TIMEOUTS = {**settings.LYCHD_TIMEOUTS, "statement": 100}
    with nothing_added(), connection.execute_wrapper(slow):
        answer = recall(bob)
    problem(answer, 503, "archive_timeout")


def test_s124_a_lost_database_is_no_empty_list(api, monkeypatch):
    ivy = api("ivy")

    def lost(execute, statement, params, many, context):
        if "archive_namespace" in statement:
            raise OperationalError("the connection is closed")
        return execute(statement, params, many, context)

    with connection.execute_wrapper(lost):
        problem(ivy.get("notes"), 503, "storage_unavailable")


# --- I. discovery and inspection -------------------------------------------------------------------------------------


def test_s130_discovery_reads_no_archive_table(api):
    otto = api("otto")
    with CaptureQueriesContext(connection) as seen:
        answer = otto.get("/api/v1/configuration")
    assert answer.status_code == 200
    assert [one["namespace"] for one in answer.json()["bindings"]] == [cast.GARDEN]
    assert not [query for query in seen.captured_queries if "archive_" in query["sql"] or "semantic_" in query["sql"]]


def test_s131_discovery_says_nothing_of_what_is_retained(api):
    candidate(api("alice"))
    reconfigured(owner="others")
    answer = api("otto").get(f"/api/v1/configuration?namespace={cast.GARDEN}")
    assert answer.status_code == 200
    assert answer.json()["bindings"][0]["owner"] == "others"
    assert not {"compatible", "retained", "mismatch"} & set(answer.json()["bindings"][0])


def test_s134_lists_show_every_state_and_select_no_text(api):
    alice = api("alice")
    candidate(alice, source_key="a")
    promoted(alice, source_key="b")
    alice.post(f"notes/{promoted(alice, source_key='c')}/archive", {"expected_version": 2})
    alice.post(f"notes/{promoted(alice, source_key='d')}/revoke", {"expected_version": 2})
    ivy = api("ivy")
    with CaptureQueriesContext(connection) as seen:
        answer = ivy.get("notes")
    assert {one["state"] for one in answer.json()["items"]} == {"candidate", "promoted", "archived", "revoked"}
    assert TEXT not in answer.content.decode()
    for query in seen.captured_queries:
        assert '"text"' not in query["sql"]
        assert "archive_posting" not in query["sql"]
        assert "vector" not in query["sql"]


def test_s135_paging_beside_inserts_shows_each_note_once(api, alice):
    old = {str(cast.admitted(alice, source=f"s{n}").id) for n in range(120)}
    ivy = api("ivy")
    seen = []
    cursor = None
    while True:
        page = ivy.get("notes?limit=50" + (f"&cursor={cursor}" if cursor else "")).json()
        seen += [one["id"] for one in page["items"]]
        for n in range(10):
            cast.admitted(alice, source=f"later-{len(seen)}-{n}")
        cursor = page["next_cursor"]
        if cursor is None or len(seen) > 150:
            break
    assert len(seen) == len(set(seen))
    assert old <= set(seen)


def test_s136_an_absent_namespace_lists_empty(api):
    ivy = api("ivy")
    with nothing_added():
        assert ivy.get("notes").json() == {"items": [], "next_cursor": None}
        assert ivy.get("events").json() == {"items": [], "next_cursor": None}
    assert not Namespace.objects.exists()


def test_s137_reads_write_nothing(api):
    alice, bob, ivy = api("alice"), api("bob"), api("ivy")
    note = promoted(alice, request_id="r1")
    recall(bob)
    ivy.get("notes")
    paths = ("notes", f"notes/{note}", f"notes/{note}/events", "events", "intakes/r1", "receipts/q1")
    with nothing_added():
        for path in paths:
            with looked_at() as seen:
                assert ivy.get(path).status_code == 200
            touched = [one for one in seen if "archive_" in one.sql]
            assert touched
            assert all(one.looked_only for one in touched)


def test_s138_a_historical_receipt_outlives_its_notes(api):
    alice, bob = api("alice"), api("bob")
    note = promoted(alice)
    receipt = recall(bob).json()["receipt"]
    alice.post(f"notes/{note}/revoke", {"expected_version": 2})
    answer = api("ivy").get("receipts/q1")
    assert answer.status_code == 200
    assert answer.json() == {"receipt": receipt, "current_eligibility": "not_assessed"}
    assert TEXT not in answer.content.decode()


def test_s139_an_absent_receipt_is_absent_and_a_lost_database_is_not(api, monkeypatch):
    candidate(api("alice"))
    ivy = api("ivy")
    problem(ivy.get("receipts/q1"), 404, "receipt_absent")

    def lost(execute, statement, params, many, context):
        if "archive_recall" in statement:
            raise OperationalError("the connection is closed")
        return execute(statement, params, many, context)

    with connection.execute_wrapper(lost):
        problem(ivy.get("receipts/q1"), 503, "storage_unavailable")


# --- cases from elsewhere --------------------------------------------------------------------------------------------


def test_c11_one_identity_in_two_namespaces_is_two_requests(api):
    cast.plant("shed")
    alice = api("alice")
    shed = alice.elsewhere("shed")
    one = alice.post("notes", body(request_id="1"))
    other = shed.post("notes", body(request_id="1", text="Spades want oil."))
    assert (one.status_code, other.status_code) == (201, 201)
    assert one.json()["note"]["id"] != other.json()["note"]["id"]
    problem(shed.post(f"notes/{one.json()['note']['id']}/promote", {"expected_version": 1}), 404, "record_absent")
    for caller, word in ((alice, "roses"), (shed, "spades")):
        assert caller.post("recalls", {"request_id": "1", "query": word}).status_code == 201
    assert shed.post("recalls/1/resolve").json()["sources"] == []


def test_c11_one_identity_of_two_subjects_gives_a_bare_conflict(api):
    alice, wanda = api("alice"), api("wanda")
    made = alice.post("notes", body(request_id="1")).json()["note"]["id"]
    for sent in (body(request_id="1"), body(request_id="1", text="Other.", source_key="tulips")):
        answer = wanda.post("notes", sent)
        problem(answer, 409, "request_conflict")
        assert made not in answer.content.decode()
    promoted(alice, source_key="b")
    assert alice.post("recalls", {"request_id": "1", "query": "roses"}).status_code == 201
    answer = api("bob").post("recalls", {"request_id": "1", "query": "roses"})
    problem(answer, 409, "request_conflict")
    problem(api("bob").post("recalls/1/resolve"), 409, "receipt_binding_mismatch")


def test_c10_many_equal_intakes_never_meet_an_error_of_the_server(api):
    wanda = api("wanda")
    sent = body(request_id="r1")
    answers = together(*[lambda: Api(wanda.secret).post("notes", sent)] * 12)
    assert sorted({answer.status_code for answer in answers}) == [200, 201]
    answers = together(
        *[lambda n=n: Api(wanda.secret).post("notes", body(request_id="r1", text=f"Other {n}.")) for n in range(12)]
    )
    assert {answer.status_code for answer in answers} == {409}
    assert Note.objects.count() == 1


def test_c29_paging_over_one_moment_shows_each_note_once(api, alice, superuser):
    for n in range(40):
        cast.admitted(alice, source=f"s{n}")
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE archive_note SET created_at = '2025-01-01T00:00:00Z'")
    ivy = api("ivy")
    seen = []
    cursor = None
    while len(seen) < 100:
        page = ivy.get("notes?limit=7" + (f"&cursor={cursor}" if cursor else "")).json()
        seen += [one["id"] for one in page["items"]]
        cast.admitted(alice, source=f"later-{len(seen)}")
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen))
    old = Note.objects.filter(created_at="2025-01-01T00:00:00Z").values_list("id", flat=True)
    assert {str(one) for one in old} <= set(seen)


def test_b48_a_cursor_is_of_one_list_one_filter_one_namespace_and_one_caller(api, alice, garden):
    cast.plant("shed")
    for n in range(3):
        cast.admitted(alice, source=f"s{n}")
        cast.admitted(garden.caller("alice"), source=f"s{n}", revision="2")
    cast.admitted(alice.in_namespace("alice", "shed"))
    host.grant("charlie", garden.binding, [Action.INSPECT_METADATA], by="host:tests")
    ivy = api("ivy")
    cursor = ivy.get("notes?limit=1").json()["next_cursor"]
    assert ivy.get(f"notes?cursor={cursor}").status_code == 200
    last = "A" if cursor[-1] != "A" else "B"
    for caller, path in [
        (ivy, f"notes?cursor={cursor[:-1]}{last}"),
        (ivy, f"notes?cursor={cursor}="),
        (ivy, f"notes?cursor={cursor}&state=candidate"),
        (ivy, f"notes?cursor={cursor}&source_key=s1"),
        (ivy, f"events?cursor={cursor}"),
        (ivy.elsewhere("shed"), f"notes?cursor={cursor}"),
        (api("charlie"), f"notes?cursor={cursor}"),
    ]:
        with nothing_added():
            assert "/cursor" in str(problem(caller.get(path), 400, "invalid_request")["errors"])
