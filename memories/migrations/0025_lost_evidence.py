"""An open proposal of a reflection says when it lost a part of its evidence."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0024_deleted_groups'),
    ]

    operations = [
        migrations.AddField(
            model_name='reviewitem',
            name='lost_at',
            field=models.DateTimeField(editable=False, help_text='Of a pattern: when a part of what showed it was deleted or taken back.', null=True),
        ),
    ]
