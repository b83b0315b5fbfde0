"""Why the file of an import was not taken, or not as a whole."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0052_what_exports_made'),
    ]

    operations = [
        migrations.AddField(
            model_name='import',
            name='findings',
            field=models.JSONField(db_default=models.Value([], models.JSONField()), default=list, help_text='Of a file that is not taken, or not as a whole: why.'),
        ),
    ]
