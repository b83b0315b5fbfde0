import django.db.models.deletion
from django.db import migrations, models

# Counting must not cost a write to the log of the database; after a crash it begins anew.
FORWARD = "ALTER TABLE memories_throttlecounter SET UNLOGGED"
BACKWARD = "ALTER TABLE memories_throttlecounter SET LOGGED"


class Migration(migrations.Migration):
    """What throttles count with; empty while none is set."""

    dependencies = [("memories", "0004_batch_limit")]
    operations = [
        migrations.CreateModel(
            name='ThrottleCounter',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('scope', models.CharField(choices=[('ingest', 'Ingest: turns and sessions'), ('read', 'Read: context, search, lists'), ('write', 'Write: facts and profile'), ('privacy', 'Privacy: requests and exports')], max_length=16)),
                ('window', models.BigIntegerField(help_text='Number of the window since 1970.')),
                ('requests', models.PositiveIntegerField()),
                ('key', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.apikey')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('key', 'scope'), name='throttle_once_per_scope')],
            },
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
