"""An archive that an older commit made comes to the tables of a new one, and answers like a new one or refuses."""

import pytest

from archive import receipts
from archive.authority import Caller
from archive.models import Recall
from archive.operations.rebuild import rebuild_lexical
from archive.operations.recall import recall as recall_by_words
from archive.operations.resolution import resolve
from archive.refusals import CapabilityNotReady
from archive.requests import LexicalRecall
from semantic.operations.recall import recall as recall_by_meaning
from semantic.requests import SemanticRecall
from tests import cast, flushing
from tests.repository.test_migrations import database, differences, inventory
from tests.upgrades.conftest import LANDED, OLD_WORDS, ORIGIN, Archive
from tests.upgrades.story import QUESTIONS, TEXTS

pytestmark = pytest.mark.django_db(transaction=True)
PLACES = ("garden", "library")
one_is_enough = pytest.mark.parametrize("mould", [LANDED], indirect=True)


def words(place: str, number: int, *, identity: str) -> LexicalRecall:
    return LexicalRecall(request_id=identity, query=QUESTIONS[number])


def chosen(receipt, score="score"):
    """What a receipt says of the notes, whichever archive it is of."""
    return receipt["outcome"], [(one["source_key"], one["source_revision"], one[score]) for one in receipt["selected"]]


def test_an_older_archive_comes_to_the_tables_of_a_new_one(migrated):
    """By a process of its own, whichever form its migrations had."""
    assert differences(migrated.inventory(), inventory(flushing.parameters())) == []


def test_a_token_is_kept_for_the_namespaces_of_its_subject(migrated):
    """Where its grants stood when the tables came to this release, and nowhere else."""
    held = {key for (key,) in migrated.rows("SELECT DISTINCT namespace_key FROM lychd_grant WHERE subject = 'wanda'")}
    ((kept,),) = migrated.rows(
        "SELECT t.namespaces FROM lychd_token t JOIN lychd_principal p ON p.id = t.principal_id"
        " WHERE p.subject = 'wanda'"
    )
    assert set(kept) == held == set(PLACES)


def test_no_tombstone_keeps_an_origin(migrated):
    """Each had one before; the digests, by which their revisions are known, are those of then."""
    revoked = migrated.rows(
        "SELECT text, asserted_origin, length(text_digest), length(material_digest) FROM archive_note"
        " WHERE state = 'revoked'"
    )
    assert len(revoked) == len(PLACES)
    assert set(revoked) == {(None, None, 64, 64)}
    assert migrated.rows("SELECT FROM pg_stats WHERE tablename = 'archive_note' AND attname = 'asserted_origin'") == []
    assert migrated.rows(f"SELECT FROM pg_stats AS s WHERE s::text LIKE '%{ORIGIN}%'") == []


def test_receipts_stay_and_resolve(migrated):
    """A replay is the receipt of then, to the digest; its text is there."""
    with migrated.served():
        rows = list(Recall.objects.select_related("namespace"))
        assert len(rows) == 26
        assert [
            row.request_id
            for row in rows
            if not receipts.is_intact(row, row.namespace.key, receipts.Bindings(row.namespace))
        ] == []
        for place in PLACES:
            bob = Caller.in_namespace("bob", place)
            for number in range(len(QUESTIONS)):
                identity = f"{place}-words-{number}"
                (kept,) = (row.receipt for row in rows if row.request_id == identity)
                assert recall_by_words(bob, words(place, number, identity=identity)).receipt == kept
                if kept["selected"]:
                    assert len(resolve(bob, identity).sources) == len(kept["selected"])


def test_recall_by_words_answers_like_a_new_archive_or_refuses(migrated):
    """Words that older rules have cut are never ranked: the namespace refuses until it is rebuilt."""
    fresh = [cast.plant(), cast.plant("library", text_configuration="english")]
    with migrated.served():
        if migrated.commit in OLD_WORDS:
            for place in PLACES:
                with pytest.raises(CapabilityNotReady):
                    recall_by_words(Caller.in_namespace("bob", place), words(place, 0, identity="new"))
                rebuild_lexical(place)
        old = {
            (place, number): recall_by_words(
                Caller.in_namespace("bob", place), words(place, number, identity=f"new-{number}")
            ).receipt
            for place in PLACES
            for number in range(len(QUESTIONS))
        }
        texts = {
            place: migrated.rows(
                "SELECT s.source_key, n.source_revision, n.text FROM archive_note n JOIN archive_source s"
                " ON s.id = n.source_id JOIN archive_namespace p ON p.id = n.namespace_id"
                " WHERE p.key = %s AND n.state = 'promoted' ORDER BY n.note_number",
                place,
            )
            for place in PLACES
        }
    for garden in fresh:
        place = garden.binding.namespace
        assert len(texts[place]) >= len(TEXTS)
        for source, revision, text in texts[place]:
            cast.promoted(garden.caller("alice"), text, source=source, revision=revision)
        for number, question in enumerate(QUESTIONS):
            new = cast.asked(garden.caller("bob"), question).receipt
            # Equal scores are in the order of their identities, which are by chance.
            assert sorted(chosen(new)[1]) == sorted(chosen(old[place, number])[1]), question
            assert new["lexical"] == old[place, number]["lexical"]


