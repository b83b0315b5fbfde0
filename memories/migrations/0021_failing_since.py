"""Since when a model's endpoint fails. Of one that fails now, nobody knows it: it counts from here."""

from django.db import migrations, models

FILL = "UPDATE memories_endpointstate SET failing_since = now() WHERE failures > 0"


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0020_merges_of_people'),
    ]

    operations = [
        migrations.AddField(
            model_name='endpointstate',
            name='failing_since',
            field=models.DateTimeField(help_text='The first of these failures.', null=True),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
