"""The index on the generation keeps one entry for each row, so that walked backwards it visits rows last to first.

With equal keys folded into one entry PostgreSQL walks the folded rows upwards in either direction. Why the direction
matters stands in the module `semantic.exact`, Note [Last page first].
"""

from typing import ClassVar

from django.db import migrations
from django.db.migrations.operations.base import Operation

UNFOLDED = "ALTER INDEX semantic_scan_generation SET (deduplicate_items = off); REINDEX INDEX semantic_scan_generation"
FOLDED = "ALTER INDEX semantic_scan_generation RESET (deduplicate_items); REINDEX INDEX semantic_scan_generation"


class Migration(migrations.Migration):
    """Unfold the index; rows, rights and triggers stay as they are."""

    dependencies = [("semantic", "0002_scan")]

    operations: ClassVar[list[Operation]] = [migrations.RunSQL(UNFOLDED, FOLDED)]
