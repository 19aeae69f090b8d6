"""Signing in and out, by Django's own sessions."""

import secrets
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from archive.curation.door import refused, unstored
from archive.refusals import TooManyRequests, Unavailable
from archive.transactions import reading

BROWSER_COOKIE: Final = "lychd_browser"
BROWSER_SECONDS: Final = 180 * 86_400
_SALT: Final = "inspection.pages.sign:"


class SignIn(LoginView):
    """Ask for name and password; where storage does not answer, say so instead of failing."""

    template_name = "pages/sign_in.html"
    next_page = "door"

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Sign in, and know this browser again under this name."""
        response = super().form_valid(form)
        name = form.get_user().get_username()
        if _browser(self.request, name) is None:
            response.set_signed_cookie(
                BROWSER_COOKIE,
                secrets.token_urlsafe(16),
                salt=_SALT + name,
                max_age=BROWSER_SECONDS,
                path=settings.SESSION_COOKIE_PATH,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return response

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            with reading():
                response = super().dispatch(request, *args, **kwargs)
        except Unavailable as refusal:
            return refused(request, refusal)
        return response


def counted_name(request: HttpRequest, credentials: Mapping[str, Any] | None = None) -> str | None:
    """The name under which wrong passwords are counted: apart for a browser that has signed in with it before.

    So nobody locks a curator out of their own browser, and whoever took the browser has no more tries than others.
    """
    name = (credentials or request.POST).get("username")
    browser = None if not name else _browser(request, name)
    return name if browser is None else f"{name} {browser}"


def _browser(request: HttpRequest, name: str) -> str | None:
    """What this browser is called, if it has signed in under this name; the signature holds for no other."""
    found: str | None = request.get_signed_cookie(BROWSER_COOKIE, None, salt=_SALT + name, max_age=BROWSER_SECONDS)
    return found


def locked_out(request: HttpRequest, original: object = None, credentials: object = None) -> HttpResponse:
    """Say that too many wrong passwords were sent; whether the name exists is not said."""
    return unstored(render(request, "pages/locked_out.html", status=TooManyRequests.status))


class SignOut(LogoutView):
    """End the session; by POST alone."""

    http_method_names = ["post", "options"]
    next_page = "sign-in"
