"""Signing in and out, by Django's own sessions."""

from typing import Any

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from archive.curation.door import refused, unstored
from archive.refusals import TooManyRequests, Unavailable
from archive.transactions import reading


class SignIn(LoginView):
    """Ask for name and password; where storage does not answer, say so instead of failing."""

    template_name = "pages/sign_in.html"
    next_page = "door"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            with reading():
                response = super().dispatch(request, *args, **kwargs)
        except Unavailable as refusal:
            return refused(request, refusal)
        return response


def locked_out(request: HttpRequest, original: object = None, credentials: object = None) -> HttpResponse:
    """Say that too many wrong passwords were sent; whether the name exists is not said."""
    return unstored(render(request, "pages/locked_out.html", status=TooManyRequests.status))


class SignOut(LogoutView):
    """End the session; by POST alone."""

    http_method_names = ["post", "options"]
    next_page = "sign-in"
