"""Generations and derivations with their constraints and triggers (specification 5.8)."""

import datetime
import django.db.models.deletion
import django.db.models.expressions
import pgtrigger.compiler
import pgtrigger.migrations
import pgvector.django.vector
from django.db import migrations, models


CREATE_EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"

# A vector has its generation's dimension and unit length, whoever writes it: a zero vector's cosine is NaN, and ranks first.
FENCES = """
ALTER TABLE semantic_derivation
    ADD CONSTRAINT derivation_generation_dimensions FOREIGN KEY (generation_id, dimensions)
        REFERENCES semantic_generation (id, dimensions),
    ADD CONSTRAINT derivation_dimensions CHECK (vector IS NULL OR vector_dims(vector) = dimensions),
    ADD CONSTRAINT derivation_unit_length CHECK (vector IS NULL OR abs(vector_norm(vector) - 1) <= 0.001000000001)
"""

UNFENCE = """
ALTER TABLE semantic_derivation
    DROP CONSTRAINT derivation_unit_length,
    DROP CONSTRAINT derivation_dimensions,
    DROP CONSTRAINT derivation_generation_dimensions
"""

# ANALYZE would copy vectors into pg_statistic, where no revocation reaches them.
STATISTICS = "ALTER TABLE semantic_derivation ALTER COLUMN vector SET STATISTICS 0"

