"""The service as an ASGI application: what a serving process runs."""

# First: it sets Django up.
from lychd.wsgi import application as _django  # isort: skip

from lychd.front import serving

application = serving(_django)
