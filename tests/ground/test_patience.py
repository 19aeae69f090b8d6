"""What the worker does by each look at the database; tests/outages drives it with real processes."""

from types import SimpleNamespace

import pytest

from lychd import patience


class Consumer:
    """Records what it is told to take and to leave."""

    def __init__(self):
        self.done = []
        self.app = SimpleNamespace(amqp=SimpleNamespace(queues=SimpleNamespace(consume_from={"embedding": None})))
        self.connection_errors = (OSError,)
        self.timer = SimpleNamespace(call_repeatedly=lambda *_: SimpleNamespace(cancel=lambda: None))

    def cancel_task_queue(self, queue):
        self.done.append(("leave", queue))

    def add_task_queue(self, queue):
        self.done.append(("take", queue))


@pytest.fixture
def looks(monkeypatch):
    """What the database answers and what the clock says, look by look."""
    state = SimpleNamespace(answers=True, now=0.0)
    monkeypatch.setattr(patience, "_answers", lambda database: state.answers)
    monkeypatch.setattr(patience.time, "monotonic", lambda: state.now)
    return state


def test_it_stops_once_says_so_each_minute_and_goes_on(looks, caplog):
    consumer = Consumer()
    patient = patience.Patience(consumer)
    patient.start(consumer)
    assert consumer.done == []

    looks.answers = False
    for looks.now in (10.0, 11.0, 69.0, 70.0, 71.0, 130.0):
        assert patient.look(consumer) is False
    assert consumer.done == [("leave", "embedding")]
    assert [record.message.partition(";")[0] for record in caplog.records] == [
        "The database does not answer",
        "The database has not answered for 60 s",
        "The database has not answered for 120 s",
    ]

    looks.answers = True
    assert patient.look(consumer) is True
    assert consumer.done[1:] == [("take", "embedding")]
    assert caplog.records[-1].message.startswith("The database answers again after 120 s; messages are taken.")


def test_a_message_that_comes_while_the_database_is_away_goes_back_unread(looks, monkeypatch):
    handled, rejected = [], []
    monkeypatch.setattr(patience, "default", lambda *_, **__: lambda message, *_: handled.append(message))
    consumer = Consumer()
    patience.Patience(consumer)
    received = patience.strategy(None, None, consumer)

    received("first", None, None, lambda *given: rejected.append(given), None)
    looks.answers = False
    received("second", None, None, lambda *given: rejected.append(given), None)

    assert handled == ["first"]
    assert rejected == [(patience.log, (OSError,), True)]


def test_what_no_lease_was_left_for_goes_back_to_its_queue_once_one_is_free(monkeypatch):
    from lychd.celery import app

    @app.task(name="tests.leased")
    def leased(code):
        return code

    free, paused, sent = iter([False, False, True]), [], []
    monkeypatch.setattr(patience.leases, "free", lambda: next(free))
    monkeypatch.setattr(patience.time, "sleep", paused.append)
    monkeypatch.setattr(leased, "apply_async", lambda args, kwargs, **more: sent.append((args, kwargs)))
    assert leased.apply(kwargs={"code": "lease_unavailable"}).result == "lease_unavailable"
    assert leased.apply(kwargs={"code": "derivation_not_claimable"}).result == "derivation_not_claimable"
    # Whoever calls it in their own process is told, and sends nothing.
    assert leased("lease_unavailable") == "lease_unavailable"

    assert (len(paused), sent) == (2, [((), {"code": "lease_unavailable"})])
    app.tasks.unregister("tests.leased")


def test_a_task_rests_after_a_database_that_cannot_work_and_after_nothing_else(monkeypatch):
    rests = []
    monkeypatch.setattr(patience, "_rest", lambda: rests.append("rest"))
    from lychd.celery import app

    @app.task(name="tests.echo")
    def echo(code):
        return code

    assert isinstance(echo, patience.PatientTask)
    for code in (None, "lifecycle_version_conflict", "storage_unavailable"):
        assert echo(code) == code
    assert rests == ["rest"]
    app.tasks.unregister("tests.echo")
