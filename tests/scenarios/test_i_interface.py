"""I. The interface projection: what the admission engine's default asks for, beside the profile that is configured."""

import logging
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from archive import admission
from archive.admission import Pattern
from inspection.interface import projection
from tests.scenarios.counting import Counts, refused


class Engine:
    """An admission engine's default as a test sets it; an exception is raised."""

    default: ClassVar[Any] = None

    def current(self) -> Pattern | None:
        if isinstance(self.default, Exception):
            raise self.default
        return self.default


@pytest.fixture
def engine(settings) -> Callable[[Any], None]:
    """Configure an admission engine with this default."""

    def configured(default: Any) -> None:
        settings.LYCHD_ARCHIVE = {
            **settings.LYCHD_ARCHIVE,
            "admission_default": "tests.scenarios.test_i_interface.Engine",
        }
        Engine.default = default

    return configured


def told(caller) -> dict[str, Any]:
    return projection(caller).as_json()


def test_s132_the_default_with_an_equal_binding_asks_for_the_profile(garden, ivy, engine):
    engine(Pattern("bridge_chat@3", garden.binding.fields()))
    assert told(ivy) == {"pattern": "bridge_chat@3", "requests_profile": True}


@pytest.mark.parametrize("name", ["bridge_chat@2", "bridge_chat@30", "another@3"])
def test_s132_another_default_does_not(garden, ivy, engine, name):
    engine(Pattern(name, garden.binding.fields()))
    assert told(ivy) == {"pattern": name, "requests_profile": False}


@pytest.mark.parametrize(
    "change",
    [
        *({name: "another's"} for name in ("profile", "namespace", "owner", "policy_revision")),
        {"more": "than the four"},
        None,
    ],
    ids=str,
)
def test_s132_nor_does_an_unequal_binding_or_none_and_nothing_of_it_is_shown(garden, ivy, engine, change):
    engine(Pattern("bridge_chat@3", None if change is None else {**garden.binding.fields(), **change}))
    assert told(ivy) == {"pattern": "bridge_chat@3", "requests_profile": False}


def test_s132_a_part_of_the_binding_is_not_the_whole(garden, ivy, engine):
    fields = garden.binding.fields()
    del fields["owner"]
    engine(Pattern("bridge_chat@3", fields))
    assert told(ivy)["requests_profile"] is False


UNKNOWN = {"pattern": None, "requests_profile": "unknown"}


def test_s132_with_no_provider_it_is_unknown(ivy):
    assert told(ivy) == UNKNOWN


@pytest.mark.parametrize(
    "default",
    [
        None,
        OSError("the engine of estate is away"),
        "bridge_chat@3",
        Pattern("estate's own", None),
        Pattern("a@3\n", {}),
    ],
    ids=repr,
)
def test_s132_with_a_provider_that_cannot_say_it_is_unknown_and_its_words_stay_out_of_the_log(
    ivy, engine, caplog, default
):
    engine(default)
    with caplog.at_level(logging.DEBUG, "archive.admission"):
        assert told(ivy) == UNKNOWN
    said = [record for record in caplog.records if record.name == "archive.admission"]
    assert len(said) == (0 if default is None else 1)
    assert "estate" not in str([vars(record) for record in caplog.records])


def test_s132_one_that_cannot_be_loaded_is_unknown_and_stops_the_start(ivy, settings):
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "admission_default": "no.such.Engine"}
    assert told(ivy) == UNKNOWN
    with pytest.raises(SystemCheckError, match=r"archive\.E001[\s\S]*LYCHD_ADMISSION_DEFAULT"):
        call_command("check")


@pytest.mark.parametrize("subject", ["alice", "bob", "wanda", "charlie"])
def test_s132_whoever_may_not_inspect_it_is_refused_and_nobody_is_asked(garden, engine, monkeypatch, subject):
    engine(Pattern("bridge_chat@3", garden.binding.fields()))
    monkeypatch.setattr(admission, "default_pattern", lambda: pytest.fail("asked"))
    with refused(403, "authority_refused"):
        told(garden.caller(subject))


@pytest.mark.parametrize("yes", [0, 1])
def test_s132_authority_is_asked_before_and_after(ivy, engine, scripted, yes):
    engine(Pattern("bridge_chat@3", None))
    scripted.script = [True] * yes + [False]
    with refused(403, "authority_refused"):
        told(ivy)
    assert len(scripted.asked) == yes + 1
    assert {(one.purpose, one.action) for one in scripted.asked} == {("management", "inspect_interface")}


def test_s132_no_table_of_the_archive_is_read(garden, ivy, engine, counts: Counts):
    engine(Pattern("bridge_chat@3", garden.binding.fields()))
    with CaptureQueriesContext(connection) as captured:
        told(ivy)
    statements = [one["sql"] for one in captured.captured_queries]
    assert statements
    assert not [one for one in statements if "archive_" in one or "semantic_" in one]
    counts.unchanged()
