import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Names that people read, so that they can be told in another language; no table changes."""

    dependencies = [
        ("memories", "0027_saved_filters"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='apikey',
            options={'ordering': ['-created_at'], 'verbose_name': 'API key', 'verbose_name_plural': 'API keys'},
        ),
        migrations.AlterModelOptions(
            name='auditevent',
            options={'ordering': ['-id'], 'verbose_name': 'audit event', 'verbose_name_plural': 'audit events'},
        ),
        migrations.AlterModelOptions(
            name='decaypass',
            options={'ordering': ['-started_at', '-id'], 'verbose_name': 'decay pass', 'verbose_name_plural': 'decay passes'},
        ),
        migrations.AlterModelOptions(
            name='enduser',
            options={'ordering': ['-created_at', '-id'], 'verbose_name': 'end user', 'verbose_name_plural': 'end users'},
        ),
        migrations.AlterModelOptions(
            name='episode',
            options={'ordering': ['-ended_at', '-id'], 'verbose_name': 'episode', 'verbose_name_plural': 'episodes'},
        ),
        migrations.AlterModelOptions(
            name='extractionrun',
            options={'ordering': ['-started_at', '-id'], 'verbose_name': 'extraction run', 'verbose_name_plural': 'extraction runs'},
        ),
        migrations.AlterModelOptions(
            name='fact',
            options={'ordering': ['-created_at', '-id'], 'verbose_name': 'fact', 'verbose_name_plural': 'facts'},
        ),
        migrations.AlterModelOptions(
            name='reviewitem',
            options={'ordering': ['created_at', 'id'], 'verbose_name': 'review item', 'verbose_name_plural': 'review items'},
        ),
        migrations.AlterModelOptions(
            name='session',
            options={'ordering': ['-created_at', '-id'], 'verbose_name': 'session', 'verbose_name_plural': 'sessions'},
        ),
        migrations.AlterModelOptions(
            name='tenant',
            options={'ordering': ['slug'], 'permissions': [('export_tenant', 'Can export lists as CSV files')], 'verbose_name': 'tenant', 'verbose_name_plural': 'tenants'},
        ),
        migrations.AlterField(
            model_name='apikey',
            name='tenant',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to='memories.tenant', verbose_name='tenant'),
        ),
        migrations.AlterField(
            model_name='auditevent',
            name='actor_kind',
            field=models.CharField(choices=[('run', 'Run'), ('operator', 'Operator'), ('key', 'Key'), ('command', 'Command'), ('decay', 'Decay')], max_length=8, verbose_name='by'),
        ),
        migrations.AlterField(
            model_name='decaypass',
            name='state',
            field=models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('held', 'Held')], default='running', max_length=7, verbose_name='state'),
        ),
        migrations.AlterField(
            model_name='decaypass',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='decay_passes', to='memories.tenant', verbose_name='tenant'),
        ),
        migrations.AlterField(
            model_name='decaypass',
            name='trigger',
            field=models.CharField(choices=[('schedule', 'Schedule'), ('command', 'Command'), ('operator', 'Operator')], max_length=8, verbose_name='begun by'),
        ),
        migrations.AlterField(
            model_name='enduser',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='end_users', to='memories.tenant', verbose_name='tenant'),
        ),
        migrations.AlterField(
            model_name='episode',
            name='status',
            field=models.CharField(choices=[('active', 'Active'), ('pending', 'Pending'), ('trashed', 'Trashed')], default='active', max_length=7, verbose_name='state'),
        ),
        migrations.AlterField(
            model_name='episode',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant'),
        ),
        migrations.AlterField(
            model_name='extractionrun',
            name='status',
            field=models.CharField(choices=[('running', 'Running'), ('committed', 'Committed'), ('failed', 'Failed'), ('parked', 'Parked'), ('discarded', 'Discarded')], default='running', max_length=9, verbose_name='outcome'),
        ),
        migrations.AlterField(
            model_name='extractionrun',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='category',
            field=models.CharField(choices=[('identity', 'Identity'), ('relationship', 'Relationship'), ('preference', 'Preference'), ('behavior', 'Behavior'), ('skill', 'Skill'), ('knowledge', 'Knowledge'), ('context', 'Context'), ('goal', 'Goal'), ('decision', 'Decision'), ('constraint', 'Constraint'), ('correction', 'Correction'), ('other', 'Other')], max_length=12, verbose_name='category'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='status',
            field=models.CharField(choices=[('active', 'Active'), ('pending', 'Pending'), ('superseded', 'Superseded'), ('rejected', 'Rejected'), ('archived', 'Archived'), ('trashed', 'Trashed')], default='active', max_length=10, verbose_name='state'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='trust',
            field=models.CharField(choices=[('operator', 'Operator'), ('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool')], max_length=9, verbose_name='trust'),
        ),
        migrations.AlterField(
            model_name='reviewitem',
            name='kind',
            field=models.CharField(choices=[('quarantined', 'Quarantined'), ('conflict', 'Conflict'), ('possible_duplicate', 'Possible duplicate'), ('flagged', 'Flagged'), ('held', 'Held'), ('poor_episode', 'Poor episode')], max_length=18, verbose_name='kind'),
        ),
        migrations.AlterField(
            model_name='reviewitem',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant'),
        ),
        migrations.AlterField(
            model_name='session',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='memories.tenant', verbose_name='tenant'),
        ),
        migrations.AlterField(
            model_name='session',
            name='token_count',
            field=models.PositiveBigIntegerField(default=0, verbose_name='tokens'),
        ),
        migrations.AlterField(
            model_name='session',
            name='turn_count',
            field=models.PositiveIntegerField(default=0, verbose_name='turns'),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='capture',
            field=models.BooleanField(default=True, help_text='Off: posted turns are answered 202 and not stored.', verbose_name='capture'),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='extraction_guidance',
            field=models.TextField(blank=True, help_text='Your own words to the model on what to remember; sent with every call.', max_length=4000, verbose_name='extraction guidance'),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='name',
            field=models.CharField(blank=True, max_length=200, verbose_name='name'),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='serve',
            field=models.BooleanField(default=True, help_text='Off: contexts are empty.', verbose_name='serve'),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='signal_phrases',
            field=models.JSONField(blank=True, default=dict, help_text="Kind of sign → phrases that stand for it, in place of the hub's patterns.", verbose_name='signal phrases'),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='slug',
            field=models.SlugField(help_text='Short name used by commands, e.g. acme-prod.', max_length=63, unique=True, verbose_name='slug'),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='time_zone',
            field=models.CharField(default='UTC', help_text='For people without one of their own.', max_length=64, verbose_name='time zone'),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='trust_assistant',
            field=models.BooleanField(default=False, help_text="On: what only the assistant said is served without review; people's words stay above.", verbose_name='trust assistant'),
        ),
    ]
