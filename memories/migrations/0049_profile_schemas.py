"""Profiles that a tenant defines by a JSON Schema of its own; what they say of people are facts."""

import django.db.models.deletion
from django.db import migrations, models

import memories.models.ids

from memories.db.together import Together


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0048_content_policy'),
    ]

    operations = [
        Together([
            migrations.AddField(
                model_name='tenant',
                name='context_profiles',
                field=models.BooleanField(default=False, editable=False, help_text='Whether contexts tell one of its own profiles: else it costs no statement.'),
            ),
            migrations.CreateModel(
                name='ProfileSchema',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=24, verbose_name='name')),
                    ('agent_id', models.CharField(blank=True, help_text='Empty: for every agent.', max_length=255, verbose_name='agent')),
                    ('definition', models.TextField(help_text='JSON, as profiles/checking.py writes it.', verbose_name='schema')),
                    ('lives', models.JSONField(default=dict, editable=False, help_text='Path of a field → how often it was removed before: part of its key.')),
                    ('in_context', models.BooleanField(default=False, verbose_name='in every context')),
                    ('version', models.PositiveIntegerField(default=1, verbose_name='version')),
                    ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8)),
                    ('actor_id', models.CharField(blank=True, max_length=36)),
                    ('created_at', models.DateTimeField()),
                    ('updated_at', models.DateTimeField(verbose_name='changed')),
                    ('deleted_at', models.DateTimeField(editable=False, null=True)),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'profile schema',
                    'verbose_name_plural': 'profile schemas',
                    'ordering': ['name'],
                    'default_permissions': (),
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='profile_schema_once')],
                },
            ),
        ]),
    ]
