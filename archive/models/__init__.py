"""The tables that hold the truth; each module is one part of the ledger."""

from archive.models.host import ConfiguredBinding, ConfiguredBindingHistory, Grant, Principal, Role, Token
from archive.models.intake import IntakeRequest
from archive.models.namespace import BindingMigration, MemorySpace, Namespace
from archive.models.note import Flag, LifecycleEvent, Note, Source
from archive.models.recall import Recall

__all__ = [
    "BindingMigration",
    "ConfiguredBinding",
    "ConfiguredBindingHistory",
    "Flag",
    "Grant",
    "IntakeRequest",
    "LifecycleEvent",
    "MemorySpace",
    "Namespace",
    "Note",
    "Principal",
    "Recall",
    "Role",
    "Source",
    "Token",
]