def test_words_that_were_cut_by_the_same_rules_need_no_rebuild(migrated):
    states = dict(migrated.rows("SELECT key, lexical_state FROM archive_namespace"))
    assert states == dict.fromkeys(
        ("garden", "library", "shed"), "rebuilding" if migrated.commit in OLD_WORDS else "ready"
    )


@pytest.mark.parametrize("reference", ["notes-1", "padded-1"])
def test_recall_by_meaning_answers_as_before(migrated, reference):
    with migrated.served(reference):
        for place in PLACES:
            bob = Caller.in_namespace("bob", place)
            asked = {f"{place}-padded": "roses sun"} if reference == "padded-1" else {}
            asked |= {f"{place}-meaning-{n}": q for n, q in enumerate(QUESTIONS)} if not asked else {}
            for identity, question in asked.items():
                kept = Recall.objects.get(request_id=identity, namespace__key=place).receipt
                new = recall_by_meaning(
                    bob, SemanticRecall(request_id=f"new-{identity}", query=question, min_cosine=-1.0)
                ).receipt
                assert chosen(new, "cosine") == chosen(kept, "cosine")
                assert new["matched_count"] == kept["matched_count"]


def test_the_inventory_and_doctor_say_so(migrated):
    """Nothing differs; what waits for a rebuild is said with the one command that does it."""
    done = migrated.lychd("migrate", "--json")
    assert (done.code, done.document["applied"], done.document["differs"]) == (0, [], [])
    old = migrated.commit in OLD_WORDS
    assert done.document["uncut"] == (["garden", "library", "shed"] if old else [])
    if old:
        assert "3 namespaces for words to be cut anew: lychd lexical rebuild --all" in migrated.lychd("migrate").out
        seen = migrated.lychd("doctor", "--json")
        assert {one["check"] for one in seen.document["findings"] if "lexical rebuild" in (one["fix"] or "")} == {
            f"words of {key}" for key in done.document["uncut"]
        }
        rebuilt = migrated.lychd("lexical", "rebuild", "--all", "--json")
        assert [one["namespace"] for one in rebuilt.document["rebuilt"]] == done.document["uncut"]
    seen = migrated.lychd("doctor", "--deep", "--json")
    assert seen.code == 0, seen.out
    assert [one["check"] for one in seen.document["findings"] if one["verdict"] == "notice"] == [
        "derivations of garden",
        "derivations of library",
    ]


@one_is_enough
def test_a_newer_database_is_said_and_left_alone(migrated):
    migrated.rows(
        "INSERT INTO django_migrations (app, name, applied) VALUES ('archive', '9999_later', now()) RETURNING 1"
    )
    done = migrated.lychd("migrate")
    assert done.code == 4
    assert "migrated by a newer release: it has archive.9999_later" in done.err
    seen = migrated.lychd("doctor", "--json")
    (finding,) = (one for one in seen.document["findings"] if one["check"] == "migrations")
    assert (finding["verdict"], finding["seen"]) == ("failed", "a newer release made 1: archive.9999_later")


@one_is_enough
def test_a_history_that_no_release_makes_is_refused(migrated):
    migrated.rows("DELETE FROM django_migrations WHERE (app, name) = ('archive', '0002_lexical') RETURNING 1")
    done = migrated.lychd("migrate")
    assert done.code == 4
    assert "has migration archive.0003_same_namespace and not archive.0002_lexical" in done.err
    assert "A fault" not in done.err


# --- and back --------------------------------------------------------------------------------------------------------


@one_is_enough
@pytest.mark.parametrize(
    "target", [("archive", "0012"), ("archive", "0006"), ("archive", "0001"), ("semantic", "zero")]
)
def test_a_way_back_over_rows_refuses_before_anything_is_dropped(migrated, target):
    """One that would meet a refusal later on has undone nothing before it."""
    before = migrated.inventory(), migrated.rows("SELECT app, name FROM django_migrations ORDER BY id")
    done = migrated.lychd("migrate", *target)
    assert done.code == 4
    assert "Nothing was undone" in done.err
    assert "A fault" not in done.err
    assert (migrated.inventory(), migrated.rows("SELECT app, name FROM django_migrations ORDER BY id")) == before


def test_a_way_back_that_loses_nothing_is_gone_and_come_again(transactional_db):
    with database("back") as parameters:
        new = Archive("none", parameters)
        assert new.lychd("migrate").code == 0
        before = new.inventory()
        done = new.lychd("migrate", "archive", "0008", "--json")
        assert done.code == 0, done.err
        assert done.document["left"][:2] == ["archive.0009_functions_anew", "archive.0010_binding_fence"]
        assert new.lychd("migrate", "--json").document["differs"] == []
        assert differences(before, new.inventory()) == []
