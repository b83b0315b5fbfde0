import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models


class Migration(migrations.Migration):
    """What is deleted once its time is over: passes, and what sessions and evidence keep of it."""

    dependencies = [
        ('memories', '0034_table_rewrites'),
    ]

    operations = [
        migrations.AddField(
            model_name='session',
            name='deleted_number',
            field=models.PositiveIntegerField(default=0, editable=False, help_text='Turns up to here were deleted, as their time was over.'),
        ),
        migrations.AddField(
            model_name='session',
            name='deleted_rounds',
            field=models.PositiveIntegerField(default=0, editable=False, help_text='User turns among these.'),
        ),
        migrations.AddField(
            model_name='session',
            name='deleted_runs_number',
            field=models.PositiveIntegerField(default=0, editable=False, help_text='Runs that read turns up to here were deleted, as their time was over.'),
        ),
        migrations.AddField(
            model_name='session',
            name='deleted_tokens',
            field=models.PositiveBigIntegerField(default=0, editable=False, help_text='Tokens of these turns.'),
        ),
        migrations.AddField(
            model_name='tenant',
            name='retained_on',
            field=models.DateField(editable=False, help_text='Its own day of the last look at retention.', null=True),
        ),
        migrations.AlterField(
            model_name='factevidence',
            name='turn',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.turn'),
        ),
        migrations.CreateModel(
            name='RetentionPass',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('trigger', models.CharField(choices=[('schedule', 'Schedule'), ('command', 'Command'), ('operator', 'Operator')], max_length=8)),
                ('actor_id', models.CharField(blank=True, help_text='Id of the operator who began it.', max_length=36)),
                ('as_of', models.DateTimeField(help_text='The moment that it judges by.')),
                ('stage', models.CharField(choices=[('turns', 'Turns'), ('episodes', 'Episodes'), ('runs', 'Runs'), ('audit', 'Audit events'), ('exports', 'Exports')], default='turns', max_length=8)),
                ('reached', models.UUIDField(editable=False, help_text='Row up to which its stage has come.', null=True)),
                ('counts', models.JSONField(blank=True, default=dict, help_text='turns, sessions, episodes, runs, audit, exports.')),
                ('lease_token', models.UUIDField(editable=False, null=True)),
                ('lease_until', models.DateTimeField(editable=False, null=True)),
                ('started_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='retention_passes', to='memories.tenant', verbose_name='tenant')),
            ],
            options={
                'verbose_name': 'retention pass',
                'verbose_name_plural': 'retention passes',
                'ordering': ['-started_at', '-id'],
                'default_permissions': (),
                'indexes': [models.Index(fields=['tenant', '-started_at'], name='retention_pass_newest_idx')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('finished_at', None)), fields=('tenant',), name='retention_pass_once')],
            },
        ),
    ]
