"""The tables of truth with their constraints and triggers (specification 5.6)."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BindingMigration",
            fields=[
                ("space_id", models.UUIDField(editable=False)),
                ("space_generation", models.IntegerField(editable=False)),
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("old_owner", models.TextField()),
                ("new_owner", models.TextField()),
                ("old_policy_revision", models.TextField()),
                ("new_policy_revision", models.TextField()),
                ("old_text_configuration", models.TextField()),
                ("new_text_configuration", models.TextField()),
                ("old_binding_digest", models.TextField()),
                ("new_binding_digest", models.TextField()),
                ("actor_subject", models.TextField()),
                ("reason", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
            ],
            options={
                "db_table": "archive_binding_migration",
            },
        ),
        migrations.CreateModel(
            name="ConfiguredBindingHistory",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("namespace_key", models.TextField()),
                ("owner", models.TextField()),
                ("policy_revision", models.TextField()),
                ("text_configuration", models.TextField()),
                ("generation", models.TextField(null=True)),
                ("second_person", models.BooleanField()),
                ("configured_by", models.TextField()),
                ("configured_at", models.DateTimeField()),
                ("disabled_at", models.DateTimeField(null=True)),
                (
                    "recorded_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
            ],
            options={
                "db_table": "lychd_binding_history",
            },
        ),
        migrations.CreateModel(
            name="Flag",
            fields=[
                ("space_id", models.UUIDField(editable=False)),
                ("space_generation", models.IntegerField(editable=False)),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("lifecycle_version", models.IntegerField()),
                ("subject", models.TextField()),
                ("reason", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
            ],
            options={
                "db_table": "archive_flag",
            },
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("subject", models.TextField()),
                ("namespace_key", models.TextField()),
                ("owner", models.TextField()),
                ("purpose", models.TextField()),
                ("policy_revision", models.TextField()),
                ("action", models.TextField()),
                (
                    "valid_from",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
                ("valid_until", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("granted_by", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
            ],
            options={
                "db_table": "lychd_grant",
            },
        ),
        migrations.CreateModel(
            name="IntakeRequest",
            fields=[
                ("space_id", models.UUIDField(editable=False)),
                ("space_generation", models.IntegerField(editable=False)),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("request_id", models.TextField()),
                ("request_digest", models.TextField()),
                ("material_digest", models.TextField()),
                ("created_note", models.BooleanField()),
                ("subject", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
            ],
            options={
                "db_table": "archive_intake_request",
            },
        ),
        migrations.CreateModel(
            name="LifecycleEvent",
            fields=[
                ("space_id", models.UUIDField(editable=False)),
                ("space_generation", models.IntegerField(editable=False)),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("from_state", models.TextField(null=True)),
                ("to_state", models.TextField()),
                ("from_version", models.IntegerField()),
                ("to_version", models.IntegerField()),
                ("cause", models.TextField(default="explicit")),
                ("reason", models.TextField(null=True)),
                ("subject", models.TextField()),
                ("policy_revision", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
            ],
            options={
                "db_table": "archive_lifecycle_event",
            },
        ),
        migrations.CreateModel(
            name="MemorySpace",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("kind", models.TextField()),
                ("owner_membership", models.UUIDField(null=True)),
                ("generation", models.IntegerField(default=1)),
                ("lifecycle", models.TextField(default="active")),
                ("private_content_at", models.DateTimeField(null=True)),
                ("sealed_at", models.DateTimeField(null=True)),
                ("retired_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "archive_memory_space",
            },
        ),
        migrations.CreateModel(
            name="Namespace",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("key", models.TextField()),
                ("profile", models.TextField()),
                ("owner", models.TextField()),
                ("policy_revision", models.TextField()),
                ("binding_digest", models.TextField()),
                ("space_id", models.UUIDField(editable=False)),
                ("space_generation", models.IntegerField(editable=False)),
                ("classification", models.TextField()),
                ("text_configuration", models.TextField()),
                ("lexical_state", models.TextField(default="ready")),
                ("lexer_fingerprint", models.TextField()),
                ("row_version", models.IntegerField(default=1)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
            ],
            options={
                "db_table": "archive_namespace",
            },
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                ("space_id", models.UUIDField(editable=False)),
                ("space_generation", models.IntegerField(editable=False)),
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("source_revision", models.TextField()),
                ("kind", models.TextField(default="note")),
                ("asserted_origin", models.TextField(null=True)),
                ("state", models.TextField(default="candidate")),
                ("lifecycle_version", models.IntegerField(default=1)),
                ("text", models.TextField(null=True)),
                ("text_digest", models.TextField()),
                ("char_count", models.IntegerField()),
                ("byte_count", models.IntegerField()),
                ("material_digest", models.TextField()),
                ("classification", models.TextField(default="public")),
                ("retention_class", models.TextField(default="standard")),
                ("retain_until", models.DateTimeField(null=True)),
                ("observed_at", models.DateTimeField(null=True)),
                ("admitted_subject", models.TextField()),
                ("policy_revision", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
                (
                    "state_changed_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
                ("promoted_at", models.DateTimeField(null=True)),
                ("archived_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "archive_note",
            },
        ),
        migrations.CreateModel(
            name="Principal",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("subject", models.TextField()),
                ("active", models.BooleanField(default=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
            ],
            options={
                "db_table": "lychd_principal",
            },
        ),
        migrations.CreateModel(
            name="Recall",
            fields=[
                ("space_id", models.UUIDField(editable=False)),
                ("space_generation", models.IntegerField(editable=False)),
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("request_id", models.TextField()),
                ("schema", models.SmallIntegerField()),
                ("request_digest", models.TextField()),
                ("receipt", models.JSONField()),
                ("receipt_digest", models.TextField()),
                ("subject", models.TextField()),
                ("purpose", models.TextField()),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "db_table": "archive_recall",
            },
        ),
        migrations.CreateModel(
            name="Role",
            fields=[
                ("name", models.TextField(primary_key=True, serialize=False)),
                ("actions", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
            ],
            options={
                "db_table": "lychd_role",
            },
        ),
        migrations.CreateModel(
            name="Source",
            fields=[
                ("space_id", models.UUIDField(editable=False)),
                ("space_generation", models.IntegerField(editable=False)),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("source_key", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
            ],
            options={
                "db_table": "archive_source",
            },
        ),
        migrations.CreateModel(
            name="Token",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.TextField(default="")),
                ("digest", models.TextField()),
                ("prefix", models.TextField()),
                ("created_by", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "lychd_token",
            },
        ),
        migrations.CreateModel(
            name="ConfiguredBinding",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("namespace_key", models.TextField()),
                ("owner", models.TextField()),
                ("policy_revision", models.TextField()),
                ("text_configuration", models.TextField(default="simple")),
                ("generation", models.TextField(null=True)),
                ("second_person", models.BooleanField(default=False)),
                ("configured_by", models.TextField()),
                (
                    "configured_at",
                    models.DateTimeField(
                        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField())
                    ),
                ),
                ("disabled_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "lychd_binding",
                "constraints": [models.UniqueConstraint(fields=("namespace_key",), name="binding_namespace")],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="configuredbinding",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="c5876ad92a637cca12af8334a33bef6d67a5600f",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_73d13",
                    table="lychd_binding",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="configuredbinding",
            trigger=pgtrigger.compiler.Trigger(
                name="history",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            INSERT INTO public.lychd_binding_history\n                (namespace_key, owner, policy_revision, text_configuration, generation, second_person,\n                 configured_by, configured_at, disabled_at)\n            VALUES (NEW.namespace_key, NEW.owner, NEW.policy_revision, NEW.text_configuration, NEW.generation,\n                    NEW.second_person, NEW.configured_by, NEW.configured_at, NEW.disabled_at);\n            RETURN NULL;\n        ",
                    hash="5d59b5199e4835817a21d2d97210117180cdde14",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_history_b7740",
                    table="lychd_binding",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="configuredbindinghistory",
            index=models.Index(fields=["namespace_key", "id"], name="binding_history_namespace"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="configuredbindinghistory",
            trigger=pgtrigger.compiler.Trigger(
                name="append",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'append_only' USING ERRCODE = 'LY010'; RETURN NEW;",
                    hash="4c22736fed80926265d08e9672c9832b89336b6a",
                    operation="UPDATE",
                    pgid="pgtrigger_append_df13c",
                    table="lychd_binding_history",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="configuredbindinghistory",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="12347f16667aa4f0b42410d9215175b387deea5a",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_4cc4f",
                    table="lychd_binding_history",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(
                condition=models.Q(("revoked_at__isnull", True)),
                fields=["subject", "namespace_key", "action"],
                name="grant_current",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="grant",
            trigger=pgtrigger.compiler.Trigger(
                name="grant",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF (to_jsonb(NEW) - ARRAY['revoked_at']) IS DISTINCT FROM (to_jsonb(OLD) - ARRAY['revoked_at'])\n               OR OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL THEN\n                RAISE EXCEPTION 'grant_fence' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="217f0fdd5799906c897809d6c4d27e85d30cd46b",
                    operation="UPDATE",
                    pgid="pgtrigger_grant_f3ea2",
                    table="lychd_grant",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="grant",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="44ceebd67bb38d808473239ad8add0a31dd4caba",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_12ecc",
                    table="lychd_grant",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="memoryspace",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["team_shared", "private"])), name="space_kind"
            ),
        ),
        migrations.AddConstraint(
            model_name="memoryspace",
            constraint=models.CheckConstraint(
                condition=models.Q(("lifecycle__in", ["active", "sealed", "retired"])), name="space_lifecycle"
            ),
        ),
        migrations.AddConstraint(
            model_name="memoryspace",
            constraint=models.CheckConstraint(condition=models.Q(("generation__gte", 1)), name="space_generation"),
        ),
        migrations.AddConstraint(
            model_name="memoryspace",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "team_shared"), _negated=True),
                    models.Q(("lifecycle", "active"), ("retired_at__isnull", True), ("sealed_at__isnull", True)),
                    _connector="OR",
                ),
                name="space_shared_stays_active",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memoryspace",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="e01417ba4a1732e2765202557daef3e7086205eb",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_2a7dc",
                    table="archive_memory_space",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="namespace",
            constraint=models.UniqueConstraint(fields=("key",), name="namespace_key"),
        ),
        migrations.AddConstraint(
            model_name="namespace",
            constraint=models.CheckConstraint(
                condition=models.Q(("classification", "public")), name="namespace_public"
            ),
        ),
        migrations.AddConstraint(
            model_name="namespace",
            constraint=models.CheckConstraint(
                condition=models.Q(("lexical_state__in", ["ready", "rebuilding"])), name="namespace_lexical_state"
            ),
        ),
        migrations.AddField(
            model_name="lifecycleevent",
            name="namespace",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="archive.namespace"
            ),
        ),
        migrations.AddField(
            model_name="intakerequest",
            name="namespace",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="archive.namespace"
            ),
        ),
        migrations.AddField(
            model_name="flag",
            name="namespace",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="archive.namespace"
            ),
        ),
        migrations.AddField(
            model_name="bindingmigration",
            name="namespace",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="archive.namespace"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="namespace",
            trigger=pgtrigger.compiler.Trigger(
                name="space",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            SELECT id, generation INTO NEW.space_id, NEW.space_generation\n              FROM public.archive_memory_space WHERE kind = 'team_shared';\n            RETURN NEW;\n        ",
                    hash="788465ffc0ee0719280e4fad51c73a46340b74b1",
                    operation="INSERT",
                    pgid="pgtrigger_space_3b3ee",
                    table="archive_namespace",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="namespace",
            trigger=pgtrigger.compiler.Trigger(
                name="binding",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF (NEW.id, NEW.key, NEW.profile, NEW.space_id, NEW.space_generation, NEW.classification, NEW.created_at)\n               IS DISTINCT FROM\n               (OLD.id, OLD.key, OLD.profile, OLD.space_id, OLD.space_generation, OLD.classification, OLD.created_at)\n               OR NEW.row_version <> OLD.row_version + 1 THEN\n                RAISE EXCEPTION 'namespace_identity' USING ERRCODE = 'LY001';\n            END IF;\n            IF (NEW.owner, NEW.policy_revision, NEW.binding_digest, NEW.text_configuration)\n               IS DISTINCT FROM (OLD.owner, OLD.policy_revision, OLD.binding_digest, OLD.text_configuration) THEN\n                IF current_setting('lychd.binding_migration', true) IS DISTINCT FROM OLD.id::text\n                   OR NOT EXISTS (\n                    SELECT 1 FROM public.archive_binding_migration m\n                     WHERE m.namespace_id = OLD.id AND m.transaction_id = pg_current_xact_id()\n                       AND m.new_owner = NEW.owner AND m.new_policy_revision = NEW.policy_revision\n                       AND m.new_binding_digest = NEW.binding_digest\n                       AND m.new_text_configuration = NEW.text_configuration) THEN\n                    RAISE EXCEPTION 'namespace_binding' USING ERRCODE = 'LY001';\n                END IF;\n                IF NEW.text_configuration IS DISTINCT FROM OLD.text_configuration\n                   AND NEW.lexical_state <> 'rebuilding' THEN\n                    RAISE EXCEPTION 'namespace_lexical_state' USING ERRCODE = 'LY001';\n                END IF;\n            ELSIF (NEW.lexical_state, NEW.lexer_fingerprint)\n                  IS DISTINCT FROM (OLD.lexical_state, OLD.lexer_fingerprint)\n                  AND current_setting('lychd.lexical_rebuild', true) IS DISTINCT FROM OLD.id::text THEN\n                RAISE EXCEPTION 'namespace_lexical_state' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="1cb028aff57b0833e88fcdd8cf53b5de0aad9565",
                    operation="UPDATE",
                    pgid="pgtrigger_binding_afdb7",
                    table="archive_namespace",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="namespace",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="ecb353985566e6496051f7696237f52044fac9b3",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_ff796",
                    table="archive_namespace",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddField(
            model_name="note",
            name="namespace",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="archive.namespace"
            ),
        ),
        migrations.AddField(
            model_name="note",
            name="superseded_by",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="supersedes",
                to="archive.note",
            ),
        ),
        migrations.AddField(
            model_name="lifecycleevent",
            name="caused_by_note",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="caused_events",
                to="archive.note",
            ),
        ),
        migrations.AddField(
            model_name="lifecycleevent",
            name="note",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="events", to="archive.note"
            ),
        ),
        migrations.AddField(
            model_name="intakerequest",
            name="note",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="intakes", to="archive.note"
            ),
        ),
        migrations.AddField(
            model_name="flag",
            name="note",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="flags", to="archive.note"
            ),
        ),
        migrations.AddField(
            model_name="principal",
            name="user",
            field=models.OneToOneField(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="recall",
            name="namespace",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="archive.namespace"
            ),
        ),
        migrations.AddField(
            model_name="source",
            name="namespace",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="archive.namespace"
            ),
        ),
        migrations.AddField(
            model_name="note",
            name="source",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="notes", to="archive.source"
            ),
        ),
        migrations.AddField(
            model_name="token",
            name="principal",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="tokens", to="archive.principal"
            ),
        ),
        migrations.AddIndex(
            model_name="bindingmigration",
            index=models.Index(fields=["namespace", "created_at", "id"], name="binding_migration_keyset"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="bindingmigration",
            trigger=pgtrigger.compiler.Trigger(
                name="a_nslock",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE held_id bigint;",
                    func="\n            IF TG_OP = 'DELETE' THEN held_id := OLD.namespace_id; ELSE held_id := NEW.namespace_id; END IF;\n            IF TG_TABLE_NAME = 'archive_recall' AND TG_OP = 'INSERT' THEN\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR SHARE SKIP LOCKED;\n            ELSE\n                IF current_setting('lychd.hold', true) = 'shared' THEN\n                    RAISE EXCEPTION 'namespace_held_shared' USING ERRCODE = 'LY005';\n                END IF;\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR UPDATE SKIP LOCKED;\n            END IF;\n            IF NOT FOUND THEN\n                RAISE EXCEPTION 'namespace_not_held' USING ERRCODE = 'LY005';\n            END IF;\n            IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\n            RETURN NEW;\n        ",
                    hash="2d77d98b698cc206d50c8cdf578f8572cd28ec67",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_a_nslock_ed831",
                    table="archive_binding_migration",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="bindingmigration",
            trigger=pgtrigger.compiler.Trigger(
                name="space",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            SELECT space_id, space_generation INTO NEW.space_id, NEW.space_generation\n              FROM public.archive_namespace WHERE id = NEW.namespace_id;\n            RETURN NEW;\n        ",
                    hash="eb3ce1655d6dec968c4041371d56e7e0a6026d79",
                    operation="INSERT",
                    pgid="pgtrigger_space_d8ffc",
                    table="archive_binding_migration",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="bindingmigration",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="b3f8e545dd9e26fb7d87acf523f110106b0dc63d",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_c7840",
                    table="archive_binding_migration",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="bindingmigration",
            trigger=pgtrigger.compiler.Trigger(
                name="append",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'append_only' USING ERRCODE = 'LY010'; RETURN NEW;",
                    hash="895eee5d481bf8a1a9c3c7ef585a58a8e16302e3",
                    operation="UPDATE",
                    pgid="pgtrigger_append_7543e",
                    table="archive_binding_migration",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="lifecycleevent",
            index=models.Index(fields=["namespace", "id"], name="event_keyset"),
        ),
        migrations.AddConstraint(
            model_name="lifecycleevent",
            constraint=models.UniqueConstraint(fields=("note", "to_version"), name="event_once_per_version"),
        ),
        migrations.AddConstraint(
            model_name="lifecycleevent",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("from_version__gte", 0),
                    (
                        "to_version",
                        django.db.models.expressions.CombinedExpression(models.F("from_version"), "+", models.Value(1)),
                    ),
                ),
                name="event_version_step",
            ),
        ),
        migrations.AddConstraint(
            model_name="lifecycleevent",
            constraint=models.CheckConstraint(
                condition=models.Q(("cause__in", ["explicit", "superseded"])), name="event_cause"
            ),
        ),
        migrations.AddConstraint(
            model_name="lifecycleevent",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("reason__isnull", True),
                    (
                        "reason__in",
                        ["duplicate", "outdated", "wrong", "unsafe", "personal_data", "out_of_scope", "other"],
                    ),
                    _connector="OR",
                ),
                name="event_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="lifecycleevent",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("cause", "explicit"), ("caused_by_note__isnull", True)),
                    models.Q(("cause", "superseded"), ("caused_by_note__isnull", False)),
                    _connector="OR",
                ),
                name="event_superseded_names_its_cause",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="lifecycleevent",
            trigger=pgtrigger.compiler.Trigger(
                name="a_nslock",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE held_id bigint;",
                    func="\n            IF TG_OP = 'DELETE' THEN held_id := OLD.namespace_id; ELSE held_id := NEW.namespace_id; END IF;\n            IF TG_TABLE_NAME = 'archive_recall' AND TG_OP = 'INSERT' THEN\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR SHARE SKIP LOCKED;\n            ELSE\n                IF current_setting('lychd.hold', true) = 'shared' THEN\n                    RAISE EXCEPTION 'namespace_held_shared' USING ERRCODE = 'LY005';\n                END IF;\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR UPDATE SKIP LOCKED;\n            END IF;\n            IF NOT FOUND THEN\n                RAISE EXCEPTION 'namespace_not_held' USING ERRCODE = 'LY005';\n            END IF;\n            IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\n            RETURN NEW;\n        ",
                    hash="8e03f876d986b3650682db1014c8d7ffafbe0c69",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_a_nslock_87ab3",
                    table="archive_lifecycle_event",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="lifecycleevent",
            trigger=pgtrigger.compiler.Trigger(
                name="space",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            SELECT space_id, space_generation INTO NEW.space_id, NEW.space_generation\n              FROM public.archive_namespace WHERE id = NEW.namespace_id;\n            RETURN NEW;\n        ",
                    hash="fc69b820cd1b1cc322afa0a8c2dbe502435b7638",
                    operation="INSERT",
                    pgid="pgtrigger_space_6d5ee",
                    table="archive_lifecycle_event",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="lifecycleevent",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="dc609581062c0074c6a793348d99f97f2bca01ed",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_8e2b2",
                    table="archive_lifecycle_event",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="lifecycleevent",
            trigger=pgtrigger.compiler.Trigger(
                name="append",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'append_only' USING ERRCODE = 'LY010'; RETURN NEW;",
                    hash="8f2cfdcaaa7167f495aa11623e79fc41de68db1f",
                    operation="UPDATE",
                    pgid="pgtrigger_append_c7d3c",
                    table="archive_lifecycle_event",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="lifecycleevent",
            trigger=pgtrigger.compiler.Trigger(
                name="event_true",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    constraint="CONSTRAINT",
                    func="\n            IF NOT EXISTS (\n                SELECT 1 FROM public.archive_note n\n                 WHERE n.id = NEW.note_id AND n.namespace_id = NEW.namespace_id\n                   AND ((n.lifecycle_version = NEW.to_version AND n.state = NEW.to_state)\n                        OR (n.lifecycle_version > NEW.to_version AND EXISTS (\n                            SELECT 1 FROM public.archive_lifecycle_event e\n                             WHERE e.note_id = NEW.note_id AND e.to_version = NEW.to_version + 1\n                               AND e.from_state = NEW.to_state)))) THEN\n                RAISE EXCEPTION 'event_without_transition' USING ERRCODE = 'LY003';\n            END IF;\n            RETURN NULL;\n        ",
                    hash="3186298258d0659719e1549a458d9fb0525b8624",
                    operation="INSERT",
                    pgid="pgtrigger_event_true_b9809",
                    table="archive_lifecycle_event",
                    timing="DEFERRABLE INITIALLY DEFERRED",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="intakerequest",
            index=models.Index(fields=["note"], name="intake_note"),
        ),
        migrations.AddIndex(
            model_name="intakerequest",
            index=models.Index(fields=["namespace", "subject", "id"], name="intake_subject_keyset"),
        ),
        migrations.AddConstraint(
            model_name="intakerequest",
            constraint=models.UniqueConstraint(fields=("namespace", "request_id"), name="intake_request_once"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="intakerequest",
            trigger=pgtrigger.compiler.Trigger(
                name="a_nslock",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE held_id bigint;",
                    func="\n            IF TG_OP = 'DELETE' THEN held_id := OLD.namespace_id; ELSE held_id := NEW.namespace_id; END IF;\n            IF TG_TABLE_NAME = 'archive_recall' AND TG_OP = 'INSERT' THEN\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR SHARE SKIP LOCKED;\n            ELSE\n                IF current_setting('lychd.hold', true) = 'shared' THEN\n                    RAISE EXCEPTION 'namespace_held_shared' USING ERRCODE = 'LY005';\n                END IF;\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR UPDATE SKIP LOCKED;\n            END IF;\n            IF NOT FOUND THEN\n                RAISE EXCEPTION 'namespace_not_held' USING ERRCODE = 'LY005';\n            END IF;\n            IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\n            RETURN NEW;\n        ",
                    hash="e292eb369344d597deb4f87031874cb44c3d6028",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_a_nslock_dfd40",
                    table="archive_intake_request",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="intakerequest",
            trigger=pgtrigger.compiler.Trigger(
                name="space",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            SELECT space_id, space_generation INTO NEW.space_id, NEW.space_generation\n              FROM public.archive_namespace WHERE id = NEW.namespace_id;\n            RETURN NEW;\n        ",
                    hash="6663e5158b33ee3a2650ee8223bab00e1bd3418e",
                    operation="INSERT",
                    pgid="pgtrigger_space_c4d57",
                    table="archive_intake_request",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="intakerequest",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="0d9a24a1e126a9712a9c9ac5fdc3b54b7403aaf2",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_f47a6",
                    table="archive_intake_request",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="intakerequest",
            trigger=pgtrigger.compiler.Trigger(
                name="append",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'append_only' USING ERRCODE = 'LY010'; RETURN NEW;",
                    hash="836ae4dc2c7290abe0ce5b291dfde42bbe00b210",
                    operation="UPDATE",
                    pgid="pgtrigger_append_b9eb5",
                    table="archive_intake_request",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="flag",
            index=models.Index(fields=["namespace", "id"], name="flag_keyset"),
        ),
        migrations.AddConstraint(
            model_name="flag",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "reason__in",
                        ["duplicate", "outdated", "wrong", "unsafe", "personal_data", "out_of_scope", "other"],
                    )
                ),
                name="flag_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="flag",
            constraint=models.UniqueConstraint(
                fields=("note", "lifecycle_version", "subject", "reason"), name="flag_once"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="flag",
            trigger=pgtrigger.compiler.Trigger(
                name="a_nslock",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE held_id bigint;",
                    func="\n            IF TG_OP = 'DELETE' THEN held_id := OLD.namespace_id; ELSE held_id := NEW.namespace_id; END IF;\n            IF TG_TABLE_NAME = 'archive_recall' AND TG_OP = 'INSERT' THEN\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR SHARE SKIP LOCKED;\n            ELSE\n                IF current_setting('lychd.hold', true) = 'shared' THEN\n                    RAISE EXCEPTION 'namespace_held_shared' USING ERRCODE = 'LY005';\n                END IF;\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR UPDATE SKIP LOCKED;\n            END IF;\n            IF NOT FOUND THEN\n                RAISE EXCEPTION 'namespace_not_held' USING ERRCODE = 'LY005';\n            END IF;\n            IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\n            RETURN NEW;\n        ",
                    hash="ca179a27ff97c7efb4327a7901d7e015e7abf3b6",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_a_nslock_b06a3",
                    table="archive_flag",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="flag",
            trigger=pgtrigger.compiler.Trigger(
                name="space",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            SELECT space_id, space_generation INTO NEW.space_id, NEW.space_generation\n              FROM public.archive_namespace WHERE id = NEW.namespace_id;\n            RETURN NEW;\n        ",
                    hash="3409ed6872dc6f9f01c72ee5c9b15f8cb82fa53f",
                    operation="INSERT",
                    pgid="pgtrigger_space_67fe2",
                    table="archive_flag",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="flag",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="48f4cd99727259a678272b8840a04381d6d8bb39",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_420f0",
                    table="archive_flag",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="flag",
            trigger=pgtrigger.compiler.Trigger(
                name="append",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'append_only' USING ERRCODE = 'LY010'; RETURN NEW;",
                    hash="53e132aed7382dc5bc672aa74f698473d40f2278",
                    operation="UPDATE",
                    pgid="pgtrigger_append_55cd9",
                    table="archive_flag",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="principal",
            constraint=models.UniqueConstraint(fields=("subject",), name="principal_subject"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="principal",
            trigger=pgtrigger.compiler.Trigger(
                name="principal",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF (NEW.id, NEW.subject, NEW.created_at) IS DISTINCT FROM (OLD.id, OLD.subject, OLD.created_at)\n               OR (OLD.user_id IS NOT NULL AND NEW.user_id IS NOT NULL AND NEW.user_id <> OLD.user_id) THEN\n                RAISE EXCEPTION 'principal_fence' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="1d4c9afcba18eff07d9dba2004e889d5ce7b026e",
                    operation="UPDATE",
                    pgid="pgtrigger_principal_6a24e",
                    table="lychd_principal",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="principal",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="08f1e4da5a2d30cd163e7a7184dcd196feec5ab9",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_ae591",
                    table="lychd_principal",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="recall",
            index=models.Index(fields=["namespace", "created_at", "id"], name="recall_keyset"),
        ),
        migrations.AddConstraint(
            model_name="recall",
            constraint=models.UniqueConstraint(fields=("namespace", "request_id"), name="recall_request_once"),
        ),
        migrations.AddConstraint(
            model_name="recall",
            constraint=models.CheckConstraint(condition=models.Q(("schema__in", [1, 2])), name="recall_schema"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recall",
            trigger=pgtrigger.compiler.Trigger(
                name="a_nslock",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE held_id bigint;",
                    func="\n            IF TG_OP = 'DELETE' THEN held_id := OLD.namespace_id; ELSE held_id := NEW.namespace_id; END IF;\n            IF TG_TABLE_NAME = 'archive_recall' AND TG_OP = 'INSERT' THEN\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR SHARE SKIP LOCKED;\n            ELSE\n                IF current_setting('lychd.hold', true) = 'shared' THEN\n                    RAISE EXCEPTION 'namespace_held_shared' USING ERRCODE = 'LY005';\n                END IF;\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR UPDATE SKIP LOCKED;\n            END IF;\n            IF NOT FOUND THEN\n                RAISE EXCEPTION 'namespace_not_held' USING ERRCODE = 'LY005';\n            END IF;\n            IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\n            RETURN NEW;\n        ",
                    hash="cf80553b5835bfb95a466a084cd65d62ae4b9106",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_a_nslock_3f7ba",
                    table="archive_recall",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recall",
            trigger=pgtrigger.compiler.Trigger(
                name="space",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            SELECT space_id, space_generation INTO NEW.space_id, NEW.space_generation\n              FROM public.archive_namespace WHERE id = NEW.namespace_id;\n            RETURN NEW;\n        ",
                    hash="718fd5305617f6f726c3468aff97fcd81ca6d416",
                    operation="INSERT",
                    pgid="pgtrigger_space_49a71",
                    table="archive_recall",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recall",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="e26a0767fd457845c9c5c1c25725204bc75ad431",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_5d3ec",
                    table="archive_recall",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recall",
            trigger=pgtrigger.compiler.Trigger(
                name="append",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'append_only' USING ERRCODE = 'LY010'; RETURN NEW;",
                    hash="ea84af1aae7f4e58f8baf746bc33d775115f7c85",
                    operation="UPDATE",
                    pgid="pgtrigger_append_e2e7e",
                    table="archive_recall",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="source",
            constraint=models.UniqueConstraint(fields=("namespace", "source_key"), name="source_once"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="source",
            trigger=pgtrigger.compiler.Trigger(
                name="a_nslock",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE held_id bigint;",
                    func="\n            IF TG_OP = 'DELETE' THEN held_id := OLD.namespace_id; ELSE held_id := NEW.namespace_id; END IF;\n            IF TG_TABLE_NAME = 'archive_recall' AND TG_OP = 'INSERT' THEN\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR SHARE SKIP LOCKED;\n            ELSE\n                IF current_setting('lychd.hold', true) = 'shared' THEN\n                    RAISE EXCEPTION 'namespace_held_shared' USING ERRCODE = 'LY005';\n                END IF;\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR UPDATE SKIP LOCKED;\n            END IF;\n            IF NOT FOUND THEN\n                RAISE EXCEPTION 'namespace_not_held' USING ERRCODE = 'LY005';\n            END IF;\n            IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\n            RETURN NEW;\n        ",
                    hash="9efc59e165adee046d0cc843e7cba8d1b75d82a6",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_a_nslock_6db8c",
                    table="archive_source",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="source",
            trigger=pgtrigger.compiler.Trigger(
                name="space",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            SELECT space_id, space_generation INTO NEW.space_id, NEW.space_generation\n              FROM public.archive_namespace WHERE id = NEW.namespace_id;\n            RETURN NEW;\n        ",
                    hash="fd6fc0e11d0e314d4e41ebff69b57ba10fdbc432",
                    operation="INSERT",
                    pgid="pgtrigger_space_e5c60",
                    table="archive_source",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="source",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="6eb39d733830aa21b24d431bc5495359839a0255",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_ca56c",
                    table="archive_source",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="source",
            trigger=pgtrigger.compiler.Trigger(
                name="append",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'append_only' USING ERRCODE = 'LY010'; RETURN NEW;",
                    hash="0f9ed954b3b9300b3c560c1088d71374adb63eee",
                    operation="UPDATE",
                    pgid="pgtrigger_append_0f245",
                    table="archive_source",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="note",
            index=models.Index(fields=["namespace", "created_at", "id"], name="note_keyset"),
        ),
        migrations.AddIndex(
            model_name="note",
            index=models.Index(fields=["namespace", "state", "created_at", "id"], name="note_state_keyset"),
        ),
        migrations.AddIndex(
            model_name="note",
            index=models.Index(
                fields=["namespace", "admitted_subject", "created_at", "id"], name="note_admitted_keyset"
            ),
        ),
        migrations.AddConstraint(
            model_name="note",
            constraint=models.UniqueConstraint(
                fields=("namespace", "source", "source_revision"), name="note_revision_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="note",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "promoted")), fields=("source",), name="note_one_promoted_per_source"
            ),
        ),
        migrations.AddConstraint(
            model_name="note",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "revoked"), ("text__isnull", True)),
                    models.Q(("text__isnull", False), models.Q(("state", "revoked"), _negated=True)),
                    _connector="OR",
                ),
                name="note_text_until_revoked",
            ),
        ),
        migrations.AddConstraint(
            model_name="note",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["candidate", "promoted", "archived", "revoked"])), name="note_state"
            ),
        ),
        migrations.AddConstraint(
            model_name="note",
            constraint=models.CheckConstraint(condition=models.Q(("lifecycle_version__gte", 1)), name="note_version"),
        ),
        migrations.AddConstraint(
            model_name="note",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("char_count__gte", 1),
                    ("char_count__lte", 16384),
                    ("byte_count__gte", 1),
                    ("byte_count__lte", 65536),
                ),
                name="note_size",
            ),
        ),
        migrations.AddConstraint(
            model_name="note",
            constraint=models.CheckConstraint(condition=models.Q(("classification", "public")), name="note_public"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="note",
            trigger=pgtrigger.compiler.Trigger(
                name="a_nslock",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    declare="DECLARE held_id bigint;",
                    func="\n            IF TG_OP = 'DELETE' THEN held_id := OLD.namespace_id; ELSE held_id := NEW.namespace_id; END IF;\n            IF TG_TABLE_NAME = 'archive_recall' AND TG_OP = 'INSERT' THEN\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR SHARE SKIP LOCKED;\n            ELSE\n                IF current_setting('lychd.hold', true) = 'shared' THEN\n                    RAISE EXCEPTION 'namespace_held_shared' USING ERRCODE = 'LY005';\n                END IF;\n                PERFORM 1 FROM public.archive_namespace WHERE id = held_id FOR UPDATE SKIP LOCKED;\n            END IF;\n            IF NOT FOUND THEN\n                RAISE EXCEPTION 'namespace_not_held' USING ERRCODE = 'LY005';\n            END IF;\n            IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\n            RETURN NEW;\n        ",
                    hash="fb3c877a451a12f98e16f98d6bbf906ba1d65022",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_a_nslock_656e0",
                    table="archive_note",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="note",
            trigger=pgtrigger.compiler.Trigger(
                name="space",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            SELECT space_id, space_generation INTO NEW.space_id, NEW.space_generation\n              FROM public.archive_namespace WHERE id = NEW.namespace_id;\n            RETURN NEW;\n        ",
                    hash="e54da49c8cba9dd6da1101abee489273b2834e21",
                    operation="INSERT",
                    pgid="pgtrigger_space_cc45e",
                    table="archive_note",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="note",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="770753adbbc182f2c236f57465d313f48381bc2d",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_b33dd",
                    table="archive_note",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="note",
            trigger=pgtrigger.compiler.Trigger(
                name="note_identity",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF (to_jsonb(NEW) - ARRAY['state', 'lifecycle_version', 'text', 'state_changed_at', 'promoted_at', 'archived_at', 'revoked_at', 'superseded_by_id']) IS DISTINCT FROM (to_jsonb(OLD) - ARRAY['state', 'lifecycle_version', 'text', 'state_changed_at', 'promoted_at', 'archived_at', 'revoked_at', 'superseded_by_id']) THEN\n                RAISE EXCEPTION 'note_identity' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="afcbafbe153ecd0dae18bd5f4828befe3a318244",
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
                    func="\n            IF NEW.text IS DISTINCT FROM OLD.text\n               AND NOT (NEW.text IS NULL AND NEW.state = 'revoked' AND OLD.state <> 'revoked') THEN\n                RAISE EXCEPTION 'note_text' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="af0c0b0c97f01ef960d5a43edb16a663d5246183",
                    operation="UPDATE",
                    pgid="pgtrigger_note_text_a91dc",
                    table="archive_note",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="note",
            trigger=pgtrigger.compiler.Trigger(
                name="note_edge",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF TG_OP = 'INSERT' THEN\n                IF (NEW.state, NEW.lifecycle_version) IS DISTINCT FROM ('candidate', 1) THEN\n                    RAISE EXCEPTION 'note_birth' USING ERRCODE = 'LY002';\n                END IF;\n                RETURN NEW;\n            END IF;\n            IF NEW.state = OLD.state THEN\n                IF NEW.lifecycle_version <> OLD.lifecycle_version THEN\n                    RAISE EXCEPTION 'note_version_step' USING ERRCODE = 'LY003';\n                END IF;\n                RETURN NEW;\n            END IF;\n            IF (OLD.state, NEW.state) NOT IN (('archived', 'revoked'), ('candidate', 'promoted'), ('candidate', 'revoked'), ('promoted', 'archived'), ('promoted', 'revoked')) THEN\n                RAISE EXCEPTION 'note_edge' USING ERRCODE = 'LY003';\n            END IF;\n            IF NEW.lifecycle_version <> OLD.lifecycle_version + 1 THEN\n                RAISE EXCEPTION 'note_version_step' USING ERRCODE = 'LY003';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="a396672c8f8a90319186b26faced2254d7dc3460",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_note_edge_c0bd6",
                    table="archive_note",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="note",
            trigger=pgtrigger.compiler.Trigger(
                name="note_event",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    constraint="CONSTRAINT",
                    declare="DECLARE came_from text;",
                    func="\n            IF TG_OP = 'UPDATE' THEN\n                IF NEW.state = OLD.state THEN RETURN NULL; END IF;\n                came_from := OLD.state;\n            END IF;\n            IF NOT EXISTS (\n                SELECT 1 FROM public.archive_lifecycle_event e\n                 WHERE e.note_id = NEW.id AND e.to_version = NEW.lifecycle_version AND e.to_state = NEW.state\n                   AND e.from_state IS NOT DISTINCT FROM came_from) THEN\n                RAISE EXCEPTION 'note_without_event' USING ERRCODE = 'LY003';\n            END IF;\n            RETURN NULL;\n        ",
                    hash="ca91294917718f3aa61b06c6a580f2176b794167",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_note_event_3802e",
                    table="archive_note",
                    timing="DEFERRABLE INITIALLY DEFERRED",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="token",
            constraint=models.UniqueConstraint(fields=("digest",), name="token_digest"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="token",
            trigger=pgtrigger.compiler.Trigger(
                name="token",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\n            IF (to_jsonb(NEW) - ARRAY['revoked_at', 'last_used_at', 'expires_at']) IS DISTINCT FROM (to_jsonb(OLD) - ARRAY['revoked_at', 'last_used_at', 'expires_at'])\n               OR NEW.expires_at > OLD.expires_at\n               OR (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at) THEN\n                RAISE EXCEPTION 'token_fence' USING ERRCODE = 'LY001';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="fd40c125eb980b951703c285bf83eb58e6d8e60f",
                    operation="UPDATE",
                    pgid="pgtrigger_token_74c44",
                    table="lychd_token",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="token",
            trigger=pgtrigger.compiler.Trigger(
                name="nodelete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'no_delete' USING ERRCODE = 'LY004'; RETURN OLD;",
                    hash="80a02fee45bc4fce6f931264600c1f49025d58c2",
                    operation="DELETE",
                    pgid="pgtrigger_nodelete_4c01f",
                    table="lychd_token",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.RunSQL(
            # Columns that only the database reads and writes: what postings refer to, and what T-NSBIND compares.
            """
            ALTER TABLE archive_note ADD COLUMN note_number bigint GENERATED ALWAYS AS IDENTITY;
            ALTER TABLE archive_note ADD CONSTRAINT note_number_once UNIQUE (note_number);
            ALTER TABLE archive_binding_migration ADD COLUMN transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id();
            """,
            """
            ALTER TABLE archive_binding_migration DROP COLUMN transaction_id;
            ALTER TABLE archive_note DROP COLUMN note_number;
            """,
        ),
        migrations.RunSQL(
            # ANALYZE would copy values of the column into pg_statistic, where a revocation does not reach.
            "ALTER TABLE archive_note ALTER COLUMN text SET STATISTICS 0;",
            "ALTER TABLE archive_note ALTER COLUMN text SET STATISTICS -1;",
        ),
        migrations.RunSQL(
            # The catalogue of the first slice: one shared space. Start-up never writes it.
            """
            INSERT INTO archive_memory_space (id, kind, generation, lifecycle)
            VALUES ('6c796368-642d-4172-8368-697665000001', 'team_shared', 1, 'active');
            INSERT INTO lychd_role (name, actions) VALUES
                ('writer', ARRAY['intake', 'flag', 'list_own_intakes']),
                ('recaller', ARRAY['recall', 'resolve', 'flag']),
                ('curator', ARRAY['review', 'promote', 'archive', 'revoke', 'inspect_metadata']),
                ('inspector', ARRAY['discover_configuration', 'inspect_interface', 'inspect_metadata',
                                    'inspect_receipt']),
                ('operator', ARRAY['discover_configuration', 'inspect_interface', 'inspect_metadata', 'inspect_receipt',
                                   'migrate_binding', 'configure_namespace', 'grant']);
            """,
            """
            DELETE FROM lychd_role WHERE name IN ('writer', 'recaller', 'curator', 'inspector', 'operator');
            ALTER TABLE archive_memory_space DISABLE TRIGGER USER;
            DELETE FROM archive_memory_space;
            ALTER TABLE archive_memory_space ENABLE TRIGGER USER;
            """,
        ),
        migrations.RunSQL(
            # Last forwards, so first backwards: a downgrade refuses while rows would become unreadable (R-L-305).
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
