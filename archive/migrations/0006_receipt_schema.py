"""The schema that a receipt names is the schema of its row (specification 5.6)."""

import django.db.models.expressions
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("archive", "0005_note_identity")]

    operations = [
        migrations.AddConstraint(
            model_name="recall",
            constraint=models.CheckConstraint(
                condition=django.db.models.expressions.RawSQL(
                    "coalesce((receipt ->> 'schema') = schema::text, false)", [], output_field=models.BooleanField()
                ),
                name="recall_receipt_schema",
            ),
        ),
    ]
