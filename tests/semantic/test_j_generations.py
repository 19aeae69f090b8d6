"""J. Generations."""

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from archive import canonical
from archive.bindings import NO_GENERATION
from archive.operations import host
from archive.transactions import snapshot
from inspection import derivations
from semantic import manifest
from semantic.models import Generation
from semantic.operations.generations import discover, register, retire
from semantic.refusals import DerivationOff
from tests import cast
from tests.scenarios.counting import Counts, refused
from tests.semantic import acts
from tests.semantic.conftest import GENERATION, derivation


def test_s150_discovery_reads_no_table_of_ours_and_opens_no_embedder(meaning, otto, script):
    with CaptureQueriesContext(connection) as queries:
        found = discover(otto)

    assert found.reference == GENERATION
    assert found.digest == canonical.digest_of(canonical.GENERATION, found.manifest)
    assert not [q for q in queries if "semantic_" in q["sql"] or "archive_" in q["sql"]]
    assert (script.opened, script.calls) == (0, 0)


def test_s150_discovery_is_an_act_of_its_own(meaning, bob):
    with refused(403, "authority_refused"):
        discover(bob)


def test_s151_a_generation_does_not_make_a_namespace(meaning, otto, owner):
    counts = Counts(owner)

    with counts.refused(404, "namespace_absent"):
        register(otto)


def test_s152_registering_again_is_the_same_row(meaning, alice, otto):
    cast.promoted(alice)

    first, second = register(otto), register(otto)

    assert (first.created, second.created) == (True, False)
    assert first.generation == second.generation
    assert (second.generation.state, second.generation.version) == ("active", 1)
    assert Generation.objects.count() == 1


@pytest.mark.parametrize("change", [{"document_prefix": "passage: "}, {"max_tokens": 100}, {"model_digest": "0" * 64}])
def test_s153_another_manifest_under_the_same_reference_refuses(meaning, alice, otto, settings, owner, change):
    cast.promoted(alice)
    register(otto)
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": derivation(**change)}

    with Counts(owner).refused(409, "generation_conflict"):
        register(otto)


def test_s154_a_retired_generation_stays_retired(meaning, alice, otto, owner):
    cast.promoted(alice)
    register(otto)
    retired = retire(otto, GENERATION)

    with Counts(owner).refused(409, "generation_retired"):
        register(otto)

    assert (retired.state, retired.version, retired.retired_by) == ("retired", 2, "otto")
    assert retire(otto, GENERATION) == retired
    with refused(404, "generation_absent"):
        retire(otto, "another")


@pytest.mark.parametrize(
    "change",
    [
        "manifest = manifest || '{\"max_tokens\": 1}'",
        "manifest_digest = repeat('0', 64)",
        "dimensions = 3",
        "reference = 'another'",
        "state = 'active', version = 3",
    ],
)
def test_s155_a_manifest_never_changes_and_a_retired_generation_never_comes_back(meaning, alice, otto, serving, change):
    cast.promoted(alice)
    register(otto)
    retire(otto, GENERATION)

    with pytest.raises(psycopg.Error) as no:
        serving.execute(f"UPDATE semantic_generation SET {change}")

    assert no.value.sqlstate == "LY006"


def test_the_manifest_binds_everything_that_decides_about_a_vector(meaning, alice, otto):
    cast.promoted(alice)
    described = register(otto).generation.manifest

    assert set(described) == {
        *("reference", "namespace", "owner", "policy_revision", "binding_digest", "embed_profile", "embed_binding"),
        *("chunking", "dimensions", "metric", "storage", "normalization", "l2_tolerance", "attempt_seconds"),
    }
    assert set(described["embed_binding"]) == set(manifest.BINDING_KEYS)
    assert (described["dimensions"], described["attempt_seconds"]) == (1024, 60)
    assert (described["chunking"], described["metric"], described["storage"]) == ("whole-note", "cosine", "float32-le")


def test_a_namespace_may_have_a_generation_of_its_own(meaning, alice, otto):
    cast.promoted(alice)
    register(otto)
    binding = meaning.binding
    host.configure_namespace(
        binding.namespace,
        owner=binding.owner,
        policy_revision=binding.policy_revision,
        by="host:tests",
        generation="notes-2",
    )

    again = meaning.caller("otto")

    # A changed generation is no change of binding: the same caller goes on, and the next one sees the new one.
    assert again.binding == binding
    assert discover(again).reference == "notes-2"
    assert register(again).created
    assert [one.generation.reference for one in derivations.generations(meaning.caller("ivy"))] == [
        GENERATION,
        "notes-2",
    ]


def test_with_derivation_off_nothing_of_it_answers(garden, otto, settings):
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "derivation": None}

    for act in (discover, register):
        with pytest.raises(DerivationOff):
            act(otto)


def test_a_namespace_without_a_generation_derives_nothing_while_others_do(meaning, alice, otto, dora, bob):
    note = cast.promoted(alice)
    binding = meaning.binding
    named = {"owner": binding.owner, "policy_revision": binding.policy_revision, "by": "host:tests"}
    host.configure_namespace(binding.namespace, **named, generation=NO_GENERATION)
    here = {subject: meaning.caller(subject) for subject in ("otto", "dora", "bob")}
    for act in (
        lambda: discover(here["otto"]),
        lambda: register(here["otto"]),
        lambda: acts.prepared(here["dora"], note),
        lambda: acts.asked(here["bob"]),
    ):
        with pytest.raises(DerivationOff):
            act()
    assert not Generation.objects.exists()
    assert cast.asked(here["bob"]).receipt["selected"]

    orchard = cast.plant("orchard")
    cast.admitted(orchard.caller("alice"))
    assert register(orchard.caller("otto")).created


def test_a_binding_migration_leaves_older_generations_behind(meaning, alice, otto, dora, settings):
    from archive.operations.migration import migrate

    note = cast.promoted(alice)
    acts.registered(otto)
    acts.derived(dora, note)
    moved = host.configure_namespace(
        meaning.binding.namespace, owner=cast.OWNER, policy_revision="policy-2", by="host:tests"
    )
    for subject, roles in {**cast.ROLES, "dora": ("deriver",)}.items():
        if roles:
            host.grant(subject, moved, host.actions_of(roles), by="host:tests")
    after = cast.Garden(moved)
    migrate(after.caller("otto"), reason="the policy has a second edition")

    with refused(409, "generation_mismatch"):
        acts.asked(after.caller("bob"))
    with refused(409, "generation_conflict"):
        register(after.caller("otto"))
    with snapshot(moved) as namespace:
        assert namespace is not None
        assert Generation.objects.get(namespace=namespace).state == "active"
