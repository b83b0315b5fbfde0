"""Groups of people, their members, and facts that rest on what members said. Texts go with the log of contexts."""

import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models

from memories.db.together import Together
from memories.models.access.roles import grant

# Samples of columns with personal data would outlive an erasure.
UNSAMPLED = """
ALTER TABLE memories_memorygroup ALTER COLUMN name SET STATISTICS 0;
ALTER TABLE memories_groupfact ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN content_hash SET STATISTICS 0;
ALTER TABLE memories_groupevidence ALTER COLUMN agent_id SET STATISTICS 0;
"""
# A fact that is deleted for good takes the texts of logged contexts along that repeat it.
FORGET = """
CREATE TRIGGER logged_texts_of_groups AFTER DELETE ON memories_groupfact
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
"""
KEEP = "DROP TRIGGER logged_texts_of_groups ON memories_groupfact"


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0018_doubted_dreams'),
    ]

    operations = [
        Together([
            migrations.AlterField(
                model_name='change',
                name='table',
                field=models.CharField(choices=[('fact', 'Fact'), ('episode', 'Episode'), ('section', 'Section'), ('evidence', 'Evidence'), ('relation', 'Relation'), ('refusal', 'Refusal'), ('person', 'Person'), ('key', 'Key'), ('session', 'Session'), ('file', 'File'), ('diary', 'Diary'), ('triple', 'Triple'), ('entity', 'Entity'), ('member', 'Member'), ('said', 'Said'), ('shared', 'Shared'), ('revision', 'Revision'), ('summary', 'Summary')], editable=False, max_length=8),
            ),
            migrations.CreateModel(
                name='MemoryGroup',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(blank=True, help_text='Empty after its only member was erased.', max_length=100, verbose_name='name')),
                    ('kind', models.CharField(choices=[('team', 'Team'), ('project', 'Project'), ('household', 'Household'), ('other', 'Other')], default='team', max_length=9, verbose_name='kind')),
                    ('created_at', models.DateTimeField(editable=False, verbose_name='created')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'group of people',
                    'verbose_name_plural': 'groups of people',
                    'ordering': ['-created_at', '-id'],
                    'default_permissions': ('view', 'change'),
                    'indexes': [models.Index(fields=['tenant', '-created_at', '-id'], name='memory_group_newest_idx')],
                },
            ),
            migrations.CreateModel(
                name='GroupMember',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('may_write', models.BooleanField(default=True, help_text='Whether what they say becomes a fact.', verbose_name='may write')),
                    ('created_at', models.DateTimeField(editable=False, verbose_name='since')),
                    ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='memories.enduser', verbose_name='end user')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                    ('group', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='members', to='memories.memorygroup')),
                ],
                options={
                    'verbose_name': 'member of a group',
                    'verbose_name_plural': 'members of groups',
                    'ordering': ['created_at', 'id'],
                    'default_permissions': (),
                    'indexes': [models.Index(fields=['end_user', 'tenant'], name='group_member_person_idx')],
                    'constraints': [models.UniqueConstraint(fields=('group', 'tenant', 'end_user'), name='group_member_once')],
                },
            ),
            migrations.CreateModel(
                name='GroupFact',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('content', models.TextField(editable=False, verbose_name='text')),
                    ('content_hash', models.BinaryField()),
                    ('created_at', models.DateTimeField(editable=False, verbose_name='first said')),
                    ('said_at', models.DateTimeField(editable=False, verbose_name='last said')),
                    ('trashed_at', models.DateTimeField(editable=False, help_text='Since when it is deleted.', null=True)),
                    ('about', models.ForeignKey(db_index=False, help_text='The person whom it is about: it goes with them, whoever said it.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='group_facts', to='memories.enduser', verbose_name='about')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                    ('group', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='facts', to='memories.memorygroup')),
                ],
                options={
                    'verbose_name': 'fact of a group',
                    'verbose_name_plural': 'facts of groups',
                    'ordering': ['-said_at', '-id'],
                    'default_permissions': (),
                    'indexes': [models.Index(fields=['group', '-said_at', '-id'], name='group_fact_newest_idx'), models.Index(condition=models.Q(('about__isnull', False)), fields=['about'], name='group_fact_about_idx'), models.Index(condition=models.Q(('trashed_at__isnull', False)), fields=['tenant', 'trashed_at', 'id'], name='group_fact_trash_idx')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('trashed_at', None)), fields=('group', 'tenant', 'content_hash', 'about'), name='group_fact_once', nulls_distinct=False)],
                },
            ),
            migrations.CreateModel(
                name='GroupEvidence',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('agent_id', models.CharField(blank=True, editable=False, max_length=255, verbose_name='agent')),
                    ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], editable=False, max_length=8, verbose_name='written by')),
                    ('actor_id', models.CharField(blank=True, editable=False, max_length=36)),
                    ('trust', models.CharField(choices=[('operator', 'Operator'), ('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool')], editable=False, max_length=9, verbose_name='trust')),
                    ('created_at', models.DateTimeField(editable=False, verbose_name='first said')),
                    ('said_at', models.DateTimeField(editable=False, verbose_name='last said')),
                    ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='said_in_groups', to='memories.enduser', verbose_name='end user')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                    ('fact', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='evidence', to='memories.groupfact')),
                ],
                options={
                    'verbose_name': "evidence of a group's fact",
                    'verbose_name_plural': "evidence of groups' facts",
                    'ordering': ['created_at', 'id'],
                    'default_permissions': (),
                    'indexes': [models.Index(fields=['end_user'], name='group_evidence_person_idx')],
                    'constraints': [models.UniqueConstraint(fields=('fact', 'tenant', 'end_user'), name='group_evidence_once')],
                },
            ),
        ]),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunSQL(FORGET, KEEP),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
