"""What the host's admission engine asks for by default: a port, since that engine is no part of this service (1.8).

`LYCHD_ADMISSION_DEFAULT` names a class with a method `current`. It answers from configuration in memory: no storage, no
model and no run is touched to find it out (R-L-128).
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from django.utils.module_loading import import_string

from archive import bindings, limits

log = logging.getLogger(__name__)

REQUESTING: Final = "bridge_chat@3"
"""The one Pattern that can ask for this profile (R-L-125)."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """The default Pattern by name and version, and the complete archive binding configured for it, if there is one."""

    name: str
    archive: Mapping[str, str] | None


class AdmissionDefault(Protocol):
    """Names the Pattern that the admission engine takes where a request names none."""

    def current(self) -> Pattern | None:
        """Return today's default, or None where it is not known."""


def default_pattern() -> Pattern | None:
    """Return today's default; None where nobody is configured to name it, or whoever is cannot (R-L-127)."""
    path = bindings.require_profile().get("admission_default")
    if path is None:
        return None
    try:
        source: AdmissionDefault = import_string(path)()
        found = source.current()
    except Exception as error:  # whatever a foreign module raises; its words may hold what is not ours to tell
        log.error("admission default failed", extra={"error": type(error).__name__})
        return None
    if isinstance(found, Pattern) and isinstance(found.name, str) and re.match(limits.PATTERN_NAME, found.name):
        return found
    if found is not None:
        log.error("admission default failed", extra={"error": "no Pattern with a name and a version"})
    return None
