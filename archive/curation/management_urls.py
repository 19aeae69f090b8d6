"""The addresses of who may do what; each change takes POST alone."""

from typing import Final

from django.urls import URLPattern, path

from archive.curation import configuring, management
from archive.curation import urls as _decisions  # noqa: F401 - registers the converter of keys

_NS: Final = "ns/<key:ns>/people"

urlpatterns: list[URLPattern] = [
    path(_NS, management.people, name="people"),
    path("ns/<key:ns>/settings", configuring.settings, name="settings"),
    path("ns/<key:ns>/settings/change", configuring.configure, name="configure"),
    path("ns/<key:ns>/settings/disable", configuring.disable, name="disable"),
    *(path(f"{_NS}/{what}", management.change, {"what": what}, name=what) for what in management.CHANGES),
]
