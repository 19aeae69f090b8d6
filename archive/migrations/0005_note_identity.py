"""Fence the times and the successor of a note while its state stays (specification 5.6, T-NOTE-ID)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("archive", "0004_derivation_roles"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="note",
            name="note_identity",
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="note",
            trigger=pgtrigger.compiler.Trigger(
                name="note_identity",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE moving text[];",
                    func="\n            moving := ARRAY['state', 'lifecycle_version', 'text'];\n            IF NEW.state <> OLD.state THEN\n                moving := moving || ARRAY['state_changed_at', NEW.state || '_at'];\n            END IF;\n            IF NEW.state = 'archived' AND OLD.state <> 'archived' THEN\n                moving := moving || ARRAY['superseded_by_id'];\n            END IF;\n            IF (to_jsonb(NEW) - moving) IS DISTINCT FROM (to_jsonb(OLD) - moving) THEN\n                RAISE EXCEPTION 'note_identity' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="52a08eac8c8a114ffa9dd7e739cb646b082a65c1",
                    operation="UPDATE",
                    pgid="pgtrigger_note_identity_10b45",
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