REFUSE_WITH_ROWS = """
DO $block$
BEGIN
    IF EXISTS (SELECT FROM semantic_generation) OR EXISTS (SELECT FROM semantic_derivation) THEN
        RAISE EXCEPTION 'generations exist; this migration is undone on empty tables only' USING ERRCODE = 'LY004';
    END IF;
END
$block$
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("archive", "0005_note_identity"),
    ]

    operations = [
        migrations.RunSQL(CREATE_EXTENSION, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="WatchedNote",
            fields=[],
            options={
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("archive.note",),
        ),
        migrations.CreateModel(
            name="Generation",
            fields=[
                ("space_id", models.UUIDField(editable=False)),
                ("space_generation", models.IntegerField(editable=False)),
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("reference", models.TextField()),
                ("manifest", models.JSONField()),
                ("manifest_digest", models.TextField()),
                ("dimensions", models.IntegerField()),
                ("state", models.TextField(default="active")),
                ("version", models.IntegerField(default=1)),
                ("registered_by", models.TextField()),
                (
                    "registered_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
                ("retired_by", models.TextField(null=True)),
                ("retired_at", models.DateTimeField(null=True)),
                (
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="archive.namespace",
                    ),
                ),
            ],
            options={
                "db_table": "semantic_generation",
            },
        ),
        migrations.CreateModel(
            name="Derivation",
            fields=[
                ("space_id", models.UUIDField(editable=False)),
                ("space_generation", models.IntegerField(editable=False)),
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("chunk", models.TextField(default="whole-note")),
                ("source_key", models.TextField()),
                ("source_revision", models.TextField()),
                ("text_digest", models.TextField()),
                ("note_lifecycle_version", models.IntegerField()),
                ("state", models.TextField(default="prepared")),
                ("attempt", models.IntegerField(default=0)),
                ("row_version", models.IntegerField(default=1)),
                ("attempt_token", models.UUIDField(null=True)),
                ("claimed_at", models.DateTimeField(null=True)),
                ("deadline", models.DateTimeField(null=True)),
                ("dimensions", models.IntegerField()),
                ("vector", pgvector.django.vector.VectorField(null=True)),
                ("vector_digest", models.TextField(null=True)),
                ("l2_norm", models.FloatField(null=True)),
                ("receipt", models.JSONField(null=True)),
                ("failure_code", models.TextField(null=True)),
                ("invalidation", models.TextField(null=True)),
                (
                    "prepared_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
                ("settled_at", models.DateTimeField(null=True)),
                (
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="archive.namespace",
                    ),
                ),
                (
                    "note",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="archive.note"
                    ),
                ),
                (
                    "generation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="derivations",
                        to="semantic.generation",
                    ),
                ),
            ],
            options={
                "db_table": "semantic_derivation",
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="watchednote",
            trigger=pgtrigger.compiler.Trigger(
                name="semantic_invalidate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF OLD.state = 'promoted' AND NEW.state <> 'promoted' THEN\n                UPDATE public.semantic_derivation\n                   SET \n    state = 'invalidated', row_version = row_version + 1, attempt_token = NULL, claimed_at = NULL,\n    deadline = NULL, vector = NULL, vector_digest = NULL, l2_norm = NULL, failure_code = NULL,\n    settled_at = clock_timestamp()\n,\n                       invalidation = CASE\n                           WHEN NEW.state = 'revoked' THEN 'revoked'\n                           WHEN NEW.superseded_by_id IS NOT NULL THEN 'superseded'\n                           ELSE 'archived' END\n                 WHERE note_id = NEW.id AND state <> 'invalidated';\n            END IF;\n            RETURN NULL;\n        ",
                    hash="23960811601cbc1eccc6a787fd6afb917861663c",
                    operation='UPDATE OF "state"',
                    pgid="pgtrigger_semantic_invalidate_d4143",
                    table="archive_note",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.UniqueConstraint(fields=("namespace", "reference"), name="generation_reference_once"),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.UniqueConstraint(
                fields=("namespace", "manifest_digest"), name="generation_manifest_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.UniqueConstraint(fields=("id", "dimensions"), name="generation_dimensions"),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("retired_at", None), ("retired_by", None), ("state", "active"), ("version", 1)),
                    models.Q(
                        ("retired_at__isnull", False),
                        ("retired_by__isnull", False),
                        ("state", "retired"),
                        ("version", 2),
                    ),
                    _connector="OR",
                ),
                name="generation_retirement",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="generation",
            trigger=pgtrigger.compiler.Trigger(
                name="a_nslock",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE held_id bigint;",
                    func="\n            IF TG_OP = 'DELETE' THEN held_id := OLD.namespace_id; ELSE held_id := NEW.namespace_id; END IF;\n            IF TG_TABLE_NAME = 'archive_recall' AND TG_OP = 'INSERT' THEN\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR SHARE SKIP LOCKED;\n            ELSE\n                IF current_setting('lychd.hold', true) = 'shared' THEN\n                    RAISE EXCEPTION 'namespace_held_shared' USING ERRCODE = 'LY005';\n                END IF;\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR UPDATE SKIP LOCKED;\n            END IF;\n            IF NOT FOUND THEN\n                RAISE EXCEPTION 'namespace_not_held' USING ERRCODE = 'LY005';\n            END IF;\n            IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\n            RETURN NEW;\n        ",
                    hash="6236daf5dfadb50d759bcae3375fd7481f49fac6",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_a_nslock_39b72",
                    table="semantic_generation",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="generation",
            trigger=pgtrigger.compiler.Trigger(
                name="space",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            SELECT space_id, space_generation INTO NEW.space_id, NEW.space_generation\n              FROM public.archive_namespace WHERE id = NEW.namespace_id;\n            RETURN NEW;\n        ",
                    hash="896a7ad06944eb79c587ca9b6522f030ae00d7a8",
                    operation="INSERT",
                    pgid="pgtrigger_space_9101c",
                    table="semantic_generation",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="generation",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="4745c0dff840e65de205535d267ae4db728c1b30",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_df955",
                    table="semantic_generation",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="generation",
            trigger=pgtrigger.compiler.Trigger(
                name="generation",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF TG_OP = 'INSERT' THEN\n                IF (NEW.state, NEW.version) IS DISTINCT FROM ('active', 1) THEN\n                    RAISE EXCEPTION 'generation_birth' USING ERRCODE = 'LY006';\n                END IF;\n                IF (NEW.manifest->>'dimensions', NEW.manifest->>'reference')\n                   IS DISTINCT FROM (NEW.dimensions::text, NEW.reference) THEN\n                    RAISE EXCEPTION 'generation_manifest' USING ERRCODE = 'LY006';\n                END IF;\n                RETURN NEW;\n            END IF;\n            IF (to_jsonb(NEW) - ARRAY['state', 'version', 'retired_by', 'retired_at'])\n               IS DISTINCT FROM (to_jsonb(OLD) - ARRAY['state', 'version', 'retired_by', 'retired_at']) THEN\n                RAISE EXCEPTION 'generation_manifest' USING ERRCODE = 'LY006';\n            END IF;\n            IF (OLD.state, NEW.state) IS DISTINCT FROM ('active', 'retired') THEN\n                RAISE EXCEPTION 'generation_edge' USING ERRCODE = 'LY006';\n            END IF;\n            IF NEW.version <> OLD.version + 1 THEN\n                RAISE EXCEPTION 'generation_version_step' USING ERRCODE = 'LY003';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="f9261320d0695abf67ea9efbeabb629b5dafe1b6",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_generation_50daa",
                    table="semantic_generation",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="generation",
            trigger=pgtrigger.compiler.Trigger(
                name="invalidate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF OLD.state = 'active' AND NEW.state = 'retired' THEN\n                UPDATE public.semantic_derivation\n                   SET \n    state = 'invalidated', row_version = row_version + 1, attempt_token = NULL, claimed_at = NULL,\n    deadline = NULL, vector = NULL, vector_digest = NULL, l2_norm = NULL, failure_code = NULL,\n    settled_at = clock_timestamp()\n, invalidation = 'generation_retired'\n                 WHERE generation_id = NEW.id AND state <> 'invalidated';\n            END IF;\n            RETURN NULL;\n        ",
                    hash="b2df452883b1ae51c6261bcbb4e6d17c3f9f2e46",
                    operation='UPDATE OF "state"',
                    pgid="pgtrigger_invalidate_0d5c9",
                    table="semantic_generation",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="derivation",
            index=models.Index(fields=["note"], name="derivation_note"),
        ),
        migrations.AddIndex(
            model_name="derivation",
            index=models.Index(fields=["namespace", "prepared_at", "id"], name="derivation_keyset"),
        ),
        migrations.AddConstraint(
            model_name="derivation",
            constraint=models.UniqueConstraint(fields=("generation", "note", "chunk"), name="derivation_once"),
        ),
        migrations.AddConstraint(
            model_name="derivation",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["prepared", "running", "complete", "failed", "invalidated"])),
                name="derivation_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="derivation",
            constraint=models.CheckConstraint(condition=models.Q(("chunk", "whole-note")), name="derivation_chunk"),
        ),
        migrations.AddConstraint(
            model_name="derivation",
            constraint=models.CheckConstraint(
                condition=models.Q(("attempt__gte", 0), ("note_lifecycle_version__gte", 1), ("row_version__gte", 1)),
                name="derivation_counts",
            ),
        ),
        migrations.AddConstraint(
            model_name="derivation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("state", "complete"),
                        ("vector__isnull", False),
                        ("vector_digest__isnull", False),
                        ("l2_norm__isnull", False),
                    ),
                    models.Q(
                        models.Q(("state", "complete"), _negated=True),
                        ("l2_norm", None),
                        ("vector", None),
                        ("vector_digest", None),
                    ),
                    _connector="OR",
                ),
                name="derivation_vector_while_complete",
            ),
        ),
        migrations.AddConstraint(
            model_name="derivation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("receipt__isnull", False), ("state", "complete")),
                    ("state", "invalidated"),
                    models.Q(models.Q(("state", "complete"), _negated=True), ("receipt", None)),
                    _connector="OR",
                ),
                name="derivation_receipt_once_complete",
            ),
        ),
        migrations.AddConstraint(
            model_name="derivation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("attempt_token__isnull", False),
                        ("claimed_at__isnull", False),
                        ("state", "running"),
                        ("deadline__isnull", False),
                    ),
                    models.Q(
                        models.Q(("state", "running"), _negated=True),
                        ("attempt_token", None),
                        ("claimed_at", None),
                        ("deadline", None),
                    ),
                    _connector="OR",
                ),
                name="derivation_token_while_running",
            ),
        ),
        migrations.AddConstraint(
            model_name="derivation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("deadline", None),
                    (
                        "deadline",
                        django.db.models.expressions.CombinedExpression(
                            models.F("claimed_at"), "+", models.Value(datetime.timedelta(seconds=60))
                        ),
                    ),
                    _connector="OR",
                ),
                name="derivation_deadline",
            ),
        ),
        migrations.AddConstraint(
            model_name="derivation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("failure_code__isnull", False), ("state", "failed")),
                    models.Q(models.Q(("state", "failed"), _negated=True), ("failure_code", None)),
                    _connector="OR",
                ),
                name="derivation_failure_while_failed",
            ),
        ),
        migrations.AddConstraint(
            model_name="derivation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("invalidation__isnull", False),
                        ("state", "invalidated"),
                        ("invalidation__in", ["archived", "revoked", "superseded", "generation_retired"]),
                    ),
                    models.Q(models.Q(("state", "invalidated"), _negated=True), ("invalidation", None)),
                    _connector="OR",
                ),
                name="derivation_invalidation",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="derivation",
            trigger=pgtrigger.compiler.Trigger(
                name="a_nslock",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE held_id bigint;",
                    func="\n            IF TG_OP = 'DELETE' THEN held_id := OLD.namespace_id; ELSE held_id := NEW.namespace_id; END IF;\n            IF TG_TABLE_NAME = 'archive_recall' AND TG_OP = 'INSERT' THEN\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR SHARE SKIP LOCKED;\n            ELSE\n                IF current_setting('lychd.hold', true) = 'shared' THEN\n                    RAISE EXCEPTION 'namespace_held_shared' USING ERRCODE = 'LY005';\n                END IF;\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR UPDATE SKIP LOCKED;\n            END IF;\n            IF NOT FOUND THEN\n                RAISE EXCEPTION 'namespace_not_held' USING ERRCODE = 'LY005';\n            END IF;\n            IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\n            RETURN NEW;\n        ",
                    hash="30e8a01c9a615a830323824e24bab771226906e5",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_a_nslock_d66bb",
                    table="semantic_derivation",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="derivation",
            trigger=pgtrigger.compiler.Trigger(
                name="space",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            SELECT space_id, space_generation INTO NEW.space_id, NEW.space_generation\n              FROM public.archive_namespace WHERE id = NEW.namespace_id;\n            RETURN NEW;\n        ",
                    hash="f164e51fb771dbb74044d85507a8a43596a5939d",
                    operation="INSERT",
                    pgid="pgtrigger_space_e05f2",
                    table="semantic_derivation",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="derivation",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="19f711d89b62b8012bf344ea3f7d66c9219c7341",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_ec118",
                    table="semantic_derivation",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="derivation",
            trigger=pgtrigger.compiler.Trigger(
                name="same_namespace",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF NEW.generation_id IS NOT NULL AND NEW.generation_id IS DISTINCT FROM OLD.generation_id AND NOT EXISTS (\n                SELECT 1 FROM public.semantic_generation named\n                 WHERE named.id = NEW.generation_id AND named.namespace_id = NEW.namespace_id) THEN\n                RAISE EXCEPTION 'other_namespace' USING ERRCODE = 'LY001';\n            END IF;\n            IF NEW.note_id IS NOT NULL AND NEW.note_id IS DISTINCT FROM OLD.note_id AND NOT EXISTS (\n                SELECT 1 FROM public.archive_note named\n                 WHERE named.id = NEW.note_id AND named.namespace_id = NEW.namespace_id) THEN\n                RAISE EXCEPTION 'other_namespace' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="d59b6938e2de9056f4d8c42eed3a5bb7cfe20402",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_same_namespace_f074d",
                    table="semantic_derivation",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="derivation",
            trigger=pgtrigger.compiler.Trigger(
                name="derivation_identity",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF (NEW.id, NEW.namespace_id, NEW.space_id, NEW.space_generation, NEW.generation_id, NEW.note_id, NEW.chunk, NEW.source_key, NEW.source_revision, NEW.text_digest, NEW.note_lifecycle_version, NEW.dimensions, NEW.prepared_at) IS DISTINCT FROM (OLD.id, OLD.namespace_id, OLD.space_id, OLD.space_generation, OLD.generation_id, OLD.note_id, OLD.chunk, OLD.source_key, OLD.source_revision, OLD.text_digest, OLD.note_lifecycle_version, OLD.dimensions, OLD.prepared_at) THEN\n                RAISE EXCEPTION 'derivation_identity' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="16c22b8a2cfbcfc2e8d413eb8bb7b75acaef64f1",
                    operation="UPDATE",
                    pgid="pgtrigger_derivation_identity_0d5a2",
                    table="semantic_derivation",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="derivation",
            trigger=pgtrigger.compiler.Trigger(
                name="derivation_edge",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF TG_OP = 'INSERT' THEN\n                IF (NEW.state, NEW.attempt, NEW.row_version) IS DISTINCT FROM ('prepared', 0, 1) THEN\n                    RAISE EXCEPTION 'derivation_birth' USING ERRCODE = 'LY003';\n                END IF;\n                IF NOT (\n    EXISTS (\n        SELECT 1 FROM public.archive_note note\n         WHERE note.id = NEW.note_id AND note.namespace_id = NEW.namespace_id\n           AND note.state = 'promoted' AND note.text IS NOT NULL\n           AND note.lifecycle_version = NEW.note_lifecycle_version AND note.text_digest = NEW.text_digest\n           AND note.source_revision = NEW.source_revision)\n    AND EXISTS (\n        SELECT 1 FROM public.semantic_generation generation\n         WHERE generation.id = NEW.generation_id AND generation.state = 'active')\n) THEN\n                    RAISE EXCEPTION 'derivation_source' USING ERRCODE = 'LY007';\n                END IF;\n                RETURN NEW;\n            END IF;\n            IF (OLD.state, NEW.state) NOT IN (('complete', 'invalidated'), ('failed', 'invalidated'), ('failed', 'running'), ('prepared', 'invalidated'), ('prepared', 'running'), ('running', 'complete'), ('running', 'failed'), ('running', 'invalidated'), ('running', 'running')) THEN\n                RAISE EXCEPTION 'derivation_edge' USING ERRCODE = 'LY003';\n            END IF;\n            IF NEW.row_version <> OLD.row_version + 1 THEN\n                RAISE EXCEPTION 'derivation_version_step' USING ERRCODE = 'LY003';\n            END IF;\n            IF NEW.attempt - OLD.attempt <> (NEW.state = 'running')::integer THEN\n                RAISE EXCEPTION 'derivation_attempt_step' USING ERRCODE = 'LY003';\n            END IF;\n            IF NEW.state = 'running' THEN\n                IF OLD.state = 'running' AND OLD.deadline > clock_timestamp() THEN\n                    RAISE EXCEPTION 'attempt_alive' USING ERRCODE = 'LY007';\n                END IF;\n                IF NEW.attempt_token IS NOT DISTINCT FROM OLD.attempt_token OR NEW.attempt_token IS NULL THEN\n                    RAISE EXCEPTION 'attempt_token' USING ERRCODE = 'LY007';\n                END IF;\n                IF NEW.claimed_at > clock_timestamp() THEN\n                    RAISE EXCEPTION 'attempt_deadline' USING ERRCODE = 'LY007';\n                END IF;\n                IF NOT (\n    EXISTS (\n        SELECT 1 FROM public.archive_note note\n         WHERE note.id = NEW.note_id AND note.namespace_id = NEW.namespace_id\n           AND note.state = 'promoted' AND note.text IS NOT NULL\n           AND note.lifecycle_version = NEW.note_lifecycle_version AND note.text_digest = NEW.text_digest\n           AND note.source_revision = NEW.source_revision)\n    AND EXISTS (\n        SELECT 1 FROM public.semantic_generation generation\n         WHERE generation.id = NEW.generation_id AND generation.state = 'active')\n) THEN\n                    RAISE EXCEPTION 'derivation_source' USING ERRCODE = 'LY007';\n                END IF;\n            END IF;\n            IF NEW.receipt IS DISTINCT FROM OLD.receipt AND NEW.state <> 'complete' THEN\n                RAISE EXCEPTION 'derivation_receipt' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="21ae90b6c4f5e2921222482901e6283eed064f30",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_derivation_edge_1cd6c",
                    table="semantic_derivation",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="derivation",
            trigger=pgtrigger.compiler.Trigger(
                name="derivation_zdone",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE kept integer;",
                    func="\n            IF NEW.state <> 'complete' OR OLD.state = 'complete' THEN\n                RETURN NEW;\n            END IF;\n            IF OLD.deadline IS NULL OR OLD.deadline <= clock_timestamp() THEN\n                RAISE EXCEPTION 'attempt_expired' USING ERRCODE = 'LY007';\n            END IF;\n            IF NOT (\n    EXISTS (\n        SELECT 1 FROM public.archive_note note\n         WHERE note.id = NEW.note_id AND note.namespace_id = NEW.namespace_id\n           AND note.state = 'promoted' AND note.text IS NOT NULL\n           AND note.lifecycle_version = NEW.note_lifecycle_version AND note.text_digest = NEW.text_digest\n           AND note.source_revision = NEW.source_revision)\n    AND EXISTS (\n        SELECT 1 FROM public.semantic_generation generation\n         WHERE generation.id = NEW.generation_id AND generation.state = 'active')\n) THEN\n                RAISE EXCEPTION 'derivation_source' USING ERRCODE = 'LY007';\n            END IF;\n            IF NEW.vector IS NOT NULL AND (\n                public.vector_dims(NEW.vector) <> NEW.dimensions\n                OR NOT (abs(public.vector_norm(NEW.vector) - 1) <= 0.001 + 1e-12)\n                OR NOT (abs(NEW.l2_norm - public.vector_norm(NEW.vector)) <= 1e-9)) THEN\n                RAISE EXCEPTION 'derivation_vector' USING ERRCODE = 'LY007';\n            END IF;\n            SELECT (generation.manifest #>> '{embed_binding,padding,from}')::integer INTO kept\n              FROM public.semantic_generation generation WHERE generation.id = NEW.generation_id;\n            IF kept < NEW.dimensions\n               AND public.vector_norm(public.subvector(NEW.vector, kept + 1, NEW.dimensions - kept)) <> 0 THEN\n                RAISE EXCEPTION 'derivation_padding' USING ERRCODE = 'LY007';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="8ddbc20a3fb1ad3ca466ebfead882560e7a1d6f0",
                    operation="UPDATE",
                    pgid="pgtrigger_derivation_zdone_75bc0",
                    table="semantic_derivation",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.RunSQL(FENCES, UNFENCE),
        migrations.RunSQL(STATISTICS, migrations.RunSQL.noop),
        # Undone from the last to the first, so the refusal stands last.
        migrations.RunSQL(migrations.RunSQL.noop, REFUSE_WITH_ROWS),
    ]
