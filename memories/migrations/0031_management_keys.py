"""Management keys."""

import django.contrib.postgres.fields
import django.db.models.deletion
import memories.models.access.api_keys
import memories.models.ids
from django.db import migrations, models

from memories.models.access.roles import grant


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0030_backups'),
    ]

    operations = [
        migrations.CreateModel(
            name='ManagementKey',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(editable=False, help_text='What uses it, e.g. terraform.', max_length=100, verbose_name='name')),
                ('prefix', models.CharField(editable=False, max_length=16, unique=True)),
                ('digest', models.BinaryField(max_length=32)),
                ('gives', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('ingest', 'Ingest: turns and sessions'), ('read', 'Read: context, search, lists'), ('write', 'Write: facts and profile'), ('privacy', 'Privacy: requests and exports'), ('read_all', 'Read all: also facts restricted to certain roles, readers or agents')], max_length=16), default=memories.models.access.api_keys.ordinary_scopes, editable=False, help_text='Scopes that it may give to the keys that it makes.', size=None)),
                ('created_at', models.DateTimeField(editable=False, verbose_name='created')),
                ('expires_at', models.DateTimeField(editable=False, null=True)),
                ('revoked_at', models.DateTimeField(editable=False, null=True)),
                ('last_used_at', models.DateTimeField(editable=False, help_text='To the nearest five minutes.', null=True)),
                ('tenant', models.ForeignKey(editable=False, help_text='The only tenant that it manages; none: all of them, and it can make new ones.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
            ],
            options={
                'verbose_name': 'management key',
                'verbose_name_plural': 'management keys',
                'ordering': ['-created_at'],
                'default_permissions': ('view', 'change'),
            },
        ),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
