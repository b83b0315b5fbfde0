"""The content policy of a tenant, the counts of what it dropped, and dry runs over what is stored."""

import django.db.models.deletion
from django.db import migrations, models

import memories.models.ids

from memories.db.together import Together

# As 0029 does for every reference between rows of tenants.
OF_TENANT = """
ALTER TABLE memories_policytrial ADD CONSTRAINT policytrial_of_tenant UNIQUE (tenant_id, id);
ALTER TABLE memories_policyfinding ADD CONSTRAINT policyfinding_trial_of_tenant
    FOREIGN KEY (tenant_id, trial_id) REFERENCES memories_policytrial (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE memories_policyfinding ADD CONSTRAINT policyfinding_end_user_of_tenant
    FOREIGN KEY (tenant_id, end_user_id) REFERENCES memories_enduser (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
"""
NOT_OF_TENANT = """
ALTER TABLE memories_policyfinding DROP CONSTRAINT policyfinding_end_user_of_tenant;
ALTER TABLE memories_policyfinding DROP CONSTRAINT policyfinding_trial_of_tenant;
ALTER TABLE memories_policytrial DROP CONSTRAINT policytrial_of_tenant;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0047_imports'),
    ]

    operations = [
        Together([
            migrations.AddField(
                model_name='tenant',
                name='policy_version',
                field=models.PositiveIntegerField(default=0, editable=False, help_text='Of its content policy; 0: it has none, and texts cost no statement.'),
            ),
            migrations.CreateModel(
                name='PolicyTrial',
                fields=[
                    ('lease_token', models.UUIDField(editable=False, null=True)),
                    ('lease_until', models.DateTimeField(editable=False, help_text='Nobody else claims it before; without a token it is a pause.', null=True)),
                    ('attempts', models.PositiveIntegerField(default=0, editable=False, help_text='Claims since it last got on.')),
                    ('failure', models.CharField(blank=True, editable=False, help_text='Code of the last failure.', max_length=40)),
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('categories', models.JSONField()),
                    ('kind', models.CharField(blank=True, help_text='The kind of memory that is read now.', max_length=12)),
                    ('reached', models.UUIDField(help_text='The last row of that kind that was read.', null=True)),
                    ('seen', models.PositiveIntegerField(default=0, help_text='Memories that were read.')),
                    ('total', models.PositiveIntegerField(default=0, help_text='Memories that there were when it began.')),
                    ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8)),
                    ('actor_id', models.CharField(blank=True, max_length=36)),
                    ('created_at', models.DateTimeField()),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('batch', models.UUIDField(help_text='Of the change sets that deleted what it found.', null=True)),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                ],
                options={
                    'ordering': ['-created_at', '-id'],
                    'default_permissions': (),
                    'indexes': [models.Index(fields=['tenant', '-created_at'], name='policy_trial_newest_idx')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('tenant',), name='policy_trial_alone')],
                },
            ),
            migrations.CreateModel(
                name='PolicyFinding',
                fields=[
                    ('id', models.BigAutoField(primary_key=True, serialize=False)),
                    ('kind', models.CharField(max_length=12)),
                    ('row', models.UUIDField()),
                    ('category', models.CharField(max_length=60)),
                    ('end_user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.enduser')),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
                    ('trial', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='findings', to='memories.policytrial')),
                ],
                options={
                    'verbose_name': 'finding of a dry run',
                    'verbose_name_plural': 'findings of dry runs',
                    'ordering': ['id'],
                    'default_permissions': (),
                    'constraints': [models.UniqueConstraint(fields=('trial', 'kind', 'row', 'tenant'), name='policy_finding_once')],
                },
            ),
            migrations.CreateModel(
                name='ContentPolicy',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('version', models.PositiveIntegerField(verbose_name='version')),
                    ('categories', models.JSONField(help_text='As content_policy/categories.py writes them.', verbose_name='categories')),
                    ('changes', models.JSONField(default=dict, help_text='Names of the categories that it added, changed and removed.')),
                    ('restored', models.PositiveIntegerField(help_text='The version that it repeats.', null=True, verbose_name='restored version')),
                    ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8)),
                    ('actor_id', models.CharField(blank=True, max_length=36)),
                    ('created_at', models.DateTimeField(verbose_name='time')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'content policy',
                    'verbose_name_plural': 'content policies',
                    'ordering': ['-version'],
                    'default_permissions': (),
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'version'), name='content_policy_once')],
                },
            ),
            migrations.CreateModel(
                name='PolicyDrop',
                fields=[
                    ('id', models.BigAutoField(primary_key=True, serialize=False)),
                    ('day', models.DateField(verbose_name='day')),
                    ('version', models.PositiveIntegerField(verbose_name='version')),
                    ('category', models.CharField(max_length=60, verbose_name='category')),
                    ('road', models.CharField(choices=[('extraction', 'Extraction'), ('statement', 'A statement of a fact'), ('profile', 'Profile'), ('episode', 'Episodes and summaries'), ('document', 'A memory document'), ('file', 'Memory files'), ('diary', 'Diary'), ('group', 'Groups'), ('graph', 'Graph'), ('store', 'Store'), ('upkeep', 'Reflections and upkeep')], max_length=10, verbose_name='road')),
                    ('count', models.PositiveIntegerField(verbose_name='texts')),
                    ('last_at', models.DateTimeField(verbose_name='last')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                ],
                options={
                    'ordering': ['-day', 'category', 'road'],
                    'default_permissions': (),
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'day', 'version', 'category', 'road'), name='policy_drop_once')],
                },
            ),
        ]),
        migrations.RunSQL(OF_TENANT, NOT_OF_TENANT),
    ]
