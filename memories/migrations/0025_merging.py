import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models


class Migration(migrations.Migration):
    """People who are merged into others, other names of a person, and what a merge moved."""

    dependencies = [
        ("memories", "0024_review_queue"),
    ]

    operations = [
        migrations.CreateModel(
            name='MergeEntry',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('session', 'Session'), ('renamed', 'Renamed'), ('fact', 'Fact'), ('section', 'Section'), ('revision', 'Revision'), ('refusal', 'Refusal'), ('evidence', 'Evidence'), ('name', 'Name')], max_length=8)),
                ('uuid', models.UUIDField(null=True)),
                ('number', models.BigIntegerField(null=True)),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='PersonMerge',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('counts', models.JSONField(default=dict, editable=False)),
                ('taken', models.JSONField(default=list, editable=False)),
                ('created_at', models.DateTimeField(editable=False)),
                ('undone_at', models.DateTimeField(editable=False, null=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.AddField(
            model_name='enduser',
            name='merged_into',
            field=models.ForeignKey(db_index=False, editable=False, help_text='Whom this id leads to, since two people were merged or an id was changed.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='names', to='memories.enduser'),
        ),
        migrations.AlterField(
            model_name='enduser',
            name='generation',
            field=models.PositiveIntegerField(default=1, editable=False, help_text='Raised by an erasure and by a merge: work begun under an older one is thrown away.'),
        ),
        migrations.AlterField(
            model_name='reviewitem',
            name='reason',
            field=models.CharField(choices=[('assistant_trust', 'Only the assistant said it'), ('tool_trust', 'Only a tool said it'), ('suggested', 'Found by simple rules'), ('less_sure', 'Less sure than what is known'), ('outranked', 'Contradicts what somebody of more trust said'), ('operators_word', "Contradicts an operator's word"), ('refused_before', 'Said again after it was refused'), ('near_refused', 'Close to what was refused'), ('removal', 'No longer true, says a source of less trust'), ('other_person', 'Differs between two people who were merged'), ('not_judged', 'Close to what is known'), ('instructions', 'Speaks to a model'), ('possible_secret', 'May hold a secret'), ('poor_quality', 'Says too little of its conversation')], max_length=20),
        ),
        migrations.AddIndex(
            model_name='enduser',
            index=models.Index(condition=models.Q(('merged_into__isnull', False)), fields=['merged_into'], name='end_user_names_idx'),
        ),
        migrations.AddField(
            model_name='personmerge',
            name='merged',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='merged_by', to='memories.enduser'),
        ),
        migrations.AddField(
            model_name='personmerge',
            name='survivor',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='merges', to='memories.enduser'),
        ),
        migrations.AddField(
            model_name='personmerge',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant'),
        ),
        migrations.AddField(
            model_name='mergeentry',
            name='merge',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='memories.personmerge'),
        ),
        migrations.AddIndex(
            model_name='personmerge',
            index=models.Index(fields=['survivor', '-created_at'], name='person_merge_idx'),
        ),
        migrations.AddConstraint(
            model_name='personmerge',
            constraint=models.UniqueConstraint(condition=models.Q(('undone_at', None)), fields=('merged',), name='person_merged_once'),
        ),
        migrations.AddIndex(
            model_name='mergeentry',
            index=models.Index(fields=['merge', 'kind'], name='merge_entry_idx'),
        ),
        migrations.AddConstraint(
            model_name='mergeentry',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('number__isnull', False), ('uuid', None)), models.Q(('number', None), ('uuid__isnull', False)), _connector='OR'), name='merge_entry_of_one'),
        ),
    ]
