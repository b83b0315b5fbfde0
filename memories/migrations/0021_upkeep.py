from django.db import migrations, models


class Migration(migrations.Migration):
    """When a person was last looked at by upkeep, and the upkeep that follows a pass of forgetting."""

    dependencies = [
        ('memories', '0020_settings'),
    ]

    operations = [
        migrations.AddField(
            model_name='enduser',
            name='upkeep_tried_at',
            field=models.DateTimeField(editable=False, help_text='When a model was last to be asked what of this person no longer holds.', null=True),
        ),
        migrations.AddField(
            model_name='enduser',
            name='upkept_at',
            field=models.DateTimeField(editable=False, help_text='When it last answered, and was heeded.', null=True),
        ),
        migrations.AddField(
            model_name='decaypass',
            name='upkeep_open',
            field=models.BooleanField(default=False, editable=False, help_text='Its upkeep is not over.'),
        ),
        migrations.AddConstraint(
            model_name='decaypass',
            constraint=models.UniqueConstraint(condition=models.Q(('upkeep_open', True)), fields=('tenant',), name='decay_pass_upkeep_once'),
        ),
    ]
