"""Dreams, their edits, and which episodes were dreamt of; a tenant's guide and model for them."""

import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models

from memories.db.together import Together
from memories.models.access.roles import grant

# Samples of columns with personal data would outlive an erasure.
UNSAMPLED = """
ALTER TABLE memories_dream ALTER COLUMN agent_id SET STATISTICS 0, ALTER COLUMN summary SET STATISTICS 0;
ALTER TABLE memories_dreamedit ALTER COLUMN path SET STATISTICS 0, ALTER COLUMN old_text SET STATISTICS 0,
    ALTER COLUMN new_text SET STATISTICS 0;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0014_temporal_graph'),
    ]

    operations = [
        Together([
            migrations.AddField(
                model_name='tenant',
                name='dream_guide',
                field=models.TextField(blank=True, help_text='Instructions to the model on what belongs in the memory files. They are sent with every dream.', max_length=4000, verbose_name='guide for dreams'),
            ),
            migrations.AddField(
                model_name='tenant',
                name='dream_model',
                field=models.CharField(blank=True, help_text='Name of another model at the same endpoint. Empty: the one that extracts.', max_length=100, verbose_name='model of dreams'),
            ),
            migrations.AlterField(
                model_name='agent',
                name='extraction_off_by',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], editable=False, help_text='Who switched extraction off.', max_length=8),
            ),
            migrations.AlterField(
                model_name='agent',
                name='guidance_by',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], editable=False, help_text='Who wrote the guidance last.', max_length=8),
            ),
            migrations.AlterField(
                model_name='agent',
                name='recall_off_by',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], editable=False, help_text='Who switched recall off.', max_length=8),
            ),
            migrations.AlterField(
                model_name='auditevent',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], max_length=8, verbose_name='by'),
            ),
            migrations.AlterField(
                model_name='changeset',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], editable=False, max_length=8),
            ),
            migrations.AlterField(
                model_name='diaryentry',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], editable=False, max_length=8, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='enduser',
                name='capture_off_by',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], editable=False, help_text='Who switched capture off.', max_length=8),
            ),
            migrations.AlterField(
                model_name='enduser',
                name='serve_off_by',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], editable=False, help_text='Who switched serve off.', max_length=8),
            ),
            migrations.AlterField(
                model_name='factrefusal',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], default='operator', max_length=8),
            ),
            migrations.AlterField(
                model_name='factrevision',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], max_length=8),
            ),
            migrations.AlterField(
                model_name='fileversion',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], max_length=8),
            ),
            migrations.AlterField(
                model_name='graphtriple',
                name='actor_kind',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], editable=False, max_length=8, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='memoryfile',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], max_length=8, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='modeluse',
                name='purpose',
                field=models.CharField(choices=[('summaries', 'Summaries'), ('upkeep', 'Upkeep'), ('dreams', 'Dreams')], max_length=16),
            ),
            migrations.AlterField(
                model_name='privacycase',
                name='approved_kind',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], max_length=8),
            ),
            migrations.AlterField(
                model_name='privacycase',
                name='opened_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], max_length=8),
            ),
            migrations.AlterField(
                model_name='privacycase',
                name='verified_kind',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], max_length=8),
            ),
            migrations.AlterField(
                model_name='profilerevision',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], max_length=8),
            ),
            migrations.AlterField(
                model_name='profilesection',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], max_length=8),
            ),
            migrations.AlterField(
                model_name='reviewnote',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], editable=False, max_length=8),
            ),
            migrations.CreateModel(
                name='Dream',
                fields=[
                    ('lease_token', models.UUIDField(editable=False, null=True)),
                    ('lease_until', models.DateTimeField(editable=False, help_text='Nobody else claims it before; without a token it is a pause.', null=True)),
                    ('attempts', models.PositiveIntegerField(default=0, editable=False, help_text='Claims since it last got on.')),
                    ('failure', models.CharField(blank=True, editable=False, help_text='Code of the last failure.', max_length=40)),
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('agent_id', models.CharField(blank=True, help_text='Whose episodes and files; empty: of those without an agent.', max_length=255, verbose_name='agent')),
                    ('trigger', models.CharField(choices=[('schedule', 'Schedule'), ('hand', 'By hand')], max_length=8, verbose_name='started by')),
                    ('actor_kind', models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link')], help_text='Who asked for it.', max_length=8)),
                    ('actor_id', models.CharField(blank=True, max_length=36)),
                    ('state', models.CharField(choices=[('running', 'Running'), ('waiting', 'Waiting for approval'), ('applied', 'Applied'), ('unchanged', 'Nothing changed'), ('declined', 'Declined'), ('restored', 'Taken back'), ('failed', 'Failed')], default='running', max_length=9, verbose_name='status')),
                    ('episodes', models.PositiveIntegerField(default=0, help_text='How many it read.', verbose_name='episodes')),
                    ('summary', models.TextField(blank=True, help_text='What changed, in lines of each file; made by code.')),
                    ('extractor', models.CharField(blank=True, help_text='llm:<model>.', max_length=120)),
                    ('prompt_version', models.CharField(blank=True, max_length=40)),
                    ('calls', models.PositiveIntegerField(default=0)),
                    ('prompt_tokens', models.PositiveBigIntegerField(default=0)),
                    ('completion_tokens', models.PositiveBigIntegerField(default=0)),
                    ('cost', models.DecimalField(blank=True, decimal_places=6, help_text='US dollars.', max_digits=14, null=True)),
                    ('version', models.PositiveIntegerField(default=1, help_text='Rises with each decision.')),
                    ('started_at', models.DateTimeField(verbose_name='started')),
                    ('finished_at', models.DateTimeField(blank=True, null=True)),
                    ('decided_at', models.DateTimeField(blank=True, help_text='When somebody last decided about it.', null=True)),
                    ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='dreams', to='memories.enduser', verbose_name='end user')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'dream',
                    'verbose_name_plural': 'dreams',
                    'ordering': ['-started_at', '-id'],
                    'default_permissions': ('view', 'change'),
                    'indexes': [models.Index(fields=['end_user', 'agent_id', '-started_at'], name='dream_newest_idx'), models.Index(fields=['tenant', '-started_at'], name='dream_of_tenant_idx'), models.Index(condition=models.Q(('state', 'running')), fields=['lease_until'], name='dream_running_idx')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', ['running', 'waiting'])), fields=('end_user', 'tenant', 'agent_id'), name='dream_open_once')],
                },
            ),
            migrations.CreateModel(
                name='DreamedEpisode',
                fields=[
                    ('id', models.BigAutoField(primary_key=True, serialize=False)),
                    ('dream', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='read', to='memories.dream')),
                    ('episode', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='dreamed', to='memories.episode')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                ],
                options={
                    'verbose_name': 'episode that was dreamt of',
                    'verbose_name_plural': 'episodes that were dreamt of',
                    'default_permissions': (),
                    'indexes': [models.Index(fields=['dream'], name='dreamed_episode_dream_idx')],
                    'constraints': [models.UniqueConstraint(fields=('episode', 'tenant'), name='dreamed_episode_once')],
                },
            ),
            migrations.CreateModel(
                name='DreamEdit',
                fields=[
                    ('id', models.BigAutoField(primary_key=True, serialize=False)),
                    ('number', models.PositiveIntegerField(help_text='Its place in the answer, from 1.')),
                    ('path', models.CharField(blank=True, max_length=1000)),
                    ('old_text', models.TextField(blank=True, help_text='Empty: the new text is added at the end, or begins the file.')),
                    ('new_text', models.TextField(blank=True, help_text='Empty: the old text goes.')),
                    ('state', models.CharField(choices=[('waiting', 'Waiting for approval'), ('applied', 'Applied'), ('refused', 'Refused'), ('declined', 'Declined'), ('undone', 'Undone')], max_length=8)),
                    ('code', models.CharField(blank=True, help_text='Why it was refused.', max_length=40)),
                    ('file_version', models.PositiveIntegerField(blank=True, help_text='The version of the file that has it.', null=True)),
                    ('dream', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='edits', to='memories.dream')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                ],
                options={
                    'verbose_name': 'edit of a dream',
                    'verbose_name_plural': 'edits of dreams',
                    'ordering': ['number'],
                    'default_permissions': (),
                    'constraints': [models.UniqueConstraint(fields=('dream', 'tenant', 'number'), name='dream_edit_once')],
                },
            ),
        ]),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
