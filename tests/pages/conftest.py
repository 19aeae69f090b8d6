"""The cast, signed in: each with a browser of its own."""

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from archive.operations import host
from tests import cast
from tests.pages import paths


@pytest.fixture
def sign_in(garden: cast.Garden) -> Callable[..., Client]:
    """Give a member of the cast a user and a signed-in client; `stranger` is a user for whom no principal stands."""

    def signed_in(subject: str, *, enforce_csrf_checks: bool = False) -> Client:
        user, made = get_user_model().objects.get_or_create(username=subject)
        if made and subject != "stranger":
            host.map_principal(subject, user_id=user.pk)
        client = Client(enforce_csrf_checks=enforce_csrf_checks)
        client.force_login(user)
        return client

    return signed_in


@pytest.fixture
def curator(sign_in: Callable[..., Client]) -> Client:
    """Alice's browser. She reviews and decides, and inspects no receipts."""
    return sign_in("alice")


@pytest.fixture
def inspector(sign_in: Callable[..., Client]) -> Client:
    """Ivy's browser. She inspects everything and reads no text."""
    return sign_in("ivy")


@pytest.fixture
def nursery(alice, bob) -> paths.Nursery:
    """A garden with a note in every state and a receipt."""
    return paths.nursery(alice, bob)
