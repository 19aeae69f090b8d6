"""An asserted origin leaves with the text: it takes 2,048 letters and hyphens, in which a text can be said.

Tombstones of before are cleared. What their revisions were is known by their digests, which stay.
"""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

# Between the old fence and the new one, which lets an origin go in the act of revocation alone; every other one stands.
CLEAR = """
DO $block$
BEGIN
    PERFORM FROM public.archive_namespace AS held
    WHERE EXISTS (SELECT FROM public.archive_note
                  WHERE namespace_id = held.id AND state = 'revoked' AND asserted_origin IS NOT NULL)
    ORDER BY held.id FOR UPDATE;
    UPDATE public.archive_note SET asserted_origin = NULL WHERE state = 'revoked' AND asserted_origin IS NOT NULL;
END
$block$;
SET CONSTRAINTS ALL IMMEDIATE;
"""
# ANALYZE has copied values of the column into pg_statistic, which setting its type clears and nothing else does.
UNLEARN = """
ALTER TABLE public.archive_note ALTER COLUMN asserted_origin TYPE text;
ALTER TABLE public.archive_note ALTER COLUMN asserted_origin SET STATISTICS 0;
"""
LEARN = "ALTER TABLE public.archive_note ALTER COLUMN asserted_origin SET STATISTICS -1;"


class Migration(migrations.Migration):
    dependencies = [
        ("archive", "0013_token_namespaces"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="note",
            name="note_text",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="note",
            name="note_identity",
        ),
        migrations.RunSQL(CLEAR, migrations.RunSQL.noop),
        migrations.RunSQL(UNLEARN, LEARN),
        migrations.RemoveConstraint(
            model_name="note",
            name="note_text_until_revoked",
        ),
        migrations.AddConstraint(
            model_name="note",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("asserted_origin__isnull", True), ("state", "revoked"), ("text__isnull", True)),
                    models.Q(("text__isnull", False), models.Q(("state", "revoked"), _negated=True)),
                    _connector="OR",
                ),
                name="note_text_until_revoked",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="note",
            trigger=pgtrigger.compiler.Trigger(
                name="note_identity",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE moving text[];",
                    func="\n            moving := ARRAY['state', 'lifecycle_version', 'text', 'asserted_origin'];\n            IF NEW.state <> OLD.state THEN\n                moving := moving || ARRAY['state_changed_at', NEW.state || '_at'];\n            END IF;\n            IF NEW.state = 'archived' AND OLD.state <> 'archived' THEN\n                moving := moving || ARRAY['superseded_by_id'];\n            END IF;\n            IF (to_jsonb(NEW) - moving) IS DISTINCT FROM (to_jsonb(OLD) - moving) THEN\n                RAISE EXCEPTION 'note_identity' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="75dd23941dbdaf8e810efeed55e51d8c0ff1dc5c",
                    operation="UPDATE",
                    pgid="pgtrigger_note_identity_10b45",
                    table="archive_note",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="note",
            trigger=pgtrigger.compiler.Trigger(
                name="note_text",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF (NEW.text, NEW.asserted_origin) IS DISTINCT FROM (OLD.text, OLD.asserted_origin)\n               AND NOT (NEW.text IS NULL AND NEW.asserted_origin IS NULL\n                        AND NEW.state = 'revoked' AND OLD.state <> 'revoked') THEN\n                RAISE EXCEPTION 'note_text' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="357351826c364ccf7efe5b542a5cab2656c966b6",
                    operation="UPDATE",
                    pgid="pgtrigger_note_text_a91dc",
                    table="archive_note",
                    when="BEFORE",
                ),
            ),
        ),
    ]
