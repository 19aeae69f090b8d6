"""A principal stands for one user for good, even after that user is gone (specification 5.5)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("archive", "0006_receipt_schema"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="principal",
            name="principal",
        ),
        migrations.AddField(
            model_name="principal",
            name="linked_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.RunSQL(
            # Of a principal whose user is gone already nothing is known.
            "UPDATE lychd_principal SET linked_at = created_at WHERE user_id IS NOT NULL",
            migrations.RunSQL.noop,
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="principal",
            trigger=pgtrigger.compiler.Trigger(
                name="principal",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF TG_OP = 'INSERT' THEN\n                NEW.linked_at := CASE WHEN NEW.user_id IS NOT NULL THEN clock_timestamp() END;\n                RETURN NEW;\n            END IF;\n            IF (NEW.id, NEW.subject, NEW.created_at, NEW.linked_at)\n               IS DISTINCT FROM (OLD.id, OLD.subject, OLD.created_at, OLD.linked_at)\n               OR (OLD.linked_at IS NOT NULL AND NEW.user_id IS NOT NULL\n                   AND NEW.user_id IS DISTINCT FROM OLD.user_id) THEN\n                RAISE EXCEPTION 'principal_fence' USING ERRCODE = 'LY001';\n            END IF;\n            IF NEW.user_id IS NOT NULL AND OLD.linked_at IS NULL THEN\n                NEW.linked_at := clock_timestamp();\n            END IF;\n            RETURN NEW;\n        ",
                    hash="2b9ff21d23641002e657de641e7b3e554bdda848",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_principal_6a24e",
                    table="lychd_principal",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.RunSQL(
            # Last forwards, so first backwards: the fence is not taken from rows that rely on it (R-L-305).
            migrations.RunSQL.noop,
            """
            DO $$ BEGIN
                IF EXISTS (SELECT 1 FROM archive_namespace)
                   OR EXISTS (SELECT 1 FROM lychd_principal WHERE linked_at IS NOT NULL) THEN
                    RAISE EXCEPTION 'the archive holds rows; export them before you downgrade' USING ERRCODE = 'LY004';
                END IF;
            END $$;
            """,
        ),
    ]
