"""Memory files with every version; and what a tenant's agents read first."""

import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models

# As in 0004_unsampled_columns.
UNSAMPLED = """
ALTER TABLE memories_memoryfile ALTER COLUMN agent_id SET STATISTICS 0, ALTER COLUMN path SET STATISTICS 0,
    ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE memories_fileversion ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN reason SET STATISTICS 0;
"""


class Migration(migrations.Migration):

    dependencies = [
        ("memories", "0034_invitations"),
    ]

    operations = [
        migrations.AddField(
            model_name='tenant',
            name='file_seed',
            field=models.TextField(blank=True, help_text='What agents read in /memories/AGENTS.md until it is written. Empty: the hub’s own text.', max_length=4000, verbose_name='first text of memory files'),
        ),
        migrations.CreateModel(
            name='MemoryFile',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('agent_id', models.CharField(blank=True, help_text='Whose it is alone; empty: of requests that name no agent.', max_length=255, verbose_name='agent')),
                ('path', models.CharField(db_collation='C', max_length=1000, verbose_name='path')),
                ('content', models.TextField(blank=True, help_text='The text, or base64.')),
                ('encoding', models.CharField(choices=[('utf-8', 'Text'), ('base64', 'Binary')], default='utf-8', max_length=6)),
                ('size', models.PositiveIntegerField(default=0, help_text='Bytes, in UTF-8.', verbose_name='size')),
                ('version', models.PositiveIntegerField(default=1, verbose_name='version')),
                ('locked', models.BooleanField(default=False, help_text='By an operator: no key changes it.', verbose_name='locked')),
                ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], max_length=8, verbose_name='written by')),
                ('trust', models.CharField(choices=[('operator', 'Operator'), ('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool')], help_text='Of whoever wrote it last.', max_length=9, verbose_name='trust')),
                ('created_at', models.DateTimeField(verbose_name='created')),
                ('updated_at', models.DateTimeField(verbose_name='changed')),
                ('expires_at', models.DateTimeField(blank=True, help_text='Of scratch files.', null=True)),
                ('trashed_at', models.DateTimeField(blank=True, help_text='Since when it is deleted.', null=True)),
                ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='files', to='memories.enduser', verbose_name='end user')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
            ],
            options={
                'default_permissions': ('view', 'change'),
                'verbose_name': 'memory file',
                'verbose_name_plural': 'memory files',
                'ordering': ['path'],
            },
        ),
        migrations.CreateModel(
            name='FileVersion',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('version', models.PositiveIntegerField(verbose_name='version')),
                ('verb', models.CharField(choices=[('write', 'Written'), ('edit', 'Edited'), ('upload', 'Uploaded'), ('restore', 'Restored'), ('delete', 'Deleted')], max_length=7, verbose_name='change')),
                ('content', models.TextField(blank=True, help_text='As of a file; of a deletion empty.')),
                ('encoding', models.CharField(choices=[('utf-8', 'Text'), ('base64', 'Binary')], default='utf-8', max_length=6)),
                ('size', models.PositiveIntegerField(default=0)),
                ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], max_length=8)),
                ('actor_id', models.CharField(blank=True, max_length=36)),
                ('trust', models.CharField(choices=[('operator', 'Operator'), ('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool')], max_length=9)),
                ('reason', models.TextField(blank=True, max_length=2000)),
                ('restored', models.PositiveIntegerField(blank=True, help_text='The version whose text it has again.', null=True)),
                ('created_at', models.DateTimeField(verbose_name='time')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                ('file', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='memories.memoryfile')),
            ],
            options={
                'default_permissions': (),
                'verbose_name': 'version of a memory file',
                'verbose_name_plural': 'versions of memory files',
                'ordering': ['-version'],
            },
        ),
        migrations.AddIndex(
            model_name='memoryfile',
            index=models.Index(condition=models.Q(('trashed_at__isnull', False)), fields=['tenant', 'trashed_at', 'id'], name='memory_file_trash_idx'),
        ),
        migrations.AddIndex(
            model_name='memoryfile',
            index=models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['tenant', 'expires_at', 'id'], name='memory_file_expires_idx'),
        ),
        migrations.AddConstraint(
            model_name='memoryfile',
            constraint=models.UniqueConstraint(fields=('end_user', 'tenant', 'agent_id', 'path'), name='memory_file_once'),
        ),
        migrations.AddConstraint(
            model_name='memoryfile',
            constraint=models.CheckConstraint(condition=models.Q(('path__startswith', '/')), name='memory_file_path_is_absolute'),
        ),
        migrations.AddConstraint(
            model_name='memoryfile',
            constraint=models.CheckConstraint(condition=models.Q(('version__gte', 1)), name='memory_file_version_from_1'),
        ),
        migrations.AddIndex(
            model_name='fileversion',
            index=models.Index(fields=['actor_id'], name='file_version_actor_idx'),
        ),
        migrations.AddConstraint(
            model_name='fileversion',
            constraint=models.UniqueConstraint(fields=('file', 'tenant', 'version'), name='file_version_once'),
        ),
        migrations.AddConstraint(
            model_name='fileversion',
            constraint=models.CheckConstraint(condition=models.Q(('restored__isnull', True), ('restored__lt', models.F('version')), _connector='OR'), name='file_version_restores_older'),
        ),
        migrations.AlterField(
            model_name='change',
            name='table',
            field=models.CharField(choices=[('fact', 'Fact'), ('episode', 'Episode'), ('section', 'Section'), ('evidence', 'Evidence'), ('relation', 'Relation'), ('refusal', 'Refusal'), ('person', 'Person'), ('key', 'Key'), ('session', 'Session'), ('file', 'File'), ('revision', 'Revision'), ('summary', 'Summary')], editable=False, max_length=8),
        ),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
    ]
