"""An update of a namespace moves its binding or its lexical state, never both (specification 0.2, T-NSBIND)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("archive", "0009_functions_anew"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="namespace",
            name="binding",
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="namespace",
            trigger=pgtrigger.compiler.Trigger(
                name="binding",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF (NEW.id, NEW.key, NEW.profile, NEW.space_id, NEW.space_generation, NEW.classification, NEW.created_at)\n               IS DISTINCT FROM\n               (OLD.id, OLD.key, OLD.profile, OLD.space_id, OLD.space_generation, OLD.classification, OLD.created_at)\n               OR NEW.row_version <> OLD.row_version + 1 THEN\n                RAISE EXCEPTION 'namespace_identity' USING ERRCODE = 'LY001';\n            END IF;\n            IF (NEW.owner, NEW.policy_revision, NEW.binding_digest, NEW.text_configuration)\n               IS DISTINCT FROM (OLD.owner, OLD.policy_revision, OLD.binding_digest, OLD.text_configuration) THEN\n                IF current_setting('lychd.binding_migration', true) IS DISTINCT FROM OLD.id::text\n                   OR NOT EXISTS (\n                    SELECT 1 FROM public.archive_binding_migration m\n                     WHERE m.namespace_id = OLD.id AND m.transaction_id = pg_current_xact_id()\n                       AND m.new_owner = NEW.owner AND m.new_policy_revision = NEW.policy_revision\n                       AND m.new_binding_digest = NEW.binding_digest\n                       AND m.new_text_configuration = NEW.text_configuration) THEN\n                    RAISE EXCEPTION 'namespace_binding' USING ERRCODE = 'LY001';\n                END IF;\n                IF NEW.lexical_state IS DISTINCT FROM\n                   (CASE WHEN NEW.text_configuration = OLD.text_configuration THEN OLD.lexical_state\n                         ELSE 'rebuilding' END)\n                   OR NEW.lexer_fingerprint IS DISTINCT FROM OLD.lexer_fingerprint THEN\n                    RAISE EXCEPTION 'namespace_lexical_state' USING ERRCODE = 'LY001';\n                END IF;\n            ELSIF (NEW.lexical_state, NEW.lexer_fingerprint)\n                  IS DISTINCT FROM (OLD.lexical_state, OLD.lexer_fingerprint)\n                  AND current_setting('lychd.lexical_rebuild', true) IS DISTINCT FROM OLD.id::text THEN\n                RAISE EXCEPTION 'namespace_lexical_state' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="1f4f0e7c56c4a7ef8637c8612df09db7bad94c01",
                    operation="UPDATE",
                    pgid="pgtrigger_binding_afdb7",
                    table="archive_namespace",
                    when="BEFORE",
                ),
            ),
        ),
    ]
