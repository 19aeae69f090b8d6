"""Signing in is throttled as in production: by name and address, with a page of our own."""

import pytest
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.core.cache import cache
from django.test import Client

from tests.pages.test_nothing_changes import POLICY, Markup

PASSWORD = "correct horse battery staple"
WRONG_MAX = 5


@pytest.fixture
def throttled(settings):
    """The settings of production that throttle, with the counts in the cache instead of a table."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "axes"]
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "axes.middleware.AxesMiddleware"]
    settings.AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", *settings.AUTHENTICATION_BACKENDS]
    settings.AXES_HANDLER = "axes.handlers.cache.AxesCacheHandler"
    settings.AXES_VERBOSE = False
    settings.AXES_FAILURE_LIMIT = WRONG_MAX
    settings.AXES_COOLOFF_TIME = 1
    settings.AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
    settings.AXES_LOCKOUT_CALLABLE = "inspection.pages.sign.locked_out"
    from axes import signals

    heard = {
        user_login_failed: signals.handle_user_login_failed,
        user_logged_in: signals.handle_user_logged_in,
        user_logged_out: signals.handle_user_logged_out,
    }
    for signal, receiver in heard.items():
        signal.connect(receiver)
    yield
    # Once imported it would listen for the rest of the run, and look for tables of its own.
    for signal, receiver in heard.items():
        signal.disconnect(receiver)
    cache.clear()


def test_too_many_wrong_passwords_close_the_sign_in_for_that_name(throttled, garden, django_user_model):
    for name in ("alice", "bob"):
        django_user_model.objects.create_user(name, password=PASSWORD)
    client = Client()
    answers = [client.post("/sign-in", {"username": "alice", "password": "wrong"}) for _ in range(WRONG_MAX + 1)]
    assert answers[0].status_code == 200
    shut = answers[-1]
    told = shut.content.decode()
    assert shut.status_code == 429
    assert "Too many wrong passwords" in told
    assert sorted(shut["Content-Security-Policy"].split("; ")) == POLICY
    assert "no-store" in shut["Cache-Control"]
    markup = Markup()
    markup.feed(told)
    assert markup.faults == []
    # The right password is no use now, to another name it still is, and a name that nobody has looks the same.
    assert client.post("/sign-in", {"username": "alice", "password": PASSWORD}).status_code == 429
    assert client.post("/sign-in", {"username": "bob", "password": PASSWORD}).status_code == 302
    nobody = [Client().post("/sign-in", {"username": "nobody", "password": "wrong"}) for _ in range(WRONG_MAX + 1)]
    assert (nobody[-1].status_code, nobody[-1].content) == (429, shut.content)
