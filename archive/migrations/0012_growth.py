"""Let every list be walked, counted and searched by an index, however much there is.

Lists go in the order of the note's number, since one moment may stamp a whole batch.
"""

from django.db import migrations, models
from django.db.models import Q

# By source, and within it in the order of intake; what the queue is narrowed by is in it, so that no note is read.
WAITING = (
    "CREATE INDEX note_waiting ON archive_note (namespace_id, source_id, note_number)"
    " INCLUDE (id, admitted_subject, created_at, text_digest) WHERE state = 'candidate'"
)
WAITED = (
    "CREATE INDEX note_waiting ON archive_note (namespace_id, source_id, note_number) INCLUDE (id)"
    " WHERE state = 'candidate'"
)
ORDERED = {
    "note_state_in_order": "archive_note (namespace_id, state, note_number)",
    "note_admitted_in_order": "archive_note (namespace_id, admitted_subject, note_number)",
    # Misses are counted in it, and all receipts in `recall_keyset`; no receipt is read for that.
    "recall_missed": "archive_recall (namespace_id) WHERE receipt ->> 'outcome' = 'miss'",
}
# By its namespace, as whatever asks for a note by its number does. Alone, the numbers of all namespaces would be walked
# for one of them.
NUMBER = (
    "ALTER TABLE archive_note DROP CONSTRAINT note_number_once,"
    " ADD CONSTRAINT note_number_once UNIQUE ({})"
)


class Migration(migrations.Migration):
    dependencies = [
        ("archive", "0011_receipt_truth"),
    ]

    operations = [
        *(
            migrations.RunSQL(f"CREATE INDEX {name} ON {what}", f"DROP INDEX {name}")  # noqa: S608 - names of ours
            for name, what in ORDERED.items()
        ),
        migrations.RunSQL(NUMBER.format("namespace_id, note_number"), NUMBER.format("note_number")),
        migrations.RunSQL(f"DROP INDEX note_waiting; {WAITING}", f"DROP INDEX note_waiting; {WAITED}"),
        migrations.RemoveIndex(model_name="note", name="note_keyset"),
        migrations.RemoveIndex(model_name="note", name="note_state_keyset"),
        migrations.RemoveIndex(model_name="note", name="note_admitted_keyset"),
        migrations.AddIndex(
            model_name="note",
            index=models.Index(
                fields=["text_digest", "namespace"],
                name="note_text_digest",
                opclasses=["text_pattern_ops", "int8_ops"],
            ),
        ),
        migrations.AddIndex(
            model_name="note",
            index=models.Index(
                fields=["namespace", "text_digest"],
                name="note_promoted_text",
                condition=Q(state="promoted"),
            ),
        ),
        migrations.AddIndex(
            model_name="note",
            index=models.Index(
                fields=["material_digest", "namespace"],
                name="note_material_digest",
                opclasses=["text_pattern_ops", "int8_ops"],
            ),
        ),
        migrations.AddIndex(
            model_name="recall",
            index=models.Index(
                fields=["receipt_digest", "namespace"],
                name="recall_receipt_digest",
                opclasses=["text_pattern_ops", "int8_ops"],
            ),
        ),
        migrations.AddIndex(
            model_name="recall",
            index=models.Index(
                fields=["request_digest", "namespace"],
                name="recall_request_digest",
                opclasses=["text_pattern_ops", "int8_ops"],
            ),
        ),
        migrations.AddIndex(
            model_name="lifecycleevent",
            index=models.Index(
                fields=["namespace", "to_state", "created_at"],
                name="event_decided",
                condition=Q(cause="explicit", to_state__in=["promoted", "archived", "revoked"]),
            ),
        ),
        migrations.AddIndex(
            model_name="lifecycleevent",
            index=models.Index(fields=["namespace", "to_state", "id"], name="event_state_keyset"),
        ),
        migrations.AddIndex(
            model_name="source",
            index=models.Index(
                fields=["source_key", "namespace"],
                name="source_named",
                opclasses=["text_pattern_ops", "int8_ops"],
            ),
        ),
        # Namespaces are gone through by their keys, in the order of bytes, for one subject or for all.
        migrations.RemoveIndex(model_name="grant", name="grant_current"),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(
                fields=["subject", "namespace_key", "action"],
                name="grant_current",
                condition=Q(revoked_at__isnull=True),
                opclasses=["text_ops", "text_pattern_ops", "text_ops"],
            ),
        ),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(
                fields=["subject", "action", "namespace_key"],
                name="grant_of_action",
                condition=Q(revoked_at__isnull=True),
            ),
        ),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(fields=["namespace_key", "subject"], name="grant_of_namespace"),
        ),
        migrations.AddIndex(
            model_name="configuredbinding",
            index=models.Index(
                fields=["namespace_key"],
                name="binding_served",
                condition=Q(disabled_at__isnull=True),
                opclasses=["text_pattern_ops"],
            ),
        ),
    ]
