"""Which backups were made, and when."""

import memories.models.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0029_pair_references'),
    ]

    operations = [
        migrations.CreateModel(
            name='Backup',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('dump', 'Dump in one file'), ('base', 'Base backup of the embedded server')], max_length=4)),
                ('nightly', models.BooleanField(default=False, help_text='The hub began it by itself.')),
                ('started_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField()),
                ('failed', models.BooleanField(default=False)),
                ('size', models.BigIntegerField(default=0, help_text='Bytes.')),
            ],
            options={
                'verbose_name': 'backup',
                'verbose_name_plural': 'backups',
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['-started_at'], name='backup_newest_idx')],
            },
        ),
    ]
