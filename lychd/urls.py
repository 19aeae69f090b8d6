"""The addresses of the whole service."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from inspection.admin.tables import site
from inspection.pages.views import nowhere
from lychd import health, problems

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/", include("lychd.api")),
    # Programs get a problem document at every wrong address of theirs, in development too.
    re_path(r"^api(?:/(?P<rest>.*))?$", problems.nowhere),
    path("admin/", site.urls),
    path("", include("archive.curation.management_urls")),
    path("", include("archive.curation.urls")),
    path("", include("inspection.pages.urls")),
    # Last, so that a wrong address has our page in development too. Admin adds its slash itself.
    re_path(r"^(?!api(?:/|$)|admin$|static/|media/)(?P<address>.*)$", nowhere),
]

handler400 = "lychd.problems.bad_request"
handler403 = "lychd.problems.permission_denied"
handler404 = "lychd.problems.page_not_found"
handler500 = "lychd.problems.server_error"
