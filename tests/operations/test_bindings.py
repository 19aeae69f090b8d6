"""Where configured bindings come from: a table by default, the settings for a fixed few."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from archive import bindings
from archive.authority import Action, Caller
from archive.bindings import Binding, SettingsBindings, TableBindings
from archive.operations import host
from archive.refusals import AuthorityRefused, BindingMismatch, ProfileOff
from tests import cast
from tests.scenarios.counting import refused


class Elsewhere:
    """A source of bindings of somebody's own."""

    def find(self, namespace: str) -> Binding | None:
        return Binding(namespace, "estate", "policy-1") if namespace == "garden" else None


def test_a_table_binding_is_found_by_one_look_up(garden):
    with CaptureQueriesContext(connection) as statements:
        assert TableBindings().find("garden") == garden.binding
    assert len(statements.captured_queries) == 1
    assert TableBindings().find("nowhere") is None
    host.disable_namespace("garden", by="host:tests")
    assert TableBindings().find("garden") is None


def configured(settings, **changes) -> None:
    settings.LYCHD_ARCHIVE = {
        **settings.LYCHD_ARCHIVE,
        "bindings": "archive.bindings.SettingsBindings",
        "namespace": "garden",
        "owner": "estate",
        "policy_revision": "policy-1",
        **changes,
    }


def test_the_settings_are_one_binding_and_may_list_more(settings):
    configured(
        settings,
        namespaces=[
            {"namespace": "meadow", "owner": "commons", "policy_revision": "p1", "text_configuration": "english"},
            {"namespace": "orchard", "owner": "commons", "policy_revision": "p1", "second_person": True},
        ],
    )
    found = SettingsBindings()
    assert found.find("garden") == Binding("garden", "estate", "policy-1")
    assert found.find("meadow") == Binding("meadow", "commons", "p1", "english")
    assert found.find("orchard") == Binding("orchard", "commons", "p1", second_person=True)
    assert found.find("nowhere") is None


def test_an_archive_works_under_bindings_of_the_settings(settings, transactional_db):
    configured(settings)
    host.map_principal("sole")
    binding = SettingsBindings().find("garden")
    assert binding is not None
    host.grant("sole", binding, list(Action), by="host:tests")
    sole = Caller.in_namespace("sole", "garden")
    cast.promoted(sole)
    assert cast.asked(sole).receipt["outcome"] == "selected"
    configured(settings, policy_revision="policy-2")
    with pytest.raises(BindingMismatch):
        cast.asked(sole)
    with pytest.raises(AuthorityRefused):
        cast.asked(Caller.in_namespace("sole", "garden"))


def test_a_source_of_ones_own_is_asked_at_the_door_and_under_the_hold(settings, transactional_db):
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "bindings": f"{__name__}.Elsewhere"}
    host.map_principal("sole")
    host.grant("sole", Binding("garden", "estate", "policy-1"), list(Action), by="host:tests")
    assert cast.admitted(Caller.in_namespace("sole", "garden")).state == "candidate"
    with refused(403, "authority_refused"):
        Caller.in_namespace("sole", "meadow")


def test_without_a_profile_there_is_no_source(settings):
    settings.LYCHD_ARCHIVE = None
    for ask in (bindings.source, bindings.require_profile, lambda: SettingsBindings().find("garden")):
        with pytest.raises(ProfileOff):
            ask()


def test_a_binding_that_changes_between_the_door_and_the_hold_is_a_mismatch(garden, alice, counts):
    cast.admitted(alice)
    for change in ({"owner": "heirs"}, {"policy_revision": "p2"}, {"text_configuration": "english"}):
        options = {"owner": cast.OWNER, "policy_revision": cast.POLICY, "by": "host:tests", **change}
        host.configure_namespace(cast.GARDEN, **options)
        with counts.refused(403 if "text_configuration" not in change else 409, _code(change)):
            cast.asked(Caller("alice", TableBindings().find(cast.GARDEN)))
        with counts.refused(409, "binding_mismatch"):
            cast.asked(alice)


def _code(change: dict[str, str]) -> str:
    # Grants name owner and policy revision, so under another of these there is no authority at all.
    return "binding_mismatch" if "text_configuration" in change else "authority_refused"
