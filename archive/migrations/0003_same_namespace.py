"""A row of a namespace names rows of that namespace alone (specification 0.13)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("archive", "0002_lexical"),
    ]

    operations = [
        pgtrigger.migrations.AddTrigger(
            model_name="flag",
            trigger=pgtrigger.compiler.Trigger(
                name="same_namespace",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF NEW.note_id IS NOT NULL AND NEW.note_id IS DISTINCT FROM OLD.note_id AND NOT EXISTS (\n                SELECT 1 FROM public.archive_note named\n                 WHERE named.id = NEW.note_id AND named.namespace_id = NEW.namespace_id) THEN\n                RAISE EXCEPTION 'other_namespace' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="6ec4fc5cc86d0bd4117d3a74a4aee2a5369b8684",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_same_namespace_dc303",
                    table="archive_flag",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="intakerequest",
            trigger=pgtrigger.compiler.Trigger(
                name="same_namespace",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF NEW.note_id IS NOT NULL AND NEW.note_id IS DISTINCT FROM OLD.note_id AND NOT EXISTS (\n                SELECT 1 FROM public.archive_note named\n                 WHERE named.id = NEW.note_id AND named.namespace_id = NEW.namespace_id) THEN\n                RAISE EXCEPTION 'other_namespace' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="9c3da93395ddfa006d86b035e417dbded87be69d",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_same_namespace_b4ff4",
                    table="archive_intake_request",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="lifecycleevent",
            trigger=pgtrigger.compiler.Trigger(
                name="same_namespace",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF NEW.caused_by_note_id IS NOT NULL AND NEW.caused_by_note_id IS DISTINCT FROM OLD.caused_by_note_id AND NOT EXISTS (\n                SELECT 1 FROM public.archive_note named\n                 WHERE named.id = NEW.caused_by_note_id AND named.namespace_id = NEW.namespace_id) THEN\n                RAISE EXCEPTION 'other_namespace' USING ERRCODE = 'LY001';\n            END IF;\n            IF NEW.note_id IS NOT NULL AND NEW.note_id IS DISTINCT FROM OLD.note_id AND NOT EXISTS (\n                SELECT 1 FROM public.archive_note named\n                 WHERE named.id = NEW.note_id AND named.namespace_id = NEW.namespace_id) THEN\n                RAISE EXCEPTION 'other_namespace' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="1b3c8eedb16cdd94cf098829f4e7eebbc87f8a14",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_same_namespace_be94e",
                    table="archive_lifecycle_event",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="note",
            trigger=pgtrigger.compiler.Trigger(
                name="same_namespace",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF NEW.source_id IS NOT NULL AND NEW.source_id IS DISTINCT FROM OLD.source_id AND NOT EXISTS (\n                SELECT 1 FROM public.archive_source named\n                 WHERE named.id = NEW.source_id AND named.namespace_id = NEW.namespace_id) THEN\n                RAISE EXCEPTION 'other_namespace' USING ERRCODE = 'LY001';\n            END IF;\n            IF NEW.superseded_by_id IS NOT NULL AND NEW.superseded_by_id IS DISTINCT FROM OLD.superseded_by_id AND NOT EXISTS (\n                SELECT 1 FROM public.archive_note named\n                 WHERE named.id = NEW.superseded_by_id AND named.namespace_id = NEW.namespace_id) THEN\n                RAISE EXCEPTION 'other_namespace' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="1d68ee66e400584fcb3b88a95106386f541bb116",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_same_namespace_2964f",
                    table="archive_note",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.RunSQL(
            # Last forwards, so first backwards: the fence is not taken from rows that rely on it (R-L-305).
            migrations.RunSQL.noop,
            """
            DO $$ BEGIN
                IF EXISTS (SELECT 1 FROM archive_namespace) THEN
                    RAISE EXCEPTION 'the archive holds rows; export them before you downgrade' USING ERRCODE = 'LY004';
                END IF;
            END $$;
            """,
        ),
    ]
