"""The store: values under namespaces and keys, and which namespaces are people's."""

import django.contrib.postgres.fields
import django.db.models.deletion
import memories.models.ids
import memories.models.people.tenants
import pgvector.django.halfvec
from django.db import migrations, models

from memories.models.access.roles import grant

# As in 0003_cascades_and_storage.
CASCADE = """
ALTER TABLE memories_storeitemvector ADD CONSTRAINT store_item_vector_of_item
    FOREIGN KEY (item_id) REFERENCES memories_storeitem (id) ON DELETE CASCADE;
"""
NO_CASCADE = "ALTER TABLE memories_storeitemvector DROP CONSTRAINT store_item_vector_of_item"
# As in 0004_unsampled_columns.
UNSAMPLED = """
ALTER TABLE memories_storeitem ALTER COLUMN namespace SET STATISTICS 0, ALTER COLUMN key SET STATISTICS 0,
    ALTER COLUMN value SET STATISTICS 0, ALTER COLUMN index_paths SET STATISTICS 0,
    ALTER COLUMN content_hash SET STATISTICS 0, ALTER COLUMN embedded_hash SET STATISTICS 0;
ALTER TABLE memories_storeitemvector ALTER COLUMN text_digest SET STATISTICS 0, ALTER COLUMN vector SET STATISTICS 0;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memories', "0035_memory_files"),
    ]

    operations = [
        migrations.AddField(
            model_name='tenant',
            name='person_namespaces',
            field=models.JSONField(blank=True, default=memories.models.people.tenants.person_namespaces, help_text='Which label of a namespace of the store is an end user’s id, one pattern per line: memories.{user_id}. The first pattern that a namespace begins with decides. What names nobody belongs to the tenant.', verbose_name='namespaces of people'),
        ),
        migrations.CreateModel(
            name='StoreItem',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('namespace', models.TextField(db_collation='C', editable=False, help_text='The labels, joined by periods; none contains one.', verbose_name='namespace')),
                ('key', models.TextField(db_collation='C', editable=False, verbose_name='key')),
                ('value', models.JSONField(editable=False, verbose_name='value')),
                ('index_paths', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), editable=False, help_text='What of the value is embedded; null: all of it, empty: nothing.', null=True, size=None)),
                ('content_hash', models.BinaryField(help_text='SHA-256 of the texts to embed; null: there are none.', max_length=32, null=True)),
                ('embedded_hash', models.BinaryField(help_text='The content_hash that the embedder has last handled.', max_length=32, null=True)),
                ('ttl_minutes', models.FloatField(editable=False, help_text='It expires so long after it was last read.', null=True)),
                ('expires_at', models.DateTimeField(editable=False, null=True, verbose_name='expires')),
                ('key_id', models.UUIDField(editable=False, help_text='Of the API key that wrote it last.', null=True)),
                ('created_at', models.DateTimeField(editable=False, verbose_name='created')),
                ('updated_at', models.DateTimeField(editable=False, verbose_name='updated')),
                ('end_user', models.ForeignKey(db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='store_items', to='memories.enduser', verbose_name='end user')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
            ],
            options={
                'verbose_name': 'store item',
                'verbose_name_plural': 'store items',
                'ordering': ['-updated_at', '-id'],
                'default_permissions': ('view', 'change', 'delete'),
            },
        ),
        migrations.CreateModel(
            name='StoreItemVector',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('place', models.PositiveSmallIntegerField()),
                ('text_digest', models.BinaryField(help_text="The item's content_hash when it was made.", max_length=32)),
                ('vector', pgvector.django.halfvec.HalfVectorField()),
                ('item', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='vectors', to='memories.storeitem')),
                ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='memories.embeddingspace')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
            ],
            options={
                'verbose_name': 'store item vector',
                'verbose_name_plural': 'store item vectors',
                'default_permissions': (),
            },
        ),
        migrations.AddIndex(
            model_name='storeitem',
            index=models.Index(fields=['tenant', '-updated_at', '-id'], name='store_item_newest_idx'),
        ),
        migrations.AddIndex(
            model_name='storeitem',
            index=models.Index(fields=['end_user'], name='store_item_person_idx'),
        ),
        migrations.AddIndex(
            model_name='storeitem',
            index=models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['expires_at'], name='store_item_expires_idx'),
        ),
        migrations.AddIndex(
            model_name='storeitem',
            index=models.Index(condition=models.Q(('content_hash__isnull', False), models.Q(('embedded_hash', None), models.Q(('embedded_hash', models.F('content_hash')), _negated=True), _connector='OR')), fields=['tenant', '-updated_at'], name='store_item_unembedded_idx'),
        ),
        migrations.AddConstraint(
            model_name='storeitem',
            constraint=models.UniqueConstraint(fields=('tenant', 'namespace', 'key'), name='store_item_once'),
        ),
        migrations.AddConstraint(
            model_name='storeitemvector',
            constraint=models.UniqueConstraint(fields=('item', 'space', 'place'), name='store_item_vector_once'),
        ),
        migrations.AlterField(
            model_name="retentionpass",
            name="counts",
            field=models.JSONField(
                blank=True, default=dict, help_text="turns, sessions, episodes, runs, audit, exports, contexts, store."
            ),
        ),
        migrations.AlterField(
            model_name="retentionpass",
            name="stage",
            field=models.CharField(
                choices=[
                    ("turns", "Turns"),
                    ("episodes", "Episodes"),
                    ("runs", "Runs"),
                    ("audit", "Audit events"),
                    ("exports", "Exports"),
                    ("contexts", "Log of contexts"),
                    ("store", "Items of the store"),
                ],
                default="turns",
                max_length=8,
            ),
        ),
        migrations.RunSQL(CASCADE, NO_CASCADE),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
