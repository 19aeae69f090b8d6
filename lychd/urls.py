"""The addresses of the whole service."""

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path, re_path

from inspection.pages.views import nowhere


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive; says nothing about the database."""
    return HttpResponse("ok\n", content_type="text/plain")


urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("", include("archive.curation.urls")),
    path("", include("inspection.pages.urls")),
    # Last, so that a wrong address has our page in development too. Programs get theirs, and admin adds its slash itself.
    re_path(r"^(?!api(?:/|$)|admin$|static/|media/)(?P<address>.*)$", nowhere),
]
