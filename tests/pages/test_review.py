"""The review workspace: one candidate at a time, on the version that was shown, and the queue goes on."""

import re
from uuid import uuid4

import pytest
from django.contrib.messages import get_messages
from django.core.cache import cache

from archive import limits
from archive.lifecycle import State
from archive.models import LifecycleEvent, Namespace, Note
from archive.operations import host
from archive.operations.desk import telling_words
from tests import cast
from tests.pages.paths import SECRET

NS = f"/ns/{cast.GARDEN}"
DESK = f"{NS}/review"


def told(answer):
    return answer.content.decode()


def decide(client, note, step="promote", **form):
    return client.post(
        f"{NS}/notes/{note.id}/{step}", {"expected_version": note.lifecycle_version, "queue": "", **form}
    )


def stands(note):
    return tuple(Note.objects.values_list("state", "lifecycle_version").get(id=note.id))


def said(answer):
    return [str(one) for one in get_messages(answer.wsgi_request)]


def at_hand(answer):
    return answer.context["note"].id


@pytest.fixture
def beds(alice):
    """Two sources; the second revision of the first came last."""
    first = cast.admitted(alice, "Roses want sun.", source="roses", revision="1")
    second = cast.admitted(alice, "Ferns want shade.", source="ferns", revision="1")
    third = cast.admitted(alice, "Roses want morning sun.", source="roses", revision="2")
    return first, second, third


def test_a_candidate_stands_beside_what_it_changes_with_its_story(nursery, curator):
    page = told(curator.get(DESK))
    assert "1 of 1" in page
    assert f"{SECRET} roses want " in page
    assert re.search(r"<del>.*?sun.*?</del>", page)
    assert re.search(r"<ins>.*?shade.*?</ins>", page)
    assert "Promoting it archives revision" in page
    assert 'name="expected_version" value="1"' in page
    assert "What happened" in page


def test_the_queue_goes_by_source_and_within_it_by_age(beds, curator):
    first, second, third = beds
    assert at_hand(curator.get(DESK)) == first.id
    answer = curator.get(DESK)
    assert [key for key, _ in answer.context["groups"]] == ["roses", "ferns"]
    assert answer.context["next"] == third.id
    answer = curator.get(f"{DESK}?at={third.id}")
    assert (answer.context["previous"], answer.context["next"]) == (first.id, second.id)
    assert answer.context["seen"].place == 2


def test_a_decision_opens_the_next_by_itself(beds, curator):
    first, second, third = beds
    answer = decide(curator, first)
    assert answer["Location"] == f"{DESK}?at={first.id}"
    answer = curator.get(answer["Location"])
    assert at_hand(answer) == third.id
    assert "roses, revision 1, is promoted now, at version 2." in told(answer)
    answer = curator.get(decide(curator, third)["Location"])
    assert "Revision 1 was archived with it" in told(answer)
    assert at_hand(answer) == second.id
    answer = curator.get(decide(curator, second)["Location"])
    assert "Every candidate was decided about" in told(answer)


def test_after_the_last_the_queue_begins_again(beds, curator):
    _, second, _ = beds
    answer = curator.get(decide(curator, second)["Location"])
    assert at_hand(answer) == beds[0].id


def test_a_note_that_moved_is_named_and_the_queue_goes_on(beds, alice, curator):
    first, second, third = beds
    cast.promote(alice, cast.step(first, State.PROMOTED))
    events = LifecycleEvent.objects.count()
    answer = decide(curator, first)
    assert answer.status_code == 302
    assert stands(first) == ("promoted", 2)
    assert LifecycleEvent.objects.count() == events
    page = curator.get(answer["Location"])
    assert at_hand(page) == third.id
    assert "The note has moved since you read it: roses, revision 1, is promoted at version 2." in told(page)
    assert "Your decision was not carried out" in told(page)

    cast.revoke(alice, cast.step(second, State.REVOKED))
    answer = decide(curator, second)
    assert "it is revoked" in said(answer)[0]


