"""The whole of /api/v1: what the apps below answer, the description of it, and a page to read that in."""

from typing import Any, Final

from csp.decorators import csp_update
from django.conf import settings
from django.http import HttpResponse
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, include, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views.decorators.csrf import ensure_csrf_cookie
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from archive.api import description, views
from archive.api.base import ArchiveView
from inspection.api import derivations as derived
from inspection.api import views as reading
from lychd import celery
from semantic.api import views as deriving


class Notes(reading.Notes, views.Intakes):
    """The notes of a namespace: GET lists, POST takes one in."""


# Whoever asks for an attempt sends it to our own broker, which the worker's application names.
WORKER: Final = celery.app


class Derivations(derived.Derivations, deriving.Preparations):
    """The derivations of a namespace: GET lists, POST prepares one."""


class _Described(ArchiveView):
    """For whoever is signed in; in development for anyone."""

    http_method_names = ["get", "head"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Ask who it is, except in development."""
        if not settings.LYCHD_OPEN_DESCRIPTION:
            super().initial(request, *args, **kwargs)
            return
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request, force=True)

    def require_profile(self) -> None:
        """The description can be read while the archive is off."""


class Schema(_Described):
    """The description itself."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        """Give the OpenAPI document."""
        return Response(description.document())


_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>LychD Archive: the API</title>
<link rel="icon" href="{}">
<link rel="stylesheet" href="{}">
<link rel="stylesheet" href="{}">
</head>
<body>
<div id="swagger-ui" data-schema="{}"></div>
<script src="{}"></script>
<script src="{}"></script>
</body>
</html>
"""
_DIST: Final = "drf_spectacular_sidecar/swagger-ui-dist"


@method_decorator(ensure_csrf_cookie, name="dispatch")
@method_decorator(csp_update({"img-src": ["'self'", "data:"]}), name="dispatch")
class Docs(_Described):
    """The description to read and to try, without a script inside the page."""

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """A page is wanted here, whatever the framework can render."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Give the page."""
        return HttpResponse(
            format_html(
                _PAGE,
                static(f"{_DIST}/favicon-32x32.png"),
                static(f"{_DIST}/swagger-ui.css"),
                static("lychd/api-docs.css"),
                reverse("api-schema"),
                static(f"{_DIST}/swagger-ui-bundle.js"),
                static("lychd/api-docs.js"),
            )
        )


urlpatterns: Final[list[URLPattern | URLResolver]] = [
    path("schema", Schema.as_view(), name="api-schema"),
    path("docs", Docs.as_view(), name="api-docs"),
    path("ns/<str:ns>/notes", Notes.as_view(), name="notes"),
    path("ns/<str:ns>/derivations", Derivations.as_view(), name="derivations"),
    path("", include("archive.api.urls")),
    path("", include("semantic.api.urls")),
    path("", include("inspection.api.urls")),
]
