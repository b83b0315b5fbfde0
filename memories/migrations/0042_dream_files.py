"""Which memory files dreams may edit."""

import memories.models.people.tenants
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0041_words_of_quotes'),
    ]

    operations = [
        migrations.AddField(
            model_name='tenant',
            name='dream_files',
            field=models.JSONField(blank=True, default=memories.models.people.tenants.dream_files, help_text='Which memory files dreams may edit, one path per line. With a slash at its end it is a folder. A missing file is begun only in a folder where the agent has one of these files.', verbose_name='files of dreams'),
        ),
    ]