def test_putting_off_takes_no_field_that_nobody_asked_for(beds, curator):
    for name in ("nosuch", "é"):
        answer = curator.post(f"{NS}/notes/{beds[0].id}/later", {"queue": "", name: "1"})
        assert answer.status_code == 400
        assert "no such field" in answer.content.decode()
    assert curator.get(DESK).context["seen"].reviewed.note.id == beds[0].id


def test_later_leaves_it_out_until_it_is_brought_back(beds, curator, sign_in):
    first, _, third = beds
    answer = curator.post(f"{NS}/notes/{first.id}/later", {"queue": ""})
    page = curator.get(answer["Location"])
    assert at_hand(page) == third.id
    assert page.context["seen"].total == 2
    assert "1 put off in this session" in told(page)
    assert stands(first) == ("candidate", 1)
    assert curator.get(f"{DESK}?later=1").context["seen"].total == 3
    assert at_hand(sign_in("alice").get(DESK)) == first.id, "another session has put nothing off"


def test_when_all_is_put_off_the_page_says_so(alice, curator):
    note = cast.admitted(alice)
    curator.post(f"{NS}/notes/{note.id}/later", {"queue": ""})
    assert "All that is left was put off" in told(curator.get(DESK))


def test_what_was_revoked_meanwhile_can_be_put_off_like_anything_else(beds, alice, curator):
    cast.revoke(alice, cast.step(beds[0], State.REVOKED))
    assert curator.post(f"{NS}/notes/{beds[0].id}/later", {"queue": ""}).status_code == 302


@pytest.mark.parametrize("who", ["ivy", "bob", "wanda", "charlie", "stranger", "otto"])
def test_without_the_right_to_review_there_is_no_desk(beds, sign_in, who):
    client = sign_in(who)
    assert client.get(DESK).status_code == 403
    assert client.post(f"{NS}/notes/{beds[0].id}/later", {"queue": ""}).status_code == 403
    assert "roses" not in told(client.get(DESK))


def test_whoever_may_review_and_not_inspect_has_no_queue_either(beds, garden, sign_in):
    host.grant("bob", garden.binding, host.actions_of(["review"]), by="host:tests")
    assert sign_in("bob").get(DESK).status_code == 403


def test_authority_is_asked_before_and_after_and_a_no_at_any_of_them_shows_nothing(beds, scripted, curator):
    for script in ([False], [True, False]):
        scripted.script, scripted.calls = script, 0
        answer = curator.get(DESK)
        assert answer.status_code == 403
        assert "roses" not in told(answer)


def test_filters_live_in_the_address_and_stay_with_the_decision(beds, wanda, curator):
    theirs = cast.admitted(wanda, "Moss wants rain.", source="moss")
    answer = curator.get(f"{DESK}?proposer=wanda")
    assert (at_hand(answer), answer.context["seen"].total) == (theirs.id, 1)
    assert curator.get(f"{DESK}?source=ferns").context["seen"].total == 1
    assert curator.get(f"{DESK}?age=day").context["seen"].total == 0
    assert "No candidate fits these filters" in told(curator.get(f"{DESK}?age=month"))
    answer = decide(curator, beds[0], queue="source=roses")
    assert answer["Location"] == f"{DESK}?source=roses&at={beds[0].id}"
    assert curator.get(answer["Location"]).context["seen"].total == 1


def test_doubles_of_promoted_notes_can_be_gone_through_alone(beds, alice, curator):
    cast.promoted(alice, "Ferns want shade.", source="copies")
    answer = curator.get(f"{DESK}?similar=same")
    assert (at_hand(answer), answer.context["seen"].total) == (beds[1].id, 1)
    assert "the same text" in told(answer)


def test_promoted_notes_that_read_alike_are_named_without_their_text(alice, curator):
    text = "Water the roses every morning before the sun reaches the wall of the orangery."
    cast.promoted(alice, text.replace("morning", "evening") + " Xylopholist.", source="older/watering")
    cast.promoted(alice, "Ferns want shade and a wet floor.", source="ferns")
    cast.admitted(alice, text, source="newer/watering")
    answer = curator.get(DESK)
    (one,) = answer.context["seen"].similar
    assert one.source_key == "older/watering"
    assert 50 < one.percent < 100
    assert "Xylopholist" not in told(answer)


