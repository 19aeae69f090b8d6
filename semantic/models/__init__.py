"""The tables of what is derived, and the archive's tables that they react to."""

from semantic.models.derivation import Derivation
from semantic.models.generation import Generation
from semantic.models.watched import WatchedNote, WatchedRecall

__all__ = ["Derivation", "Generation", "WatchedNote", "WatchedRecall"]
