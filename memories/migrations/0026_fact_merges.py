import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models


class Migration(migrations.Migration):
    """Which facts an operator made one, with what the undo goes by."""

    dependencies = [
        ("memories", "0025_merging"),
    ]

    operations = [
        migrations.CreateModel(
            name='FactMerge',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('change_set', models.UUIDField(editable=False, unique=True)),
                ('traces', models.JSONField(default=dict, editable=False, help_text='Ids, versions and keyed hashes, no text.')),
                ('created_at', models.DateTimeField(editable=False)),
                ('undone_at', models.DateTimeField(editable=False, null=True)),
                ('survivor', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='merges', to='memories.fact')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
    ]
