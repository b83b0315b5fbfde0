"""What a roll back was asked for, and in which language the file of a case is made."""

from django.db import migrations, models

from memories.db.together import Together


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0049_profile_schemas'),
    ]

    operations = [
        Together([
            migrations.AddField(
                model_name='changeset',
                name='selected',
                field=models.JSONField(editable=False, help_text='Of a roll back: ids, an agent and times.', null=True),
            ),
            migrations.AddField(
                model_name='privacycase',
                name='language',
                field=models.CharField(blank=True, db_default='', help_text="Of the file; empty: the person's.", max_length=10),
            ),
        ]),
    ]
