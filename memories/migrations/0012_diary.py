"""The diary: what agents note for themselves. Its table keeps no samples, and its texts go with the log of contexts."""

import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models

from memories.db.together import Together
from memories.models.access.roles import grant

# As in 0004_unsampled_columns.
UNSAMPLED = """
ALTER TABLE memories_diaryentry ALTER COLUMN agent_id SET STATISTICS 0, ALTER COLUMN topic SET STATISTICS 0,
    ALTER COLUMN content SET STATISTICS 0;
"""
# An entry that is deleted for good takes the texts of logged contexts along that repeat it.
FORGET = """
CREATE TRIGGER logged_texts_of_diary AFTER DELETE ON memories_diaryentry
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
"""
KEEP = "DROP TRIGGER logged_texts_of_diary ON memories_diaryentry"


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0011_files_store_and_log'),
    ]

    operations = [
        Together([
            migrations.AlterField(
                model_name='change',
                name='table',
                field=models.CharField(choices=[('fact', 'Fact'), ('episode', 'Episode'), ('section', 'Section'), ('evidence', 'Evidence'), ('relation', 'Relation'), ('refusal', 'Refusal'), ('person', 'Person'), ('key', 'Key'), ('session', 'Session'), ('file', 'File'), ('diary', 'Diary'), ('revision', 'Revision'), ('summary', 'Summary')], editable=False, max_length=8),
            ),
            migrations.AlterField(
                model_name='retentionpass',
                name='counts',
                field=models.JSONField(blank=True, default=dict, help_text='turns, sessions, episodes, runs, audit, exports, contexts, store, diary.'),
            ),
            migrations.AlterField(
                model_name='retentionpass',
                name='stage',
                field=models.CharField(choices=[('turns', 'Turns'), ('episodes', 'Episodes'), ('runs', 'Runs'), ('audit', 'Audit events'), ('exports', 'Exports'), ('contexts', 'Log of contexts'), ('store', 'Items of the store'), ('diary', 'Diary entries')], default='turns', max_length=8),
            ),
            migrations.CreateModel(
                name='DiaryEntry',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('agent_id', models.CharField(blank=True, editable=False, help_text='Whose diary it is; empty: of requests that name no agent.', max_length=255, verbose_name='agent')),
                    ('topic', models.CharField(blank=True, editable=False, max_length=100, verbose_name='topic')),
                    ('content', models.TextField(editable=False, verbose_name='text')),
                    ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], editable=False, max_length=8, verbose_name='written by')),
                    ('actor_id', models.CharField(blank=True, editable=False, max_length=36)),
                    ('trust', models.CharField(choices=[('operator', 'Operator'), ('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool')], editable=False, max_length=9, verbose_name='trust')),
                    ('created_at', models.DateTimeField(editable=False, verbose_name='time')),
                    ('trashed_at', models.DateTimeField(editable=False, help_text='Since when it is deleted.', null=True)),
                    ('change_set', models.UUIDField(editable=False, help_text='That deleted it with other memories, such as a roll back.', null=True)),
                    ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='diary', to='memories.enduser', verbose_name='end user')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'diary entry',
                    'verbose_name_plural': 'diary entries',
                    'ordering': ['-created_at', '-id'],
                    'default_permissions': ('view', 'change'),
                    'indexes': [models.Index(fields=['end_user', 'tenant', 'agent_id', '-created_at', '-id'], name='diary_entry_newest_idx'), models.Index(fields=['-created_at', '-id'], name='diary_entry_time_idx'), models.Index(fields=['tenant', 'created_at', 'id'], name='diary_entry_old_idx'), models.Index(fields=['actor_id'], name='diary_entry_actor_idx'), models.Index(condition=models.Q(('trashed_at__isnull', False)), fields=['tenant', 'trashed_at', 'id'], name='diary_entry_trash_idx'), models.Index(condition=models.Q(('change_set__isnull', False)), fields=['change_set'], name='diary_entry_change_set_idx')],
                    'constraints': [models.CheckConstraint(condition=models.Q(('change_set', None), ('trashed_at__isnull', False), _connector='OR'), name='diary_entry_change_set_deletes')],
                },
            ),
        ]),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunSQL(FORGET, KEEP),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
