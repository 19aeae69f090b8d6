"""Columns that every table of a namespace shares."""

from typing import Final

from django.db import models
from django.db.models.expressions import Func

CLOCK: Final = Func(function="clock_timestamp", output_field=models.DateTimeField())
"""The database's clock at this very moment, not at the transaction's start: one moment an act."""


def columns(model: type[models.Model]) -> str:
    """The columns of a model, for plain SQL: a prepared `SELECT *` fails once a column is added."""
    return ", ".join(str(field.column) for field in model._meta.concrete_fields)


class InNamespace(models.Model):
    """A memory-owned row. The space columns are filled by a trigger from the namespace row, never by a caller."""

    namespace = models.ForeignKey("archive.Namespace", on_delete=models.PROTECT, related_name="+", db_index=False)
    space_id = models.UUIDField(editable=False)
    space_generation = models.IntegerField(editable=False)

    class Meta:
        abstract = True
