"""Let the queue of candidates be counted and walked from the index alone, however many notes were decided about."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("archive", "0007_principal_link"),
    ]

    operations = [
        migrations.RunSQL(
            # By source, and within it in the order of intake: the order in which a curator goes through them.
            "CREATE INDEX note_waiting ON archive_note (namespace_id, source_id, note_number) INCLUDE (id)"
            " WHERE state = 'candidate'",
            "DROP INDEX note_waiting",
        ),
    ]
