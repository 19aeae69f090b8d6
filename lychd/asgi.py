"""The service as an ASGI application."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lychd.settings")

_django = get_asgi_application()

# Only after the applications are loaded.
from lychd.access_log import AccessLog  # noqa: E402
from lychd.middleware import BoundedBodies  # noqa: E402

application = AccessLog(BoundedBodies(_django))
