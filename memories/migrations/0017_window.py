from django.db import migrations, models


class Migration(migrations.Migration):
    """Windows that filled while there was no model are found and armed; each working memory counts its episodes."""

    dependencies = [
        ('memories', '0016_working_memories'),
    ]

    operations = [
        migrations.AddField(
            model_name='workingmemory',
            name='episodes_made',
            field=models.PositiveIntegerField(default=0, help_text='Also those that were deleted since.'),
        ),
        migrations.AddField(
            model_name='workingmemory',
            name='unarmed',
            field=models.BooleanField(default=False, help_text='Turns came while there was no model, and nobody armed it.'),
        ),
        migrations.AddIndex(
            model_name='workingmemory',
            index=models.Index(condition=models.Q(('unarmed', True)), fields=['session'], name='working_memory_unarmed_idx'),
        ),
    ]
