"""Groups go to the trash as a whole, and what people said in them with other memories: a roll back, a clearing."""

from django.db import migrations, models

from memories.db.together import Together


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0023_operator_mails'),
    ]

    operations = [
        Together([
            migrations.AddField(
                model_name='groupfact',
                name='change_set',
                field=models.UUIDField(editable=False, help_text='That deleted it with other memories, such as a roll back.', null=True),
            ),
            migrations.AddField(
                model_name='memorygroup',
                name='trashed_at',
                field=models.DateTimeField(editable=False, help_text='Since when it is deleted.', null=True),
            ),
            migrations.AddIndex(
                model_name='groupevidence',
                index=models.Index(fields=['actor_id'], name='group_evidence_actor_idx'),
            ),
            migrations.AddIndex(
                model_name='groupfact',
                index=models.Index(condition=models.Q(('change_set__isnull', False)), fields=['change_set'], name='group_fact_change_set_idx'),
            ),
            migrations.AddIndex(
                model_name='memorygroup',
                index=models.Index(condition=models.Q(('trashed_at__isnull', False)), fields=['tenant', 'trashed_at'], name='memory_group_trash_idx'),
            ),
            migrations.AddConstraint(
                model_name='groupfact',
                constraint=models.CheckConstraint(condition=models.Q(('change_set', None), ('trashed_at__isnull', False), _connector='OR'), name='group_fact_change_set_deletes'),
            ),
        ]),
    ]