def test_while_words_are_rebuilt_nothing_is_said_about_likeness(beds, owner, curator):
    number = Namespace.objects.get().id
    with owner.transaction():
        owner.execute("SELECT set_config('lychd.hold', 'exclusive', true)")
        owner.execute("SELECT set_config('lychd.lexical_rebuild', %s, true)", [str(number)])
        owner.execute(
            "UPDATE archive_namespace SET lexical_state = 'rebuilding', row_version = row_version + 1 WHERE id = %s",
            [number],
        )
    assert "Not looked up" in told(curator.get(DESK))


def test_the_words_asked_for_are_the_longest_and_no_more_than_a_query_holds():
    assert telling_words("a bee ceee a") == "ceee bee a"
    assert len(telling_words("wörd " * 9 + " ".join(f"word{n}" for n in range(5_000)))) <= limits.QUERY_MAX_CHARS
    assert telling_words("猫" * 5_000) == "猫" * limits.QUERY_MAX_CHARS
    assert telling_words("...") == "..."


def test_a_second_curator_is_told_that_someone_else_is_on_it_and_is_not_hindered(beds, garden, curator, sign_in):
    host.grant("charlie", garden.binding, host.actions_of(["curator"]), by="host:tests")
    second = sign_in("charlie")
    assert "Someone else" not in told(curator.get(DESK))
    assert "Someone else is on this" in told(second.get(DESK))
    assert "Someone else" not in told(curator.get(DESK))
    assert decide(second, beds[0]).status_code == 302
    assert stands(beds[0]) == ("promoted", 2)


def test_a_candidate_that_was_put_off_is_nobodys(beds, garden, curator, sign_in):
    host.grant("charlie", garden.binding, host.actions_of(["curator"]), by="host:tests")
    curator.get(DESK)
    curator.post(f"{NS}/notes/{beds[0].id}/later", {"queue": ""})
    assert "Someone else" not in told(sign_in("charlie").get(DESK))


@pytest.mark.parametrize("broken", ["add", "get", "set", "delete"])
def test_a_cache_that_fails_costs_a_claim_and_nothing_else(beds, curator, monkeypatch, broken):
    def fails(*_, **__):
        raise ConnectionError

    monkeypatch.setattr(cache, broken, fails)
    assert curator.get(DESK).status_code == 200
    assert decide(curator, beds[0]).status_code == 302


def test_whoever_took_it_in_is_told_that_somebody_else_has_to_promote_it(transactional_db, sign_in):
    garden = cast.plant(second_person=True)
    own, others = cast.admitted(garden.caller("alice")), cast.admitted(garden.caller("wanda"), source="ferns")
    client = sign_in("alice")
    page = told(client.get(DESK))
    assert "asks for a second person" in page
    assert f"{own.id}/promote" not in page
    answer = decide(client, own)
    assert stands(own) == ("candidate", 1)
    page = client.get(answer["Location"])
    assert "Somebody else has to promote this note" in told(page)
    assert at_hand(page) == others.id


@pytest.mark.parametrize("query", ["", None])
def test_hidden_characters_need_a_ticked_box(alice, curator, query):
    note = cast.admitted(alice, "Pay\u200b to\u202e the account.")
    for page in (DESK, f"{NS}/notes/{note.id}"):
        assert "I saw the 2 hidden characters" in told(curator.get(page))
        assert 'name="hidden" value="2"' in told(curator.get(page))
    form = {"expected_version": 1, "hidden": "2"} | ({} if query is None else {"queue": query})
    answer = curator.post(f"{NS}/notes/{note.id}/promote", form)
    assert answer.status_code == 400
    assert "this text has hidden characters" in told(answer)
    assert stands(note) == ("candidate", 1)
    assert curator.post(f"{NS}/notes/{note.id}/promote", {**form, "hidden_seen": "yes"}).status_code == 302
    assert stands(note) == ("promoted", 2)


def test_look_alikes_are_marked_in_the_change_and_ask_for_no_tick(alice, curator):
    cast.promoted(alice, "Ask at the paypal desk.", revision="1")
    note = cast.admitted(alice, "Ask at the p\u0430ypal desk.", revision="2")
    page = told(curator.get(DESK))
    assert "1 look-alike letter" in page
    assert 'title="U+0430 CYRILLIC SMALL LETTER A"' in page
    assert decide(curator, note).status_code == 302


