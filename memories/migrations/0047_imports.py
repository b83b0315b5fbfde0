"""Imports of uploaded files: the jobs, the files in pieces, and what each import made."""

import django.db.models.deletion
from django.db import migrations, models

import memories.models.ids
from memories.db.together import Together
from memories.models.access.roles import grant

# As in 0044: what is compressed is not compressed again; samples of values would outlive an erasure.
STORED = """
ALTER TABLE memories_importpiece ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN content SET STORAGE EXTERNAL;
ALTER TABLE memories_import ALTER COLUMN options SET STATISTICS 0, ALTER COLUMN preview SET STATISTICS 0;
"""
# As 0029 does for every reference between rows of tenants.
OF_TENANT = """
ALTER TABLE memories_import ADD CONSTRAINT import_of_tenant UNIQUE (tenant_id, id);
ALTER TABLE memories_importpiece ADD CONSTRAINT importpiece_part_of_of_tenant
    FOREIGN KEY (tenant_id, part_of_id) REFERENCES memories_import (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE memories_importedrow ADD CONSTRAINT importedrow_made_by_of_tenant
    FOREIGN KEY (tenant_id, made_by_id) REFERENCES memories_import (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE memories_importedrow ADD CONSTRAINT importedrow_end_user_of_tenant
    FOREIGN KEY (tenant_id, end_user_id) REFERENCES memories_enduser (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
"""
NOT_OF_TENANT = """
ALTER TABLE memories_importedrow DROP CONSTRAINT importedrow_end_user_of_tenant;
ALTER TABLE memories_importedrow DROP CONSTRAINT importedrow_made_by_of_tenant;
ALTER TABLE memories_importpiece DROP CONSTRAINT importpiece_part_of_of_tenant;
ALTER TABLE memories_import DROP CONSTRAINT import_of_tenant;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0046_person_page'),
    ]

    operations = [
        Together([
            migrations.CreateModel(
                name='Import',
                fields=[
                    ('lease_token', models.UUIDField(editable=False, null=True)),
                    ('lease_until', models.DateTimeField(editable=False, help_text='Nobody else claims it before; without a token it is a pause.', null=True)),
                    ('attempts', models.PositiveIntegerField(default=0, editable=False, help_text='Claims since it last got on.')),
                    ('failure', models.CharField(blank=True, editable=False, help_text='Code of the last failure.', max_length=40)),
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('state', models.CharField(choices=[('checking', 'Being checked'), ('checked', 'Checked'), ('running', 'Running'), ('paused', 'Paused'), ('done', 'Done'), ('failed', 'Failed'), ('undoing', 'Being undone'), ('undone', 'Undone')], default='checking', max_length=8, verbose_name='status')),
                    ('source', models.CharField(blank=True, help_text='Empty: not recognised yet.', max_length=20, verbose_name='source')),
                    ('size', models.PositiveBigIntegerField(default=0, help_text='Bytes of the file.', verbose_name='size')),
                    ('kept_until', models.DateTimeField(help_text='When its file is deleted at the latest; null: it is gone.', null=True)),
                    ('options', models.JSONField(default=dict, help_text='Whose it is, and how it is read.')),
                    ('preview', models.JSONField(default=dict, help_text='Of the dry run: people, times, samples.')),
                    ('position', models.PositiveBigIntegerField(default=0, help_text='Records of the file that were taken.')),
                    ('expected', models.PositiveBigIntegerField(default=0, help_text='How many there are; 0: nobody knows yet.')),
                    ('counts', models.JSONField(default=dict, help_text='Outcome → how many.')),
                    ('left_out', models.JSONField(default=dict, help_text='Reason → how many.')),
                    ('refused', models.JSONField(default=dict, help_text='Code → how many.')),
                    ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], help_text='Who uploaded it.', max_length=8)),
                    ('actor_id', models.CharField(blank=True, max_length=36)),
                    ('created_at', models.DateTimeField(verbose_name='uploaded')),
                    ('started_at', models.DateTimeField(null=True)),
                    ('finished_at', models.DateTimeField(null=True)),
                    ('undone_at', models.DateTimeField(null=True)),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'import',
                    'verbose_name_plural': 'imports',
                    'ordering': ['-created_at', '-id'],
                    'default_permissions': ('view', 'add', 'change'),
                    'indexes': [models.Index(fields=['tenant', '-created_at'], name='import_newest_idx'), models.Index(condition=models.Q(('state__in', ['checking', 'running', 'undoing'])), fields=['lease_until'], name='import_running_idx'), models.Index(condition=models.Q(('kept_until__isnull', False)), fields=['kept_until'], name='import_kept_idx')],
                },
            ),
            migrations.CreateModel(
                name='ImportedRow',
                fields=[
                    ('id', models.BigAutoField(primary_key=True, serialize=False)),
                    ('kind', models.CharField(choices=[('turns', 'Messages'), ('left', 'Messages of a branch that was left'), ('back', 'Messages of a branch that was taken back'), ('fact', 'Facts'), ('section', 'Sections of profiles'), ('file', 'Memory files'), ('item', 'Store items')], max_length=7)),
                    ('row', models.UUIDField()),
                    ('first', models.PositiveIntegerField(default=0)),
                    ('last', models.PositiveIntegerField(default=0)),
                    ('at', models.DateTimeField(help_text='Of an item: when it was last written then.', null=True)),
                    ('end_user', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.enduser')),
                    ('made_by', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='rows', to='memories.import')),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
                ],
                options={
                    'verbose_name': 'imported row',
                    'verbose_name_plural': 'imported rows',
                    'ordering': ['id'],
                    'default_permissions': (),
                    'indexes': [models.Index(fields=['made_by', 'kind', 'id'], name='imported_row_made_idx'), models.Index(fields=['end_user', 'made_by'], name='imported_row_person_idx')],
                },
            ),
            migrations.CreateModel(
                name='ImportPiece',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('number', models.PositiveIntegerField(help_text='From 0, in the order of the file.')),
                    ('content', models.BinaryField(editable=False)),
                    ('part_of', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pieces', to='memories.import')),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
                ],
                options={
                    'verbose_name': 'piece of an import',
                    'verbose_name_plural': 'pieces of imports',
                    'ordering': ['part_of', 'number'],
                    'default_permissions': (),
                    'constraints': [models.UniqueConstraint(fields=('part_of', 'number', 'tenant'), name='import_piece_once')],
                },
            ),
        ]),
        migrations.RunSQL(STORED, migrations.RunSQL.noop),
        migrations.RunSQL(OF_TENANT, NOT_OF_TENANT),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
