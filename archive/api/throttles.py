"""A courtesy limit an asker and kind of act: it keeps a busy caller polite, and protects nothing.

The count lives in the cache, one number a minute, raised in one step. A cache that is lost lets requests through.
"""

import hashlib
import logging
import time
from typing import Any

from django.conf import settings
from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from archive.api.authentication import key_of

log = logging.getLogger(__name__)

WINDOW_SECONDS = 60


class CourtesyLimit(BaseThrottle):
    """So many requests a minute, by `LYCHD_THROTTLES` and the view's scope."""

    def __init__(self) -> None:
        self._now = self.clock()

    @staticmethod
    def clock() -> float:
        """Seconds now, by this process."""
        return time.time()

    def allow_request(self, request: Request, view: Any) -> bool:
        """Count this request and say whether it is still within the limit."""
        most = settings.LYCHD_THROTTLES.get(view.scope_of(request))
        if most is None:
            return True
        window = int(self._now // WINDOW_SECONDS)
        asker = hashlib.sha256(key_of(request).encode()).hexdigest()[:32]
        key = f"throttle:{view.scope_of(request)}:{asker}:{window}"
        try:
            if cache.add(key, 1, timeout=2 * WINDOW_SECONDS):
                return True
            return int(cache.incr(key)) <= most
        except Exception as error:
            log.warning("throttle not counted", extra={"error": type(error).__name__})
            return True

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return WINDOW_SECONDS - self._now % WINDOW_SECONDS
