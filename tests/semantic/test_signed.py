"""A message to the worker proves who wrote it: the service, by its key (S-187)."""

import logging

import pytest

from semantic import tasks
from semantic.models import Derivation
from semantic.operations.attempts import Attempt
from semantic.operations.generations import register
from tests import cast
from tests.semantic import acts

KEY, OLD, OTHER = ("k" * 50 + "abcde", "o" * 50 + "abcde", "x" * 50 + "abcde")


@pytest.fixture
def record(meaning, alice, otto, dora, settings):
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = KEY, []
    note = cast.promoted(alice, "Roses want morning sun.")
    register(otto)
    return acts.prepared(dora, note)


@pytest.fixture
def message(record, dora):
    return tasks.message(dora.namespace, "dora", Attempt(record.id, 1), "c-1")


def state_of(record) -> str:
    return Derivation.objects.get(id=record.id).state


def without(message, name):
    return {one: value for one, value in message.items() if one != name}


def test_a_message_of_the_service_is_done(record, message):
    assert tasks.run_derivation_attempt(**message) is None
    assert state_of(record) == "complete"


ALTERED = {
    "another namespace": lambda told: {**told, "namespace": "shed"},
    "another row": lambda told: {**told, "derivation_id": told["derivation_id"][::-1]},
    "another version": lambda told: {**told, "expected_row_version": 2},
    "a version by another name": lambda told: {**told, "expected_row_version": 1.0},
    "another try": lambda told: {**told, "retry": True},
    "another subject": lambda told: {**told, "subject": "otto"},
    "another correlation": lambda told: {**told, "correlation_id": "c-2"},
    "more": lambda told: {**told, "more": "words"},
    "less": lambda told: without(told, "correlation_id"),
    "no signature": lambda told: without(told, "signature"),
    "nothing for a signature": lambda told: {**told, "signature": ""},
    "no text for a signature": lambda told: {**told, "signature": [told["signature"]]},
    "a longer signature": lambda told: {**told, "signature": f"{told['signature']}:"},
    "half a character": lambda told: {**told, "subject": "\ud800"},
    "half a character for a signature": lambda told: {**told, "signature": "\ud800"},
    "nothing at all": lambda told: {},
}


@pytest.mark.parametrize("how", ALTERED)
def test_one_that_was_altered_is_refused_in_one_line_without_its_words(record, message, caplog, how):
    with caplog.at_level(logging.DEBUG):
        assert tasks.run_derivation_attempt(**ALTERED[how](message)) is None
    assert state_of(record) == "prepared"
    (said,) = [one for one in caplog.records if one.name == "semantic.tasks"]
    assert (said.getMessage(), said.levelname) == ("message refused: this service did not sign it", "ERROR")


def test_words_without_names_are_refused_as_well(record, message, caplog):
    assert tasks.run_derivation_attempt("dora", **message) is None
    assert state_of(record) == "prepared"


def test_the_signature_is_one_of_this_task_and_of_this_key(record, message, dora, settings, monkeypatch):
    settings.SECRET_KEY = OTHER
    foreign = tasks.message(dora.namespace, "dora", Attempt(record.id, 1), "c-1")
    settings.SECRET_KEY = KEY
    monkeypatch.setattr(tasks, "NAME", "another.task")
    of_another_task = tasks.message(dora.namespace, "dora", Attempt(record.id, 1), "c-1")
    monkeypatch.undo()
    assert len({one["signature"] for one in (message, foreign, of_another_task)}) == 3
    for one in (foreign, of_another_task):
        tasks.run_derivation_attempt(**one)
        assert state_of(record) == "prepared"


def test_a_message_of_the_key_before_is_good_as_long_as_that_is_named(record, message, settings):
    settings.SECRET_KEY = OLD
    tasks.run_derivation_attempt(**message)
    assert state_of(record) == "prepared"
    settings.SECRET_KEY_FALLBACKS = [OTHER, KEY]
    tasks.run_derivation_attempt(**message)
    assert state_of(record) == "complete"
