"""A signed-in visitor without a browser: a whole request through every middleware to the last byte of the page."""

from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from archive.operations import host
from lychd.bench.figures import clocked


class Visitor:
    """One subject of a scratch database, signed in."""

    def __init__(self, subject: str, roles: tuple[str, ...], namespace: str) -> None:
        binding = host.configure_namespace(
            namespace, owner="scratch", policy_revision="scratch-1", by=host.host_actor()
        )
        user = get_user_model()._default_manager.create_user(subject)
        host.map_principal(subject, user_id=user.pk)
        host.grant(subject, binding, host.actions_of(roles), by=host.host_actor())
        self.subject, self.namespace = subject, namespace
        with override_settings(ALLOWED_HOSTS=["testserver"], SECURE_SSL_REDIRECT=False):
            self._client = Client()
            self._client.force_login(user)

    def visit(self, address: str, form: dict[str, str] | None = None) -> float:
        """Open a page, or send it a form, and say how many milliseconds that took; a fault unless it is a page."""
        with override_settings(ALLOWED_HOSTS=["testserver"], SECURE_SSL_REDIRECT=False):
            if form is None:
                took, answer = clocked(self._client.get, address)
            else:
                took, answer = clocked(self._client.post, address, form)
        if answer.status_code not in {200, 302}:
            raise AssertionError(f"{address} answered {answer.status_code}")
        return took

    def statements(self, address: str) -> int:
        """Open a page and count every statement, those that begin and end transactions included."""
        with CaptureQueriesContext(connection) as seen:
            self.visit(address)
        return len(seen)
