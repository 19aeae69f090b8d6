"""Served namespaces, their bindings and the index of their words, on the command line."""

from archive.bindings import NO_GENERATION
from archive.models import ConfiguredBinding
from tests import cast
from tests.cast import GARDEN


def configured(lychd, key=GARDEN, *more):
    return lychd("namespace", "configure", key, "--owner", cast.OWNER, *more, "--json")


def test_a_namespace_is_configured_listed_and_disabled(lychd):
    made = configured(lychd, "orchard", "--policy", "p-1", "--second-person", "--text-configuration", "english")
    assert made.document["binding"]["second_person"] is True
    (one,) = lychd("namespace", "list", "--json").document["items"]
    assert (one["namespace"], one["text_configuration"], one["served"]) == ("orchard", "english", True)
    assert one["retained"] == "nothing yet"

    assert lychd("namespace", "disable", "orchard").code == 0
    assert lychd("namespace", "list", "--json").document["items"][0]["served"] is False
    assert lychd("namespace", "disable", "orchard", "--json").document["code"] == "record_absent"


def test_what_a_later_configuration_does_not_name_stays(lychd):
    """A new policy lets nobody promote alone, asks for no rebuild of the words, and drops no vectors."""
    configured(lychd, "orchard", "--policy", "p-1", "--second-person", "--text-configuration", "english")
    ConfiguredBinding.objects.update(generation="g-1")

    later = configured(lychd, "orchard", "--policy", "p-2").document["binding"]

    assert (later["second_person"], later["text_configuration"]) == (True, "english")
    assert ConfiguredBinding.objects.get().generation == "g-1"
    changed = configured(lychd, "orchard", "--policy", "p-2", "--no-second-person").document["binding"]
    assert changed["second_person"] is False


def test_a_namespace_can_say_that_it_has_no_generation_or_one_of_its_own(lychd):
    for word, generation in (("none", NO_GENERATION), ("notes-9", "notes-9"), (None, "notes-9"), ("default", None)):
        more = () if word is None else ("--generation", word)
        said = configured(lychd, "orchard", "--policy", "p-1", *more).document["binding"]["generation"]
        assert said == (word or "notes-9")
        assert ConfiguredBinding.objects.get().generation == generation
        assert lychd("namespace", "list", "--json").document["items"][0]["generation"] == said
    assert configured(lychd, "orchard", "--policy", "p-1", "--generation", "a b").document["code"] == "invalid_request"


def test_what_cannot_be_configured_is_refused(lychd):
    assert configured(lychd, "a/b", "--policy", "p").code == 2
    assert configured(lychd, "a", "--policy", "p", "--text-configuration", "klingon").code == 2
    assert lychd("namespace", "configure", "a").code == 64


def test_a_changed_binding_refuses_until_it_is_migrated(lychd, alice):
    cast.promoted(alice)
    changed = configured(lychd, GARDEN, "--policy", "policy-2", "--text-configuration", "english")
    assert changed.document["binding"]["migration_needed"] is True
    assert "namespace migrate" in lychd("namespace", "configure", GARDEN, "--owner", "o", "--policy", "p-3").out
    configured(lychd, GARDEN, "--policy", "policy-2", "--text-configuration", "english")
    assert "under another binding" in lychd("namespace", "list").out

    migrate = ("namespace", "migrate", "--as", "otto", "--namespace", GARDEN, "--reason", "a new policy")
    assert lychd(*migrate).code == 2, "nobody holds anything under the new policy yet"
    assert lychd("grant", "give", "otto", "operator").code == 0
    migrated = lychd(*migrate, "--carry-grants", "--json")
    assert migrated.code == 0, migrated.err
    assert migrated.document["rebuild_needed"] is True
    assert migrated.document["carried_grants"] > 0

    waiting = lychd("recall", "roses", "--as", "bob", "--namespace", GARDEN, "--json")
    assert (waiting.code, waiting.document["code"]) == (4, "capability_not_ready")
    rebuilt = lychd("lexical", "rebuild", "--namespace", GARDEN, "--json")
    assert rebuilt.document["notes"] == 1
    assert lychd("recall", "roses", "--as", "bob", "--namespace", GARDEN).code == 0
    assert "already" in lychd(*migrate).out


def test_a_rebuild_tells_its_progress_on_stderr(lychd, alice):
    cast.promoted(alice)
    ran = lychd("lexical", "rebuild")
    assert ran.code == 0
    assert "rebuild garden: 1 of 1 notes" in ran.err
    assert "lexer fingerprint" in ran.out


def test_words_of_a_namespace_that_was_never_retained_cannot_be_rebuilt(lychd, garden):
    assert lychd("lexical", "rebuild", "--json").document["code"] == "namespace_absent"
