"""The service as a WSGI application."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lychd.settings")

application = get_wsgi_application()

# Only after the settings are loaded.
from lychd import kept  # noqa: E402

kept.keep()
