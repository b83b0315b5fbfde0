"""Heartbeats say which keys their host has."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0020_triples_of_models'),
    ]

    operations = [
        migrations.AddField(
            model_name='workerheartbeat',
            name='keys',
            field=models.CharField(blank=True, db_default='', help_text='Fingerprints of the keys that all hosts share.', max_length=60),
        ),
    ]
