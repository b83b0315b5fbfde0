"""Who has a review item, and what operators note on it."""

import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0027_logged_contexts'),
    ]

    operations = [
        migrations.CreateModel(
            name='ReviewNote',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('text', models.TextField(max_length=2000)),
                ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], editable=False, max_length=8)),
                ('actor_id', models.CharField(blank=True, editable=False, max_length=36)),
                ('created_at', models.DateTimeField(editable=False)),
            ],
            options={
                'verbose_name': 'review note',
                'verbose_name_plural': 'review notes',
                'ordering': ['created_at', 'id'],
            },
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='taken_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='taken_by',
            field=models.CharField(blank=True, help_text='Id of the operator who has it on their desk.', max_length=36),
        ),
        migrations.AddIndex(
            model_name='reviewitem',
            index=models.Index(condition=models.Q(('decided_by', ''), _negated=True), fields=['decided_at'], name='review_decided_idx'),
        ),
        migrations.AddField(
            model_name='reviewnote',
            name='item',
            field=models.ForeignKey(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='memories.reviewitem'),
        ),
        migrations.AddField(
            model_name='reviewnote',
            name='tenant',
            field=models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant'),
        ),
        # As in 0004_unsampled_columns.
        migrations.RunSQL(
            "ALTER TABLE memories_reviewnote ALTER COLUMN text SET STATISTICS 0", migrations.RunSQL.noop
        ),
    ]
