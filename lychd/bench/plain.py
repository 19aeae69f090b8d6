"""What the served process is measured beside: Django's own ASGI handler, a database connection for every request.

Run by `lychd bench http` as `python -m uvicorn lychd.bench.plain:application`.
"""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lychd.settings")

application = get_asgi_application()
