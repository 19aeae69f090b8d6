"""Who is asking: a bearer token, or a signed-in user; each stands for a principal and its subject, never for rights.

A credential that is given and not good is refused; it never falls back to another one or to nobody.
"""

import logging
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, CSRFCheck, SessionAuthentication
from rest_framework.request import Request

from archive import authority
from archive.authority import Caller
from archive.models import Token
from archive.models.host import ends_soon
from archive.operations import host
from archive.refusals import CsrfFailed, Fault, InvalidRequest, NotAuthenticated
from archive.transactions import reading

log = logging.getLogger(__name__)

_SECRET: Final = re.compile(r"lychd_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Bearer:
    """Whoever holds a good token: its subject, the namespaces it is for, and whether its use was noted of late."""

    subject: str
    principal: int
    token_id: int
    noted: bool
    namespaces: frozenset[str] | None
    """What it is for; None for every namespace in which its subject is granted anything."""
    ends_at: datetime | None
    """When its token ends, where that is soon."""
    is_authenticated: ClassVar[bool] = True
    is_active: ClassVar[bool] = True
    pk: ClassVar[None] = None


class BearerToken(BaseAuthentication):
    """`Authorization: Bearer lychd_...`, looked up by the digest of the whole secret."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        """Return the bearer; None without the header, a refusal for anything else in it."""
        header: str | None = request.META.get("HTTP_AUTHORIZATION")
        if header is None:
            return None
        if "," in header:
            # Two headers arrive joined, and no token has a comma.
            raise InvalidRequest([Fault("", "one Authorization header")])
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != "bearer" or not _SECRET.fullmatch(secret):
            raise NotAuthenticated
        found = _live(host.digest_of_secret(secret))
        if found is None:
            raise NotAuthenticated
        authority.acts_now(found.principal)
        return found, None

    def authenticate_header(self, request: Request) -> str:
        """Name the scheme for the 401."""
        return "Bearer"


def _live(digest: str) -> Bearer | None:
    with reading():
        row = Token.live(digest)
    if row is None:
        return None
    subject, principal, token_id, namespaces, created_at, expires_at, noted, now = row
    return Bearer(
        subject,
        principal,
        token_id,
        noted,
        None if namespaces is None else frozenset(namespaces),
        expires_at if ends_soon(created_at, expires_at, now) else None,
    )


class Session(SessionAuthentication):
    """The sign-in of the pages, for reads and, with the CSRF header, for writes."""

    def enforce_csrf(self, request: Request) -> None:
        """Refuse a write that does not prove that our own page sent it; only the header is looked at, never a body."""
        asked: HttpRequest = request._request
        check = CSRFCheck(lambda _: None)  # type: ignore[arg-type]
        check.process_request(asked)
        if check.process_view(asked, None, (), {}):  # type: ignore[arg-type]
            raise CsrfFailed


def subject_of(request: Request) -> str | None:
    """Return the subject that the asker stands for, or None for a user without an active principal (R-L-014)."""
    asker: Any = request.user
    if isinstance(asker, Bearer):
        return asker.subject
    return authority.subject_of_user(asker.pk)


def namespaces_of(request: Request) -> frozenset[str] | None:
    """Return the namespaces that the asker's token is for, or None where only grants decide."""
    asker: Any = request.user
    return asker.namespaces if isinstance(asker, Bearer) else None


def caller_in(request: Request, namespace: str) -> Caller:
    """Meet the asker at the door of a namespace: a token opens those that it is for, as far as its subject may."""
    return Caller.in_namespace(subject_of(request), namespace, within=namespaces_of(request))


def key_of(request: Request) -> str:
    """Name the asker for counting requests."""
    asker: Any = request.user
    return f"subject:{asker.subject}" if isinstance(asker, Bearer) else f"user:{asker.pk}"


def ends_at(request: Request) -> datetime | None:
    """Return when the asker's token ends, where its holder should see to another."""
    asker: Any = request.user
    return asker.ends_at if isinstance(asker, Bearer) else None


def note_use(request: Request) -> None:
    """After an answer was given, note that the token was used; a failure of the note takes nothing back."""
    asker: Any = request.user
    if not isinstance(asker, Bearer) or asker.noted:
        return
    try:
        host.token_used(asker.token_id)
    except Exception as error:
        log.warning("token use not noted", extra={"error": type(error).__name__})
