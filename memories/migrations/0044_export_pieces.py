"""Exports lie in pieces of some megabytes: one row of a large file could be neither written nor read.

Stop all hosts: an older one looks for the column that goes.
"""

import django.db.models.deletion
from django.db import migrations, models

import memories.models.ids
from memories.db.together import Together

PIECE_BYTES = 4 << 20
IN_PIECES = f"""
INSERT INTO memories_privacyexportpiece (id, tenant_id, export_id, number, content)
SELECT gen_random_uuid(), tenant_id, export.id, number, substring(content FROM number * {PIECE_BYTES} + 1 FOR {PIECE_BYTES})
FROM memories_privacyexport export, generate_series(0, (length(content) - 1) / {PIECE_BYTES}) number
WHERE length(content) > 0;
"""
IN_ONE = """
UPDATE memories_privacyexport export SET content = pieces.content
FROM (
    SELECT export_id, string_agg(content, ''::bytea ORDER BY number) AS content
    FROM memories_privacyexportpiece GROUP BY export_id
) pieces
WHERE pieces.export_id = export.id;
"""
# As in 0004_unsampled_columns; and what is compressed once is not compressed again.
STORED = """
ALTER TABLE memories_privacyexportpiece ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN content SET STORAGE EXTERNAL;
"""
# As 0029 does for every reference between rows of tenants.
OF_TENANT = """
ALTER TABLE memories_privacyexport ADD CONSTRAINT privacyexport_of_tenant UNIQUE (tenant_id, id);
ALTER TABLE memories_privacyexportpiece ADD CONSTRAINT privacyexportpiece_export_of_tenant
    FOREIGN KEY (tenant_id, export_id) REFERENCES memories_privacyexport (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
"""
NOT_OF_TENANT = """
ALTER TABLE memories_privacyexportpiece DROP CONSTRAINT privacyexportpiece_export_of_tenant;
ALTER TABLE memories_privacyexport DROP CONSTRAINT privacyexport_of_tenant;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0043_sent_blocks'),
    ]

    operations = [
        migrations.CreateModel(
            name='PrivacyExportPiece',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField(help_text='From 0, in the order of the file.')),
                ('content', models.BinaryField(editable=False)),
                ('export', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pieces', to='memories.privacyexport')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
            ],
            options={
                'verbose_name': 'piece of an export',
                'verbose_name_plural': 'pieces of exports',
                'ordering': ['export', 'number'],
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('export', 'number', 'tenant'), name='export_piece_once')],
            },
        ),
        migrations.RunSQL(STORED, migrations.RunSQL.noop),
        migrations.RunSQL(IN_PIECES, IN_ONE),
        Together([
            migrations.RemoveConstraint(model_name='privacyexport', name='export_gone_is_empty'),
            migrations.RemoveField(model_name='privacyexport', name='content'),
        ]),
        migrations.RunSQL(OF_TENANT, NOT_OF_TENANT),
    ]
