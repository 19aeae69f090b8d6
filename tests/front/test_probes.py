"""Probes have a line of their own: no work, no database and no host name keeps them from answering."""

import threading

import pytest
from django.conf import settings
from django.db import connections

from lychd import embedded, front
from tests.commands.conftest import PATIENCE, until
from tests.front.serving import relayed

SOON = 1.0


@pytest.fixture
def relay(transactional_db):
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("stands before the suite's own embedded server")
    with relayed(str(embedded.socket_dir(settings.LYCHD_STATE_DIR))) as relay:
        yield relay


def test_healthz_answers_while_every_place_waits_for_a_database_that_hangs(serve, relay):
    name = connections["default"].settings_dict["NAME"]
    served = serve(DATABASE_URL=f"postgresql://{embedded.SERVING_ROLE}@127.0.0.1:{relay.port}/{name}")
    assert served.ask("/readyz").json()["status"] == "ok"

    relay.hang()
    cookie = f"sessionid={'a' * 32}"
    crowd = [threading.Thread(target=served.ask, args=("/",), kwargs={"Cookie": cookie}) for _ in range(60)]
    for one in crowd:
        one.start()
    slowest = 0.0
    for _ in range(20):
        alive = served.ask("/healthz")
        assert (alive.status, alive.json()) == (200, {"status": "ok"})
        slowest = max(slowest, alive.took)
    assert slowest < SOON
    for _ in range(2):
        unready = served.ask("/readyz", X_Request_ID="probe-2")
        assert (unready.status, unready.json()["correlation_id"]) == (503, "probe-2")
        assert unready.took < front.READY_SECONDS + SOON

    relay.go_on()
    for one in crowd:
        one.join(PATIENCE)
    until(lambda: served.ask("/readyz").status == 200, "it is ready again by itself")


def test_l6_probes_are_answered_whatever_host_they_are_asked_under(production):
    served = production.serve()
    for path in ("/healthz", "/readyz"):
        answer = served.ask(path, Host="localhost")
        assert (answer.status, answer.json()["status"]) == (200, "ok")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-request-id"]
        refused = served.ask(path, "POST", Host="localhost")
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
    assert served.ask("/sign-in", Host="localhost").status == 400
