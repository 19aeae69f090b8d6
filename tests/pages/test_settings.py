"""The settings of a namespace: shown to whoever may configure it, changed by a second POST on what was shown."""

import re

import pytest
from django.test import Client

from archive.authority import Caller
from archive.bindings import NO_GENERATION, Binding
from archive.models import ConfiguredBinding
from archive.operations import host, management
from archive.refusals import AuthorityRefused, BindingMismatch, InvalidRequest
from tests import cast
from tests.pages.test_nothing_changes import Markup, rows

NS = f"/ns/{cast.GARDEN}/settings"
TABLES = {"lychd_binding", "lychd_binding_history"}


@pytest.fixture
def manager(sign_in) -> Client:
    """Otto's browser: he operates, and so he configures."""
    return sign_in("otto")


def hidden(page) -> dict[str, str]:
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.content.decode()))


def form(client, **changes) -> dict[str, str]:
    page = client.get(NS)
    return {**page.context["now"], "seen": page.context["seen"], **changes}


def row() -> ConfiguredBinding:
    return ConfiguredBinding.objects.get(namespace_key=cast.GARDEN)


def standing() -> tuple[object, ...]:
    now = row()
    return now.owner, now.policy_revision, now.text_configuration, now.generation, now.second_person


@pytest.mark.parametrize(
    ("changes", "means", "stands"),
    [
        ({"owner": "heirs"}, "nobody may do anything here", ("heirs", "policy-1", "simple", None, False)),
        ({"policy_revision": "p-2"}, "until they are migrated", ("estate", "p-2", "simple", None, False)),
        ({"text_configuration": "english"}, "cut again", ("estate", "policy-1", "english", None, False)),
        ({"generation": "none"}, "recall by meaning is off", ("estate", "policy-1", "simple", NO_GENERATION, False)),
        ({"generation": "notes-9"}, "generation notes-9 is used", ("estate", "policy-1", "simple", "notes-9", False)),
        ({"second_person": "yes"}, "took in themselves", ("estate", "policy-1", "simple", None, True)),
    ],
    ids=str,
)
def test_the_first_post_only_shows_and_the_second_one_changes(garden, manager, owner, changes, means, stands):
    before = rows(owner)
    first = manager.post(f"{NS}/change", form(manager, **changes))
    assert first.status_code == 200
    assert means in first.content.decode()
    assert rows(owner) == before
    markup = Markup()
    markup.feed(first.content.decode())
    assert markup.faults == []

    second = manager.post(f"{NS}/change", hidden(first))
    assert second.status_code in (200, 302)
    assert standing() == stands
    assert row().configured_by == "otto"
    assert {name for name, digest in rows(owner).items() if digest != before[name]} == TABLES


def test_the_same_form_again_changes_nothing(garden, manager, owner):
    confirmed = {**form(manager, second_person="yes"), "confirmed": "yes"}
    assert manager.post(f"{NS}/change", confirmed).status_code == 302
    before = rows(owner)
    again = manager.post(f"{NS}/change", confirmed, follow=True)
    assert "It stands so already" in again.content.decode()
    assert rows(owner) == before


def test_back_to_the_generation_of_the_deployment(garden, manager):
    for word, generation in (("none", NO_GENERATION), ("default", None)):
        manager.post(f"{NS}/change", {**form(manager, generation=word), "confirmed": "yes"})
        assert row().generation == generation


@pytest.mark.parametrize("step", ["change", "disable"])
@pytest.mark.parametrize("confirmed", [{}, {"confirmed": "yes"}], ids=["preview", "confirmed"])
def test_a_form_about_another_configuration_changes_nothing(garden, otto, manager, owner, step, confirmed):
    posted = {**form(manager, owner="heirs"), **confirmed}
    posted = posted if step == "change" else {"seen": posted["seen"], **confirmed}
    host.configure_namespace(
        cast.GARDEN, owner=cast.OWNER, policy_revision=cast.POLICY, by="host:tests", second_person=True
    )
    before = rows(owner)
    answer = manager.post(f"{NS}/{step}", posted)
    assert answer.status_code == 409
    assert "changed meanwhile, so nothing was done" in answer.content.decode()
    assert rows(owner) == before
    met = Caller.in_namespace("otto", cast.GARDEN)
    with pytest.raises(BindingMismatch):
        management.configure(met, Binding(cast.GARDEN, "heirs", cast.POLICY), seen=posted["seen"])


