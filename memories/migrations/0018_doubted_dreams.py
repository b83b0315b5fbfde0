"""Since when somebody is to look at a dream that read what is gone by now."""

from django.db import migrations, models

from memories.db.together import Together


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0017_reflections'),
    ]

    operations = [
        Together([
            migrations.AddField(
                model_name='dream',
                name='doubted_at',
                field=models.DateTimeField(blank=True, help_text='Since when somebody is to look at it: episodes that it read were deleted, redacted or rolled back.', null=True),
            ),
            migrations.AddIndex(
                model_name='dream',
                index=models.Index(condition=models.Q(('doubted_at__isnull', False)), fields=['doubted_at'], name='dream_doubted_idx'),
            ),
        ]),
    ]
