"""Signing in and out, by Django's own sessions."""

from typing import Any

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from archive.curation.door import refused
from archive.refusals import Unavailable
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


class SignOut(LogoutView):
    """End the session; by POST alone."""

    http_method_names = ["post", "options"]
    next_page = "sign-in"