def test_a_configuration_that_moved_meanwhile_is_left_alone(garden, otto):
    host.configure_namespace(cast.GARDEN, owner="heirs", policy_revision=cast.POLICY, by="host:tests")
    wanted = Binding(cast.GARDEN, cast.OWNER, cast.POLICY, second_person=True)
    with pytest.raises(BindingMismatch):
        management.configure(otto, wanted, seen=management.tag_of(otto.binding))
    with pytest.raises(BindingMismatch):
        management.disable(otto, seen=management.tag_of(otto.binding))
    assert standing() == ("heirs", cast.POLICY, "simple", None, False)
    assert row().disabled_at is None


def test_the_first_post_only_shows_what_stopping_means(garden, manager, owner):
    before = rows(owner)
    first = manager.post(f"{NS}/disable", {"seen": form(manager)["seen"]})
    assert "Only the host can serve it again" in first.content.decode()
    assert rows(owner) == before
    second = manager.post(f"{NS}/disable", hidden(first))
    assert second.status_code == 200
    assert "lychd namespace configure garden --owner estate --policy policy-1" in second.content.decode()
    assert row().disabled_at is not None
    assert manager.get(NS).status_code == 404


@pytest.mark.parametrize("who", ["alice", "bob", "ivy", "charlie", "stranger"])
def test_whoever_may_not_configure_sees_no_form_and_changes_nothing(garden, manager, sign_in, owner, who):
    client, posted = sign_in(who), {**form(manager, owner="heirs"), "confirmed": "yes"}
    before = rows(owner)
    assert client.get(NS).status_code == 403
    assert client.post(f"{NS}/change", posted).status_code == 403
    assert client.post(f"{NS}/disable", {"seen": posted["seen"], "confirmed": "yes"}).status_code == 403
    assert rows(owner) == before


@pytest.mark.parametrize("confirmed", [{}, {"confirmed": "yes"}], ids=["preview", "confirmed"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"owner": "a b"},
        {"owner": ""},
        {"policy_revision": "x" * 129},
        {"text_configuration": "klingon"},
        {"generation": ""},
        {"generation": "a b"},
        {"second_person": "perhaps"},
        {"more": "x"},
    ],
    ids=str,
)
def test_a_wrong_form_is_refused_by_name(garden, manager, owner, wrong, confirmed):
    before = rows(owner)
    answer = manager.post(f"{NS}/change", {**form(manager, **wrong), **confirmed})
    assert answer.status_code == 400
    assert next(iter(wrong)) in answer.content.decode()
    assert rows(owner) == before


def test_each_act_is_asked_about_before_and_after(garden, otto, scripted):
    seen = management.tag_of(otto.binding)
    for act in (
        lambda: management.text_configurations(otto),
        lambda: management.configure(otto, otto.binding, seen=seen),
        lambda: management.disable(otto, seen=seen),
    ):
        scripted.script, scripted.calls = [True], 0
        scripted.asked.clear()
        act()
        assert [one.action for one in scripted.asked] == ["configure_namespace"] * 2
        scripted.calls, scripted.script = 0, [False]
        with pytest.raises(AuthorityRefused):
            act()


class Elsewhere:
    """Bindings that stand in no table."""

    def find(self, namespace: str) -> Binding | None:
        return Binding(cast.GARDEN, cast.OWNER, cast.POLICY) if namespace == cast.GARDEN else None


def test_what_is_configured_elsewhere_is_changed_there(garden, manager, settings):
    posted = form(manager, owner="heirs")
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "bindings": "tests.pages.test_settings.Elsewhere"}
    assert "configured in the settings of the service" in manager.get(NS).content.decode()
    otto = Caller.in_namespace("otto", cast.GARDEN)
    with pytest.raises(InvalidRequest):
        management.configure(otto, Binding(cast.GARDEN, "heirs", cast.POLICY), seen=posted["seen"])
    assert row().owner == cast.OWNER