def test_an_equal_text_is_said_to_change_nothing(alice, curator):
    cast.promoted(alice, "Roses want sun.", revision="1")
    cast.admitted(alice, "Roses want sun.", revision="2")
    assert "equal to the promoted revision" in told(curator.get(DESK))


def test_what_agents_wrote_stays_text(alice, curator):
    cast.promoted(alice, "<b>old</b> {{ request.user }}", revision="1")
    cast.admitted(alice, "<script>alert(1)</script> {{ request.user }}", revision="2")
    page = told(curator.get(DESK))
    assert "<script>alert" not in page
    assert "{{ request.user }}" in page


def test_revoking_from_the_queue_asks_once_more_and_goes_on(beds, curator):
    first, _, third = beds
    link = re.search(r'href="([^"]*revocation[^"]*)"', told(curator.get(f"{DESK}?source=roses")))[1]
    page = told(curator.get(link.replace("&amp;", "&")))
    assert 'name="queue" value="source=roses"' in page
    assert f'href="{DESK}?source=roses&amp;at={first.id}"' in page
    answer = decide(curator, first, "revoke", reason="wrong", queue="source=roses")
    assert at_hand(curator.get(answer["Location"])) == third.id


def test_nothing_waits_before_anything_was_taken_in(garden, curator):
    answer = curator.get(DESK)
    assert answer.status_code == 200
    assert "Every candidate was decided about" in told(answer)


def test_a_place_that_is_no_note_begins_at_the_beginning(beds, curator):
    assert at_hand(curator.get(f"{DESK}?at={uuid4()}")) == beds[0].id


@pytest.mark.parametrize(
    "query",
    [
        *("age=year", "similar=all", "source=a%20b", "proposer=%00", "at=1", "x=1", "age=day&age=day", "at=%00"),
        "at=" + "A" * 32,
    ],
)
def test_an_address_that_asks_wrongly_is_refused(beds, curator, query):
    assert curator.get(f"{DESK}?{query}").status_code == 400


@pytest.mark.parametrize("queue", ["age=year", "x=1", "at=1", "source=" + "k" * 2_000, "source=%00"])
def test_a_form_with_another_queue_is_refused_and_decides_nothing(beds, curator, queue):
    for step in ("promote", "later"):
        form = {"queue": queue} | ({"expected_version": 1} if step == "promote" else {})
        assert curator.post(f"{NS}/notes/{beds[0].id}/{step}", form).status_code == 400
    assert stands(beds[0]) == ("candidate", 1)
    assert curator.get(DESK).context["seen"].total == 3


def test_the_longest_values_are_shown_whole(alice, curator):
    longest = "k" * limits.IDENTIFIER_MAX
    cast.admitted(alice, "W" * limits.NOTE_TEXT_MAX_CHARS, source=longest, revision=longest)
    page = told(curator.get(DESK))
    assert longest in page
    assert "W" * limits.NOTE_TEXT_MAX_CHARS in page


def test_only_a_part_of_a_long_queue_is_listed_around_the_place(alice, curator):
    notes = [cast.admitted(alice, f"Bed {number}.", source=f"bed/{number}") for number in range(30)]
    answer = curator.get(f"{DESK}?at={notes[12].id}")
    assert answer.context["seen"].total == 30
    assert [line.place for line in answer.context["seen"].queue] == list(range(9, 29))


def test_the_desk_costs_so_many_queries_however_long_the_queue_is(alice, curator, django_assert_num_queries):
    """Session, user, binding, authority before and after; the snapshot five; and two of its own, three with vectors."""
    cast.promoted(alice, "Roses want the morning sun.", source="older")
    for number in range(12):
        cast.admitted(alice, f"Roses want sun {number}.", source=f"bed/{number}")
    curator.get(NS)
    with django_assert_num_queries(12) as asked:
        curator.get(DESK)
    own = [one["sql"] for one in asked if "archive_note" in one["sql"]]
    assert len(own) == 2
