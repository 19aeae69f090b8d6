"""The addresses of the whole service."""

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive; says nothing about the database."""
    return HttpResponse("ok\n", content_type="text/plain")


urlpatterns: list[URLPattern | URLResolver] = [path("healthz", healthz, name="healthz")]
