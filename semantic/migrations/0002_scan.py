"""The scan table and the coverage figures: derived rows that one trigger keeps equal to the complete derivations.

Nothing but the function below writes them. It belongs to the owner of the schema and runs with the owner's rights, so
the serving role needs no more than SELECT. docs/exactness.md says why a half-precision copy may be searched first.
"""

from typing import ClassVar

from django.db import migrations
from django.db.migrations.operations.base import Operation

PATH = "SET search_path = pg_catalog, public, pg_temp"

# In-line storage: a scan then reads pages one after the other instead of fetching each vector from the side table.
SCAN_TABLE = """
CREATE TABLE semantic_scan (
    derivation_id uuid PRIMARY KEY,
    generation_id uuid NOT NULL,
    half halfvec NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02)
"""
SCAN_STORAGE = "ALTER TABLE semantic_scan ALTER COLUMN half SET STORAGE PLAIN"
SCAN_INDEX = "CREATE INDEX semantic_scan_generation ON semantic_scan (generation_id)"
# ANALYZE would copy vectors into pg_statistic, where no revocation reaches them.
SCAN_STATISTICS = "ALTER TABLE semantic_scan ALTER COLUMN half SET STATISTICS 0"

COVERAGE_TABLE = """
CREATE TABLE semantic_coverage (
    generation_id uuid PRIMARY KEY REFERENCES semantic_generation (id),
    complete bigint NOT NULL CONSTRAINT coverage_complete_not_negative CHECK (complete >= 0)
)
"""

# By sets, once a statement: a retired generation loses all its rows in one delete. A complete row never changes into
# another complete row, so whatever was complete before has to go and whatever is complete now has to come.
KEEP = f"""
CREATE FUNCTION semantic_derivation_scan()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER {PATH}
AS $function$
BEGIN
    IF NOT EXISTS (SELECT FROM gone WHERE state = 'complete') AND NOT EXISTS (SELECT FROM come WHERE state = 'complete') THEN
        RETURN NULL;
    END IF;
    DELETE FROM public.semantic_scan AS scan
    USING gone
    WHERE scan.derivation_id = gone.id AND gone.state = 'complete';
    -- Places that padding fills with zeros are left out; T-DER-DONE has seen that nothing else is there.
    INSERT INTO public.semantic_scan (derivation_id, generation_id, half)
    SELECT come.id, come.generation_id, public.subvector(
        public.l2_normalize(come.vector)::public.halfvec, 1,
        coalesce((generation.manifest #>> '{{embed_binding,padding,from}}')::integer, come.dimensions))
    FROM come JOIN public.semantic_generation AS generation ON generation.id = come.generation_id
    WHERE come.state = 'complete';
    INSERT INTO public.semantic_coverage AS coverage (generation_id, complete)
    SELECT step.generation_id, 0 FROM (SELECT generation_id FROM gone UNION SELECT generation_id FROM come) AS step
    ON CONFLICT (generation_id) DO NOTHING;
    UPDATE public.semantic_coverage AS coverage
    SET complete = coverage.complete + step.by
    FROM (
        SELECT moved.generation_id, sum(moved.by) AS by
        FROM (
            SELECT generation_id, -1 AS by FROM gone WHERE state = 'complete'
            UNION ALL
            SELECT generation_id, 1 FROM come WHERE state = 'complete'
        ) AS moved
        GROUP BY moved.generation_id
    ) AS step
    WHERE coverage.generation_id = step.generation_id;
    RETURN NULL;
END
$function$
"""

TRIGGER = """
CREATE TRIGGER scan AFTER UPDATE ON semantic_derivation
REFERENCING OLD TABLE AS gone NEW TABLE AS come
FOR EACH STATEMENT EXECUTE FUNCTION semantic_derivation_scan()
"""

REFUSE_WITH_ROWS = """
DO $block$
BEGIN
    IF EXISTS (SELECT FROM semantic_scan) THEN
        RAISE EXCEPTION 'vectors exist; this migration is undone on empty tables only' USING ERRCODE = 'LY004';
    END IF;
END
$block$
"""


class Migration(migrations.Migration):
    """Make a complete derivation findable, and only while it is complete."""

    dependencies = [("semantic", "0001_derived")]

    # Undone from the last to the first, so the refusal stands last.
    operations: ClassVar[list[Operation]] = [
        migrations.RunSQL(SCAN_TABLE, "DROP TABLE semantic_scan"),
        migrations.RunSQL(SCAN_STORAGE, migrations.RunSQL.noop),
        migrations.RunSQL(SCAN_INDEX, "DROP INDEX semantic_scan_generation"),
        migrations.RunSQL(SCAN_STATISTICS, migrations.RunSQL.noop),
        migrations.RunSQL(COVERAGE_TABLE, "DROP TABLE semantic_coverage"),
        migrations.RunSQL(KEEP, "DROP FUNCTION semantic_derivation_scan()"),
        migrations.RunSQL("REVOKE ALL ON FUNCTION semantic_derivation_scan() FROM PUBLIC", migrations.RunSQL.noop),
        migrations.RunSQL(TRIGGER, "DROP TRIGGER scan ON semantic_derivation"),
        migrations.RunSQL(migrations.RunSQL.noop, REFUSE_WITH_ROWS),
    ]
