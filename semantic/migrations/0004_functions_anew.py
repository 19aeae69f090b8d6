"""Set anew what migrations 0001 and 0002 say otherwise today than when older archives were made by them.

That is two constraints and one that is gone, the fence of what is complete, and the trigger that keeps the copies which are
searched: of a padded vector they leave the padding out now, so those with padding are shortened.
"""

from importlib import import_module
from typing import ClassVar

import pgtrigger.migrations
from django.db import migrations
from django.db.migrations.operations.base import Operation

_DERIVED = import_module("semantic.migrations.0001_derived").Migration
_SCAN = import_module("semantic.migrations.0002_scan")

# The constraint that is gone is the mark of the archives which have the two in their older form.
CONSTRAINTS = """
DO $block$
BEGIN
    IF EXISTS (
        SELECT FROM pg_catalog.pg_constraint
        WHERE conrelid = 'public.semantic_generation'::regclass AND conname = 'generation_state') THEN
        ALTER TABLE public.semantic_generation DROP CONSTRAINT generation_state;
        ALTER TABLE public.semantic_derivation
            DROP CONSTRAINT derivation_receipt_once_complete,
            ADD CONSTRAINT derivation_receipt_once_complete CHECK (
                (receipt IS NOT NULL AND state = 'complete') OR state = 'invalidated'
                OR (NOT (state = 'complete') AND receipt IS NULL)),
            DROP CONSTRAINT derivation_invalidation,
            ADD CONSTRAINT derivation_invalidation CHECK (
                (invalidation IS NOT NULL AND state = 'invalidated'
                 AND invalidation IN ('archived', 'revoked', 'superseded', 'generation_retired'))
                OR (NOT (state = 'invalidated') AND invalidation IS NULL));
    END IF;
END
$block$
"""

# Written before the fence knew of padding, so looked at here.
SHORTEN = """
DO $block$
DECLARE
    padded record;
BEGIN
    FOR padded IN
        SELECT id, reference, dimensions, (manifest #>> '{embed_binding,padding,from}')::integer AS kept
        FROM public.semantic_generation
        WHERE (manifest #>> '{embed_binding,padding,from}')::integer < dimensions
    LOOP
        IF EXISTS (
            SELECT FROM public.semantic_scan AS scan
            JOIN public.semantic_derivation AS derivation ON derivation.id = scan.derivation_id
            WHERE scan.generation_id = padded.id AND public.vector_dims(scan.half) > padded.kept
              AND public.vector_norm(
                  public.subvector(derivation.vector, padded.kept + 1, padded.dimensions - padded.kept)) <> 0) THEN
            RAISE EXCEPTION 'vectors of generation % are not zero where its manifest pads them; retire it with the'
                ' release that made it, then migrate again', padded.reference USING ERRCODE = 'LY004';
        END IF;
        UPDATE public.semantic_scan AS scan SET half = public.subvector(scan.half, 1, padded.kept)
        WHERE scan.generation_id = padded.id AND public.vector_dims(scan.half) > padded.kept;
    END LOOP;
END
$block$
"""

FENCE = next(
    one.trigger.install_sql
    for one in _DERIVED.operations
    if isinstance(one, pgtrigger.migrations.AddTrigger) and one.trigger.name == "derivation_zdone"
)


class Migration(migrations.Migration):
    """Bring an archive to the rules of today, whichever forms of migrations 0001 and 0002 had made it."""

    dependencies = [("semantic", "0003_scan_order")]

    # There is no way back to rules that nobody knows; undone, they stay as they are.
    operations: ClassVar[list[Operation]] = [
        migrations.RunSQL(statement, migrations.RunSQL.noop)
        for statement in (
            CONSTRAINTS,
            FENCE,
            _SCAN.KEEP.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1),
            SHORTEN,
        )
    ]
