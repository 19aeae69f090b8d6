"""The embedder port (specification 5.15) and which adapter stands behind a provider's name.

Nothing here imports a model or its libraries: an adapter is loaded when somebody embeds, in the process that does.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from django.conf import settings

from archive.refusals import CapabilityNotReady
from semantic.embedders.port import Driver, Embedded, Embedder, Item, Kind, Measure

__all__ = ["Driver", "Embedded", "Embedder", "Item", "Kind", "Measure", "load", "providers"]

_ADAPTERS: Final = {
    "stand-in": "semantic.embedders.stand_in.StandIn",
    "sentence-transformers": "semantic.embedders.sentence_transformers.SentenceTransformers",
}


def providers() -> dict[str, str]:
    """The adapters by their provider's name; the settings may add some of their own."""
    return {**_ADAPTERS, **settings.LYCHD_EMBEDDERS}


def load(embed_binding: Mapping[str, Any]) -> Embedder:
    """Make the embedder that a binding describes; nothing is read of its model before it is opened."""
    provider = embed_binding["provider"]
    if provider == "stand-in" and not settings.LYCHD_TEST_EMBEDDER:
        raise CapabilityNotReady
    module, _, name = providers()[provider].rpartition(".")
    made: Embedder = getattr(import_module(module), name)(embed_binding)
    return made
