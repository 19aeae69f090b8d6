"""A token names the namespaces that it is for; what its subject is granted elsewhere later, it does not open.

Tokens that were issued before are kept for the namespaces in which their subject holds a grant now, or one that begins
later.
"""

import django.contrib.postgres.fields
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

# A narrowing that the fence allows: from every namespace to these.
KEPT = """
UPDATE public.lychd_token AS issued SET namespaces = ARRAY(
    SELECT DISTINCT held.namespace_key
    FROM public.lychd_grant AS held JOIN public.lychd_principal AS acting ON acting.subject = held.subject
    WHERE acting.id = issued.principal_id AND held.revoked_at IS NULL
      AND (held.valid_until IS NULL OR held.valid_until > clock_timestamp())
    ORDER BY held.namespace_key)
"""
# Without the column each of them would open whatever its subject is granted.
LIMITED = """
DO $block$
BEGIN
    IF EXISTS (SELECT FROM public.lychd_token
               WHERE namespaces IS NOT NULL AND revoked_at IS NULL AND expires_at > clock_timestamp()) THEN
        RAISE EXCEPTION 'tokens name the namespaces that they are for; revoke those before you downgrade'
            USING ERRCODE = 'LY004';
    END IF;
END
$block$
"""


class Migration(migrations.Migration):
    dependencies = [
        ("archive", "0012_growth"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="token",
            name="token",
        ),
        migrations.AddField(
            model_name="token",
            name="namespaces",
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), null=True, size=None),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="token",
            trigger=pgtrigger.compiler.Trigger(
                name="token",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF (to_jsonb(NEW) - ARRAY['revoked_at', 'last_used_at', 'expires_at', 'namespaces']) IS DISTINCT FROM (to_jsonb(OLD) - ARRAY['revoked_at', 'last_used_at', 'expires_at', 'namespaces'])\n               OR NEW.expires_at > OLD.expires_at\n               OR (OLD.namespaces IS NOT NULL AND (NEW.namespaces <@ OLD.namespaces) IS NOT TRUE)\n               OR (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at) THEN\n                RAISE EXCEPTION 'token_fence' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="06110de28eca67d12c50493c03e9c46e27b2eed0",
                    operation="UPDATE",
                    pgid="pgtrigger_token_74c44",
                    table="lychd_token",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.RunSQL(KEPT, LIMITED),
    ]
