"""Let what is searched be written again from the vectors that are there (R-L-005).

Three steps under holds of their own, like the rebuild of words: begin, slices, finish. From the first to the last the
generation is marked, and recall by meaning in it refuses. Only what differs is written, so one that was interrupted
comes quickly to where it stopped.
"""

from typing import ClassVar

from django.db import migrations
from django.db.migrations.operations.base import Operation

PATH = "SET search_path = pg_catalog, public, pg_temp"

MARK = "ALTER TABLE semantic_coverage ADD COLUMN rebuilding boolean NOT NULL DEFAULT false"

# The hold keeps whatever is complete as it is until the end of the transaction.
HELD = f"""
CREATE FUNCTION semantic_held_for_rebuild(generation uuid)
RETURNS void
LANGUAGE plpgsql VOLATILE {PATH}
AS $function$
BEGIN
    IF current_setting('lychd.hold', true) IS DISTINCT FROM 'exclusive' THEN
        RAISE EXCEPTION 'the namespace is not held exclusively' USING ERRCODE = 'LY005';
    END IF;
    PERFORM FROM public.archive_namespace AS namespace
    JOIN public.semantic_generation AS held ON held.namespace_id = namespace.id
    WHERE held.id = generation FOR UPDATE OF namespace;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no such generation' USING ERRCODE = 'LY005';
    END IF;
END
$function$
"""

BEGIN = f"""
CREATE FUNCTION semantic_rebuild_begin(generation uuid)
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER {PATH}
AS $function$
BEGIN
    PERFORM public.semantic_held_for_rebuild(generation);
    INSERT INTO public.semantic_coverage AS coverage (generation_id, complete, rebuilding)
    VALUES (generation, 0, true)
    ON CONFLICT (generation_id) DO UPDATE SET rebuilding = true;
END
$function$
"""

# By notes, in the order of the index that every generation has. The copy is what the trigger of the scan writes.
SLICE = f"""
CREATE FUNCTION semantic_rebuild_slice(generation uuid, after_note uuid, at_most integer)
RETURNS TABLE (last_note uuid, vectors integer, written integer)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER {PATH}
AS $function$
BEGIN
    PERFORM public.semantic_held_for_rebuild(generation);
    WITH slice AS MATERIALIZED (
        SELECT derivation.id, derivation.note_id, derivation.vector, derivation.dimensions
        FROM public.semantic_derivation AS derivation
        WHERE derivation.generation_id = generation AND derivation.note_id > after_note
          AND derivation.state = 'complete'
        ORDER BY derivation.note_id
        LIMIT greatest(at_most, 1)
    ),
    copied AS (
        INSERT INTO public.semantic_scan AS scan (derivation_id, generation_id, half)
        SELECT slice.id, generation, public.subvector(
            public.l2_normalize(slice.vector)::public.halfvec, 1,
            coalesce((described.manifest #>> '{{embed_binding,padding,from}}')::integer, slice.dimensions))
        FROM slice JOIN public.semantic_generation AS described ON described.id = generation
        ON CONFLICT (derivation_id) DO UPDATE SET generation_id = excluded.generation_id, half = excluded.half
        WHERE (scan.generation_id, scan.half) IS DISTINCT FROM (excluded.generation_id, excluded.half)
        RETURNING 1
    )
    SELECT (SELECT slice.note_id FROM slice ORDER BY slice.note_id DESC LIMIT 1),
           (SELECT count(*) FROM slice), (SELECT count(*) FROM copied)
    INTO last_note, vectors, written;
    IF vectors < greatest(at_most, 1) THEN
        last_note := NULL;
    END IF;
    RETURN NEXT;
END
$function$
"""

# Copies that no complete derivation of this generation stands behind leave here, and what is counted is counted again.
FINISH = f"""
CREATE FUNCTION semantic_rebuild_finish(generation uuid)
RETURNS TABLE (complete bigint, complete_before bigint, strays bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER {PATH}
AS $function$
BEGIN
    PERFORM public.semantic_held_for_rebuild(generation);
    WITH gone AS (
        DELETE FROM public.semantic_scan AS scan
        WHERE scan.generation_id = generation AND NOT EXISTS (
            SELECT FROM public.semantic_derivation AS derivation
            WHERE derivation.id = scan.derivation_id AND derivation.generation_id = generation
              AND derivation.state = 'complete')
        RETURNING 1
    )
    SELECT count(*) INTO strays FROM gone;
    SELECT coverage.complete INTO complete_before
    FROM public.semantic_coverage AS coverage WHERE coverage.generation_id = generation;
    complete_before := coalesce(complete_before, 0);
    SELECT count(*) INTO complete FROM public.semantic_derivation AS derivation
    WHERE derivation.generation_id = generation AND derivation.state = 'complete';
    INSERT INTO public.semantic_coverage AS coverage (generation_id, complete, rebuilding)
    VALUES (generation, complete, false)
    ON CONFLICT ON CONSTRAINT semantic_coverage_pkey
    DO UPDATE SET complete = excluded.complete, rebuilding = false;
    RETURN NEXT;
END
$function$
"""

DEFINERS = (
    "semantic_rebuild_begin(uuid)",
    "semantic_rebuild_slice(uuid, uuid, integer)",
    "semantic_rebuild_finish(uuid)",
)


class Migration(migrations.Migration):
    """Make the copies that are searched something that can be rebuilt."""

    dependencies = [("semantic", "0004_functions_anew")]

    operations: ClassVar[list[Operation]] = [
        migrations.RunSQL(MARK, "ALTER TABLE semantic_coverage DROP COLUMN rebuilding"),
        migrations.RunSQL(HELD, "DROP FUNCTION semantic_held_for_rebuild(uuid)"),
        *(
            migrations.RunSQL(create, f"DROP FUNCTION {name}")
            for create, name in zip((BEGIN, SLICE, FINISH), DEFINERS, strict=True)
        ),
        *(migrations.RunSQL(f"REVOKE ALL ON FUNCTION {name} FROM PUBLIC", migrations.RunSQL.noop) for name in DEFINERS),
    ]
